// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"iter"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// writing is a recording under way, with what is left over in the state from before
// the loop began: see [loop.Outcome].
type writing struct {
	*Recording
	left       map[string]bool
	atFirst    map[string]bool
	after      map[int]map[string]bool // the iterations
	keys       map[string]bool         // written since the last step ended
	invocation string
}

func begin(r *Recording, state session.State, before []*session.Event) *writing {
	w := &writing{Recording: r, left: make(map[string]bool), after: make(map[int]map[string]bool),
		invocation: r.InvocationID}
	keys := slices.Collect(maps.Keys(statekey.OwnState(state)))
	left, _ := statekey.Leftovers(newest(before), keys, r.Loop, r.InvocationID, 0)
	for _, k := range left {
		w.left[k] = true
	}
	w.atFirst = maps.Clone(w.left)
	return w
}

func newest(evs []*session.Event) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for _, ev := range slices.Backward(evs) {
			if !yield(ev) {
				return
			}
		}
	}
}

// write notes the keys that a step or a callback of the loop writes.
func (w *writing) write(ev *session.Event) {
	if ev.InvocationID != w.invocation || !ev.Address.Under(w.Loop) ||
		ev.Mark != nil && (ev.Mark.Kind == mark.KindRolledBack || ev.Mark.Kind == mark.KindLegStarted) {
		return
	}
	for k := range ev.Actions.StateDelta {
		if w.keys == nil {
			w.keys = make(map[string]bool)
		}
		w.keys[k] = true
		delete(w.left, k)
	}
}

// complete adds to an outcome what the log lacks because the recorded plan did not need it, and
// another plan may: the keys that the step has written, and those left over. An outcome of a plan
// that would have asked is from before this was known, and is left as it is.
func (w *writing) complete(o *loop.Outcome) {
	if asks := w.Plan.Score != nil || w.Plan.StopWhen != nil; o.Wrote != nil || !asks {
		o.Left = slices.Sorted(maps.Keys(w.left))
		if o.Wrote == nil {
			o.Wrote = append([]string{}, slices.Sorted(maps.Keys(w.keys))...)
		}
	}
	w.keys = nil
}

// end notes what is left over when an iteration has ended; restore goes back to it.
func (w *writing) end(ev *session.Event) {
	var it loop.IterationRecord
	if ev.Mark.Decode(&it) == nil {
		w.after[it.Number] = maps.Clone(w.left)
	}
}

func (w *writing) restore(to int) {
	if left, ok := w.after[to]; ok {
		w.left = maps.Clone(left)
	} else {
		w.left = maps.Clone(w.atFirst)
	}
}
