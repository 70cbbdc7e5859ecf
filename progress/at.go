// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"maps"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// StateAfter is a session's state as it was after the event with a sequence
// number, temp: keys apart. events are its log, oldest first, whole, and initial
// the state that it was made with; it may be nil.
func StateAfter(initial map[string]any, events []*session.Event, seq int64) map[string]any {
	state := maps.Clone(initial)
	if state == nil {
		state = make(map[string]any)
	}
	view := session.NewView(session.ViewConfig{State: state})
	var at session.Address
	for _, ev := range events {
		if ev.Seq > seq {
			break
		}
		view.Apply(ev)
		at = passOf(ev.Address)
		if n, ended := endedPass(ev); ended {
			at = session.Address(fmt.Sprintf("%s[%d]", ev.Address, n))
			if ev.Seq < seq {
				view.EndIteration(at)
			}
		}
	}
	return maps.Collect(view.StateAt(at).All())
}

// endedPass is the iteration that an event says to have ended.
func endedPass(ev *session.Event) (int, bool) {
	if ev.Mark == nil || ev.Mark.Kind != session.MarkIterationFinished {
		return 0, false
	}
	var it loop.IterationRecord
	return it.Number, ev.Mark.Decode(&it) == nil && it.Number > 0
}

// IterationSeq is the place in a log where an iteration of a loop of the last run
// ended, before it was undone if it was; of one that is under way, that of its
// last event. Iteration 0 is what there was before the loop's first. It is 0 if
// the loop has no such iteration.
func IterationSeq(events []*session.Event, at session.Address, iteration int) int64 {
	var began, last, ended int64
	pass := session.Address(fmt.Sprintf("%s[%d]", at, iteration))
	for _, ev := range session.Current(LastRun(events)) {
		if ev.Address == at && ev.Mark != nil && ev.Mark.Kind == session.MarkLoopStarted {
			began, last, ended = ev.Seq, 0, 0 // its last attempt counts
		}
		if ev.Address.Under(pass) {
			last = ev.Seq
		}
		if n, ok := endedPass(ev); ok && ev.Address == at && n == iteration {
			ended = ev.Seq
		}
	}
	switch {
	case iteration == 0:
		return began
	case ended > 0:
		return ended
	}
	return last
}
