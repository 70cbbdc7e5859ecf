// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/session/mark"
)

// Hints are what people tell a run while it runs. The next iteration that begins takes all hints that wait, and the agents in it
// that ask a model, and coding agents, get them: see drive.Loop. Each hint is taken once; loops that run side by side, in branches of a
// parallel agent, each take it. A run without a loop takes none. The zero value has no hints and is ready to use.
type Hints struct {
	mu    sync.Mutex
	all   []mark.Hint
	taken map[string][]string // the branches that have taken a hint, by its ID
}

// Add adds a hint, unless there is one with its ID.
func (h *Hints) Add(hint mark.Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.ContainsFunc(h.all, func(one mark.Hint) bool { return one.ID == hint.ID }) {
		h.all = append(h.all, hint)
	}
}

// Take returns the hints for an iteration that begins in a branch. They are those that neither this branch, nor one around it or inside
// it, has taken. A nil h has none.
func (h *Hints) Take(branch string) (all []mark.Hint) {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, hint := range h.all {
		if !slices.ContainsFunc(h.taken[hint.ID], func(other string) bool { return within(branch, other) || within(other, branch) }) {
			all = append(all, hint)
			h.take(branch, hint.ID)
		}
	}
	return all
}

// Recall replaces what has been taken by what the log of a resumed run says: marks of the kind mark.KindHinted, by branches.
func (h *Hints) Recall(logged func(yield func(branch string, m *mark.Hinted) bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken = nil
	for branch, m := range logged {
		for _, hint := range m.Hints {
			h.take(branch, hint.ID)
		}
	}
}

// take notes that a branch has taken a hint. h.mu is held.
func (h *Hints) take(branch, id string) {
	if h.taken == nil {
		h.taken = make(map[string][]string)
	}
	h.taken[id] = append(h.taken[id], branch)
}

// within reports whether a branch is another one, or inside it.
func within(branch, other string) bool {
	return other == "" || branch == other || strings.HasPrefix(branch, other+".")
}
