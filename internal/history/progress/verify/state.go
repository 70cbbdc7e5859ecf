// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// state is what the events of a log give.
type state struct {
	told    progress.StateFold
	written map[string]bool // by keys
	log     map[string]any  // the log's own keys
	whole   bool            // see [Log.TellsState]
}

func (s *state) add(ev *session.Event) {
	if s.written == nil {
		s.written, s.log = make(map[string]bool), make(map[string]any)
	}
	s.told.Add(ev)
	for key, val := range ev.Actions.StateDelta {
		if s.written[key] = true; statekey.OfLog(key) {
			s.log[key] = val
		}
	}
	var data mark.RunStarted
	s.whole = s.whole || ev.Actions.StateDelta[mark.KeyNoted] != nil ||
		ev.Mark != nil && ev.Mark.Kind == mark.KindRunStarted && ev.Mark.Decode(&data) == nil && data.Sealed
}

// TellsState reports whether the log accounts for all of its session's own state: each key that other
// sessions do not share was written by an event. That holds if a run began in the session whose end
// is sealed, or if a run recorded the state that it found ([mark.KeyNoted]).
func (l *Log) TellsState() bool { return l.state.whole }

// State compares the state that a store keeps of the session with the state that its events
// give, and lists the differences: a key that no event wrote, a key that is missing or has another
// value, a different status of the last run, and events that the store leaves out. It ignores keys
// that sessions share (app:, user:), and keys without an event if the log does not account for all
// of the state: see [Log.TellsState].
func (l *Log) State(s *session.View) (problems []string) {
	if l.n == 0 {
		return nil
	}
	told := statekey.OwnState(session.NewView(session.ViewConfig{State: l.state.told.State(nil), StateOnly: true}).State())
	kept := statekey.OwnState(s.State())
	keys := maps.Clone(told)
	maps.Copy(keys, kept)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		want, has := told[key]
		written := l.state.written[key]
		switch got, is := kept[key]; {
		case is && !written && l.TellsState():
			problems = append(problems, fmt.Sprintf("key %q is there, and no event has written it", key))
		case is && !written:
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
	of := session.NewView(session.ViewConfig{State: l.state.log, StateOnly: true})
	if !progress.Same(session.RunOf(s), session.RunOf(of)) {
		problems = append(problems, "the status of the last run differs from its events")
	}
	if !progress.Same(s.Log().Superseded(), of.Log().Superseded()) || s.HasStateInLog() != of.HasStateInLog() {
		problems = append(problems, "which events count is not what the events say")
	}
	return problems
}
