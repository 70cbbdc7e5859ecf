// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Resources is the use of the machine by a run. A nil field is unknown, not zero.
type Resources struct {
	// Wall is the elapsed time of the run in the process that measured it. Active is the time in which
	// the run was active, also before it was resumed: see [Tree.Active]. Add does not set them; 0 is
	// unknown.
	Wall, Active time.Duration
	// CPU is the processor time of the process, Programs the processor time of the programs that it started and
	// waited for.
	CPU, Programs *time.Duration
	// PeakMemory is the largest amount of memory that the process held, PeakPrograms the largest
	// amount that one of the programs held, in bytes.
	PeakMemory, PeakPrograms *int64
	// States are the sizes of the state, in bytes, at the ends of the iterations of the last
	// outermost loop; at most 1000. They are known for loops with a score, a condition or a state
	// limit.
	States []StateSize
	// Usage is the usage of model calls.
	Usage Usage
	// Saved is the part of requests that context policies left out.
	Saved Saved

	loop session.Address // whose states they are
	// spent is the usage of the steps that have finished directly below the root agent.
	spent Usage
}

// SoFar returns the usage of the steps that have finished while the run goes on.
func (r *Resources) SoFar() Usage {
	if r.Usage.Calls > 0 {
		return r.Usage
	}
	return r.spent
}

// StateSize is the size of the state at the end of an iteration.
type StateSize struct {
	Iteration int   `json:"iteration"`
	Bytes     int64 `json:"bytes"`
}

const maxStates = 1000

// Add takes the next event of the run.
func (r *Resources) Add(ev *session.Event) {
	r.Saved.add(ev)
	if root := ev.Address.Parent(); ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished && root != "" && root.Parent() == "" {
		var fin mark.StepFinished
		if ev.Mark.Decode(&fin) == nil {
			r.spent.Add(recordedUsage(fin.Usage))
		}
	}
	if ev.Mark == nil || strings.Contains(string(ev.Address), "[") {
		return // no mark, or of what is in a loop
	}
	switch ev.Mark.Kind {
	case mark.KindStepFinished:
		if ev.Address == "" || ev.Address.Parent() != "" {
			return
		}
		var fin mark.StepFinished
		if ev.Mark.Decode(&fin) == nil {
			r.Usage.Add(recordedUsage(fin.Usage))
		}
	case mark.KindIterationFinished:
		var it loop.IterationRecord
		if ev.Mark.Decode(&it) == nil && it.StateSize > 0 {
			if r.loop != ev.Address {
				r.loop, r.States = ev.Address, nil
			}
			r.States = append(r.States[max(0, len(r.States)-maxStates+1):], StateSize{it.Number, it.StateSize})
		}
	}
}

// Largest returns the largest state; its Iteration is 0 if no size is known.
func (r *Resources) Largest() (most StateSize) {
	for _, s := range r.States {
		if s.Bytes > most.Bytes {
			most = s
		}
	}
	return most
}

// String returns a summary for people, such as "4 model calls, 4,200 tokens, cost 0.02, 12s". The time is the active time if it is
// known, because calls, tokens and cost count from the start of a resumed run too. String says "about" if tokens are estimated, and "or
// more" if part of the cost is unknown. It leaves out unknown values.
func (r *Resources) String() string {
	var words []string
	if u := r.Usage; u.Calls > 0 {
		words = append(words, brief.Count(u.Calls, "model call"))
		if u.Tokens() > 0 {
			words = append(words, u.tokens())
		}
		if cost := u.CostText(); cost != "" {
			words = append(words, "cost "+cost)
		}
		if cache := u.Cache(); cache != "" && u.CachedTokens*10 >= u.InputTokens { // else it does not matter
			words = append(words, cache)
		}
	}
	return strings.Join(append(words, brief.Clock(cmp.Or(r.Active, r.Wall))), ", ")
}

// Lines returns the known values, each as a name and a text.
func (r *Resources) Lines() [][2]string {
	var lines [][2]string
	add := func(name, text string) { lines = append(lines, [2]string{name, text}) }
	if r.Active > 0 {
		add("active", brief.Clock(r.Active))
	}
	for _, t := range []struct {
		name string
		took *time.Duration
	}{{"CPU time", r.CPU}, {"CPU time of programs", r.Programs}} {
		if t.took != nil {
			add(t.name, brief.Clock(*t.took))
		}
	}
	if r.PeakMemory != nil {
		add("peak memory", brief.Size(*r.PeakMemory))
	}
	if u := r.Usage; u.Calls > 0 {
		add("model calls", brief.Whole(u.Calls))
		add("tokens", cmp.Or(u.tokens(), "unknown"))
		add("cost", cmp.Or(u.CostText(), "unknown"))
		if cache := u.Cache(); cache != "" {
			add("cache", cache)
		}
	}
	if s := r.Saved; s.Chars != 0 {
		add("context saved", fmt.Sprintf("%s, about %s", brief.Count(int64(s.Chars), "character"),
			brief.Count(int64(s.Tokens()), "token")))
	}
	if most := r.Largest(); most.Iteration > 0 {
		add("state at the end", brief.Size(r.States[len(r.States)-1].Bytes))
		add("largest state", fmt.Sprintf("%s, after iteration %d", brief.Size(most.Bytes), most.Iteration))
	}
	return lines
}

// tokens returns the input and output tokens in words; "" if they are unknown.
func (u Usage) tokens() string {
	n := u.Tokens()
	switch {
	case n == 0:
		return ""
	case u.Estimated:
		return "about " + brief.Count(n, "token")
	}
	return brief.Count(n, "token")
}

// Cache returns the effect of the provider's cache, such as "62% of input from the cache, 0.41 saved"; "" if it had
// none.
func (u Usage) Cache() string {
	if u.InputTokens <= 0 || u.CachedTokens+u.CacheWriteTokens+u.CacheWrite1hTokens == 0 {
		return ""
	}
	said := brief.Percent(float64(u.CachedTokens)/float64(u.InputTokens)) + " of input from the cache"
	switch {
	case u.CacheSaved > 0:
		said += ", " + brief.Money(u.CacheSaved) + " saved"
	case u.CacheSaved < 0:
		said += ", " + brief.Money(-u.CacheSaved) + " more than without it"
	}
	return said
}

// CostText returns the cost in words, such as "0.40", or "0.40 or more" if a part of it is unknown; "" if all of it is.
func (u Usage) CostText() string {
	switch {
	case u.Unknown && u.Cost > 0:
		return brief.Money(u.Cost) + " or more"
	case u.Unknown:
		return ""
	}
	return brief.Money(u.Cost)
}

// MarshalJSON writes times in seconds and sizes in bytes; unknown values are null.
func (r Resources) MarshalJSON() ([]byte, error) {
	seconds := func(d *time.Duration) *float64 {
		if d == nil {
			return nil
		}
		return new(d.Seconds())
	}
	var active *time.Duration
	if r.Active > 0 {
		active = &r.Active
	}
	return json.Marshal(struct {
		Wall         *float64    `json:"wall_seconds"`
		Active       *float64    `json:"active_seconds"`
		CPU          *float64    `json:"cpu_seconds"`
		Programs     *float64    `json:"cpu_programs_seconds"`
		PeakMemory   *int64      `json:"peak_memory_bytes"`
		PeakPrograms *int64      `json:"peak_memory_programs_bytes"`
		States       []StateSize `json:"state_sizes,omitempty"`
		Usage        Usage       `json:"usage,omitzero"`
		Saved        Saved       `json:"context_saved,omitzero"`
	}{seconds(&r.Wall), seconds(active), seconds(r.CPU), seconds(r.Programs), r.PeakMemory, r.PeakPrograms, r.States,
		r.Usage, r.Saved})
}
