// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
)

// PastIteration is what a loop knows of an iteration that has ended.
type PastIteration struct {
	// Number counts from 1.
	Number int
	// Score is nil if the iteration has none. Delta is the improvement over the
	// last accepted score, more is better; Percent is that of the same.
	Score, Delta, Percent *float64
	// Best says that it was the best so far.
	Best bool
	// Rejected says why it was not accepted, for people and models; empty if it
	// was. Undone says that its changes of state were taken back then.
	Rejected string
	Undone   bool
	// Complete is false if it was cut short; Failures is how many of its steps
	// have failed.
	Complete bool
	Failures int
	// Events are what was said and changed in it, in order, but for what its
	// loop itself took back. They are the log's: do not change them.
	Events []*session.Event
}

// History is what a loop remembers of its iterations while it runs, for steps
// that look back at more than the last one. A run that is resumed remembers the
// same. It is safe for concurrent use; a nil History is empty.
type History struct {
	mu   sync.Mutex
	past []PastIteration
	open []*session.Event // of the running iteration
	kept map[any]any
}

// ReadsHistory reports whether one of some agents, or of those below them, is a
// [HistoryReader] that says so.
func ReadsHistory(agents []agent.Agent) bool {
	return slices.ContainsFunc(agents, func(a agent.Agent) bool {
		r, ok := a.(HistoryReader)
		return ok && r.ReadsHistory() || ReadsHistory(a.SubAgents())
	})
}

// Add takes down an event of the running iteration, for loop agents. Pieces of
// a streamed answer, and marks that change nothing, are left out.
func (h *History) Add(ev *session.Event) {
	if h == nil || ev.Partial || (ev.Content == nil || ev.Mark != nil) && len(ev.Actions.StateDelta) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = append(h.open, ev)
}

// Undo forgets what a step of the running iteration has said, for loop agents:
// the attempt has failed and is made again.
func (h *History) Undo(at session.Address) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = slices.DeleteFunc(h.open, func(ev *session.Event) bool { return ev.Address.Under(at) })
}

// End takes down what the running iteration came to, for loop agents. Its events
// are those that were added.
func (h *History) End(it PastIteration) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	it.Events, h.open = h.open, nil
	h.past = append(h.past, it)
}

// Before are the iterations with smaller numbers, the oldest first. It is a part
// of the history: do not change it.
func (h *History) Before(number int) []PastIteration {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.past)
	for n > 0 && h.past[n-1].Number >= number { // nearly all are asked for
		n--
	}
	return h.past[:n:n]
}

// Keep returns what make has made under a key, for as long as the loop runs: so
// what is folded from the history is not folded again for each iteration. Other
// steps may ask for the same at the same time; make must not ask this history.
func (h *History) Keep(key any, make func() any) any {
	if h == nil {
		return make()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok := h.kept[key]
	if !ok {
		if h.kept == nil {
			h.kept = map[any]any{}
		}
		v = make()
		h.kept[key] = v
	}
	return v
}
