// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/statekey"
)

// State compares the state that a store keeps of a session with the state that its events
// give, and lists the differences: a key that no event wrote, a key that is missing or has another
// value, a different status of the last run, and events that the store leaves out. It ignores keys
// that sessions share (app:, user:), and keys without an event if the log does not account for all
// of the state: see [TellsState].
//
// events are all events of the session, oldest first. If they are an outline, whole reads one of
// them in full; otherwise it may be nil.
func State(s *session.View, events []*session.Event, whole progress.Whole) (problems []string) {
	if len(events) == 0 {
		return nil
	}
	after := progress.StateAfter(nil, events, events[len(events)-1].Seq, whole)
	told := statekey.OwnState(session.NewView(session.ViewConfig{State: after, StateOnly: true}).State())
	kept := statekey.OwnState(s.State())
	written, all := make(map[string]bool), TellsState(events)
	log := make(map[string]any) // the log's own keys
	for _, ev := range events {
		for key, val := range ev.Actions.StateDelta {
			if written[key] = true; statekey.OfLog(key) {
				log[key] = val
			}
		}
	}
	keys := maps.Clone(told)
	maps.Copy(keys, kept)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		want, has := told[key]
		switch got, is := kept[key]; {
		case is && !written[key] && all:
			problems = append(problems, fmt.Sprintf("key %q is there, and no event has written it", key))
		case is && !written[key]:
		case is && !has:
			problems = append(problems, fmt.Sprintf("key %q is there, and the last event that wrote it has removed it",
				key))
		case !is:
			problems = append(problems, fmt.Sprintf("key %q is missing, and an event has written it", key))
		case !progress.Same(got, want):
			problems = append(problems, fmt.Sprintf("key %q has another value than the last event that wrote it says",
				key))
		}
	}
	of := session.NewView(session.ViewConfig{State: log, StateOnly: true})
	if !progress.Same(session.RunOf(s), session.RunOf(of)) {
		problems = append(problems, "the status of the last run differs from its events")
	}
	if !progress.Same(s.Superseded(), of.Superseded()) || s.Noted() != of.Noted() {
		problems = append(problems, "which events count is not what the events say")
	}
	return problems
}

// TellsState reports whether a log accounts for all of its session's own state: each key that other
// sessions do not share was written by an event. That holds if a run began in the session whose end
// is sealed, or if a run recorded the state that it found ([mark.KeyNoted]).
func TellsState(events []*session.Event) bool {
	return slices.ContainsFunc(events, func(ev *session.Event) bool {
		if ev.Actions.StateDelta[mark.KeyNoted] != nil {
			return true
		}
		var data mark.RunStarted
		return ev.Mark != nil && ev.Mark.Kind == mark.KindRunStarted && ev.Mark.Decode(&data) == nil && data.Sealed
	})
}
