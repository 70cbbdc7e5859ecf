// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Resources is what a run has taken of the machine, as far as its system tells.
// What is nil is unknown, and not zero. The zero value knows nothing.
type Resources struct {
	// Wall is how long the run took on the clock, in the process that measured
	// it; Active is what its steps and delays have taken, also before it was
	// resumed: nil if it has no loop. Loops at the same time add up.
	Wall   time.Duration
	Active *time.Duration
	// CPU is the processor time of the process, Programs that of the programs
	// that it ran and waited for.
	CPU, Programs *time.Duration
	// PeakMemory is the most memory that the process has ever held, and
	// PeakPrograms the most that one of the programs has, in bytes.
	PeakMemory, PeakPrograms *int64
	// States are the sizes of the state in bytes at the ends of the iterations
	// of the outermost loop, the last one if there are several; at most 1000. They
	// are known of loops that look at the state: with a score, a condition or a
	// state limit.
	States []StateSize
	// Usage is what model calls have used.
	Usage Usage

	loop session.Address // whose states they are
}

// StateSize is how large the state was when an iteration ended.
type StateSize struct {
	Iteration int   `json:"iteration"`
	Bytes     int64 `json:"bytes"`
}

const maxStates = 1000

// Add takes the next event of the run.
func (r *Resources) Add(ev *session.Event) {
	if ev.Mark == nil || strings.Contains(string(ev.Address), "[") {
		return // no mark, or of what is in a loop
	}
	switch ev.Mark.Kind {
	case session.MarkStepFinished:
		var fin session.StepFinished
		if ev.Address != "" && ev.Address.Parent() == "" && ev.Mark.Decode(&fin) == nil {
			r.Usage.Add(recorded(fin.Usage))
		}
	case session.MarkIterationFinished:
		var it loop.IterationRecord
		if ev.Mark.Decode(&it) == nil && it.StateSize > 0 {
			if r.loop != ev.Address {
				r.loop, r.States = ev.Address, nil
			}
			r.States = append(r.States[max(0, len(r.States)-maxStates+1):], StateSize{it.Number, it.StateSize})
		}
	case session.MarkLoopStopped:
		var rec loop.StopRecord
		if ev.Mark.Decode(&rec) == nil {
			if r.Active != nil {
				rec.Elapsed += *r.Active
			}
			r.Active = &rec.Elapsed
		}
	}
}

// Largest is the largest state; its Iteration is 0 if none is known.
func (r *Resources) Largest() (most StateSize) {
	for _, s := range r.States {
		if s.Bytes > most.Bytes {
			most = s
		}
	}
	return most
}

// String is what was used, in words, as
//
//	wall=12.3s active=11.9s cpu=400ms cpu_programs=8.1s peak_memory=41.2MB peak_memory_programs=unknown state=1.3kB state_max=1.5kB@2
//
// Sizes are in units of a thousand. Where models were asked what that took stands
// before the state, as calls=4 tokens=2210 cost=0.0381.
func (r *Resources) String() string {
	s := fmt.Sprintf("wall=%s active=%s cpu=%s cpu_programs=%s peak_memory=%s peak_memory_programs=%s",
		short(r.Wall), known(r.Active, short), known(r.CPU, short), known(r.Programs, short), known(r.PeakMemory, size), known(r.PeakPrograms, size))
	s += r.Usage.words()
	if most := r.Largest(); most.Iteration == 0 {
		s += " state=unknown"
	} else {
		s += fmt.Sprintf(" state=%s state_max=%s@%d", size(r.States[len(r.States)-1].Bytes), size(most.Bytes), most.Iteration)
	}
	return s
}

// words is what model calls have used, behind other words; nothing if there were
// none.
func (u Usage) words() string {
	if u.Calls == 0 {
		return ""
	}
	tokens, cost := "unknown", "unknown"
	switch {
	case u.Tokens() > 0 && u.Estimated:
		tokens = fmt.Sprintf("~%d", u.Tokens())
	case u.Tokens() > 0:
		tokens = fmt.Sprint(u.Tokens())
	}
	switch {
	case u.Unknown && u.Cost > 0:
		cost = fmt.Sprintf("%.4g or more", u.Cost)
	case !u.Unknown:
		cost = fmt.Sprintf("%.4g", u.Cost)
	}
	return fmt.Sprintf(" calls=%d tokens=%s cost=%s", u.Calls, tokens, cost)
}

func known[T any](v *T, words func(T) string) string {
	if v == nil {
		return "unknown"
	}
	return words(*v)
}

// size is a number of bytes as people write it.
func size(n int64) string {
	f := float64(n)
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if f < 999.95 && unit == "B" {
			return fmt.Sprintf("%dB", n)
		} else if f < 999.95 {
			return fmt.Sprintf("%.1f%s", f, unit)
		}
		f /= 1000
	}
	return fmt.Sprintf("%.1fTB", f)
}

// MarshalJSON writes times in seconds and sizes in bytes; what is unknown is null.
func (r Resources) MarshalJSON() ([]byte, error) {
	seconds := func(d *time.Duration) *float64 {
		if d == nil {
			return nil
		}
		return new(d.Seconds())
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
	}{seconds(&r.Wall), seconds(r.Active), seconds(r.CPU), seconds(r.Programs), r.PeakMemory, r.PeakPrograms, r.States, r.Usage})
}
