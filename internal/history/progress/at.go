// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// StateAfter returns a session's state after the event with the sequence number seq, without temp:
// keys. events is the whole log, oldest first, and initial the state that the session was created
// with, which may be nil. If the events are an outline, whole reads one of them in full; otherwise
// it may be nil.
func StateAfter(initial map[string]any, events iter.Seq[*session.Event], seq int64, whole Whole) map[string]any {
	f := StateFold{Initial: initial}
	for ev := range events {
		if ev.Seq > seq {
			break
		}
		f.Add(ev)
	}
	return f.State(whole)
}

// StateFold computes the state of a session from its events. It keeps none of them.
type StateFold struct {
	// Initial is the state that the session was created with; nil if it was empty.
	Initial map[string]any

	view  *session.View
	at    session.Address // the iteration of the last event
	ended session.Address // the iteration that the last event ended; "" if it ended none
}

// Add takes the next event of the log.
func (f *StateFold) Add(ev *session.Event) {
	if f.view == nil {
		state := make(map[string]any)
		maps.Copy(state, f.Initial)
		f.view = session.NewView(session.ViewConfig{State: state, StateOnly: true})
	}
	if f.ended != "" {
		f.view.EndIteration(f.ended)
		f.ended = ""
	}
	f.view.Apply(byWriter(ev))
	f.at = passOf(ev.Address)
	if n, ended := endedPass(ev); ended {
		f.at = session.Address(passName(ev.Address, n))
		f.ended = f.at
	}
}

// State returns the state after the last event, as the iteration of that event sees it. If the events were an outline,
// whole reads one of them in full.
func (f *StateFold) State(whole Whole) map[string]any {
	if f.view == nil {
		all := make(map[string]any)
		maps.Copy(all, f.Initial)
		return all
	}
	all := maps.Collect(f.view.StateAt(f.at).All())
	cut := make(map[int64][]string) // the keys by the event that has written them, which is read once
	for key, val := range all {
		if seq, ok := writtenBy(val); ok {
			cut[seq] = append(cut[seq], key)
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(cut)) {
		delta := whole.Of(&session.Event{Seq: seq, Omitted: 1}).Actions.StateDelta
		for _, key := range cut[seq] {
			all[key] = delta[key]
		}
	}
	return all
}

// Whole returns an event of an outline with all its texts; a complete event is returned unchanged.
// [session.Log.Full] is such a function.
type Whole func(*session.Event) *session.Event

// Of returns the event with all its texts. A nil Whole means that events are complete.
func (w Whole) Of(ev *session.Event) *session.Event {
	if w == nil || ev == nil || ev.Omitted == 0 {
		return ev
	}
	return w(ev)
}

// All yields the events with all their texts.
func (w Whole) All(events iter.Seq[*session.Event]) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for ev := range events {
			if !yield(w.Of(ev)) {
				return
			}
		}
	}
}

// writer is the key of a map that stands for a value that may be cut: it holds the
// number of the event that has written it. No key of a state has a zero byte.
const writer = "\x00writer"

// writtenBy returns the event that a placeholder for a value refers to.
func writtenBy(val any) (seq int64, ok bool) {
	m, _ := val.(map[string]any)
	n, ok := m[writer].(float64)
	return int64(n), ok
}

// byWriter replaces values of an outline's event that may be cut by placeholders.
func byWriter(ev *session.Event) *session.Event {
	if ev.Omitted == 0 {
		return ev
	}
	c := *ev
	c.Actions.StateDelta = maps.Clone(ev.Actions.StateDelta)
	for key, val := range c.Actions.StateDelta {
		if s, ok := val.(string); ok && strings.HasSuffix(s, "…") && !statekey.OfLog(key) {
			c.Actions.StateDelta[key] = map[string]any{writer: float64(ev.Seq)}
		}
	}
	return &c
}

// endedPass returns the iteration whose end an event reports.
func endedPass(ev *session.Event) (int, bool) {
	if ev.Mark == nil || ev.Mark.Kind != mark.KindIterationFinished {
		return 0, false
	}
	var it loop.IterationRecord
	return it.Number, ev.Mark.Decode(&it) == nil && it.Number > 0
}

// IterationSeq returns the sequence number of the event with which an iteration of a loop of the
// last run ended, before a rollback; for an iteration that is running, that of its last event.
// Iteration 0 stands for the place before the first iteration. It returns 0 if the loop has no such
// iteration. events are those of the run that are not superseded.
func IterationSeq(events iter.Seq[*session.Event], at session.Address, iteration int) int64 {
	var began, last, ended int64
	pass := session.Address(passName(at, iteration))
	for ev := range events {
		if ev.Address == at && ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStarted {
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

// passOf returns the iteration that contains a step's address, or the loop whose finalizer it is.
func passOf(at session.Address) session.Address {
	if i := strings.LastIndexByte(string(at), '/'); i >= 0 {
		return at[:i]
	}
	return at
}
