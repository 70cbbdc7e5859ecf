// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
)

// IterationSummary is what a loop knows about an iteration that has ended.
type IterationSummary struct {
	// Number counts from 1.
	Number int
	// Score is nil if the iteration has none. Delta is the improvement over the last accepted
	// score, and Percent is Delta in percent of that score. A positive Delta is better.
	Score, Delta, Percent *float64
	// Best reports whether the iteration was the best so far.
	Best bool
	// Rejected says why the iteration was not accepted, or is empty. RolledBack reports that its changes of the state
	// were undone.
	Rejected   string
	RolledBack bool
	// Complete is false if the iteration was cut short. Failures is the number of its steps
	// that failed.
	Complete bool
	Failures int
	// Events are the events of the iteration, in order, without those that the loop undid. Do
	// not change them.
	Events []*session.Event
}

// History has the iterations of a running loop, for steps that read more than the previous one. In a resumed run it
// has the same iterations. It is safe for concurrent use. A nil History is empty.
type History struct {
	mu         sync.Mutex
	iterations []IterationSummary
	current    []*session.Event // of the running iteration
	cache      map[any]any
}

// ReadsHistory reports whether one of the agents, or an agent below them, reads the history.
func ReadsHistory(agents []agent.Agent) bool {
	return slices.ContainsFunc(agents, func(a agent.Agent) bool {
		return TraitsOf(a, true).ReadsHistory || ReadsHistory(a.SubAgents())
	})
}

// Add adds an event of the running iteration. Partial events, and marks that change no state,
// are left out. It is for loops.
func (h *History) Add(ev *session.Event) {
	if h == nil || ev.Partial || (ev.Content == nil || ev.Mark != nil) && len(ev.Actions.StateDelta) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current = append(h.current, ev)
}

// Undo removes the events of a step from the running iteration, because the step's attempt has
// failed. It is for loops.
func (h *History) Undo(at session.Address) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current = slices.DeleteFunc(h.current, func(ev *session.Event) bool { return ev.Address.Under(at) })
}

// End ends the running iteration. Its events are those that were added. It is for loops.
func (h *History) End(it IterationSummary) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	it.Events, h.current = h.current, nil
	h.iterations = append(h.iterations, it)
}

// Before returns the iterations with smaller numbers, the oldest first. Do not change the
// result.
func (h *History) Before(number int) []IterationSummary {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.iterations)
	for n > 0 && h.iterations[n-1].Number >= number { // most callers ask for nearly all
		n--
	}
	return h.iterations[:n:n]
}

// Cached returns the value of key. If there is none it stores the result of make. The value stays until the loop
// ends, so that a summary of the history is not computed again for each iteration. make must not call this history.
func (h *History) Cached(key any, make func() any) any {
	if h == nil {
		return make()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok := h.cache[key]
	if !ok {
		if h.cache == nil {
			h.cache = map[any]any{}
		}
		v = make()
		h.cache[key] = v
	}
	return v
}

// Cached returns the value of key in the cache of the invocation. If there is none it stores the result of make. Two
// steps that call Cached at the same time may both call make, and one result is dropped. The value stays until the
// invocation ends, so that an agent that runs again, as in a loop, finds what it has built.
func (p Place) Cached(key any, make func() any) any {
	if p.inv == nil || p.inv.run.cache == nil {
		return make()
	}
	v, ok := p.inv.run.cache.Load(key)
	if !ok {
		v, _ = p.inv.run.cache.LoadOrStore(key, make())
	}
	return v
}
