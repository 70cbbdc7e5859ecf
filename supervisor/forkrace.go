// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"maps"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// lostRace returns a changed decision of a race for a fork after the event seq. If the event belongs to a loop that lost
// the race, the changed decision makes this loop the winner. lostRace returns nil if the event belongs to no such loop,
// or if the loop finished another iteration between the event and the decision. If races are nested, the innermost counts.
func lostRace(view *session.View, id string, seq int64) (*session.Event, error) {
	var at session.Address
	for ev := range view.Log().Outline() {
		if ev.Seq == seq {
			at = ev.Address
			break
		}
	}
	var decided *session.Event
	var d mark.RaceDecided
	var lane session.Address
	for ev := range currentMarks(view, id, mark.KindRaceDecided) {
		var data mark.RaceDecided
		if err := ev.Mark.Decode(&data); err != nil {
			return nil, err
		}
		for _, s := range data.Standings {
			to := ev.Address + "/" + session.Address(s.Loop)
			if s.Loop != data.Winner && s.Failure == "" && at.Under(to) && len(to) > len(lane) {
				decided, lane, d = ev, to, data
				d.Winner = s.Loop
			}
		}
	}
	if decided == nil || view.Err() != nil {
		return nil, view.Err()
	}
	d.Chosen, d.Continues, d.Ties, d.Reason = true, true, nil, "chosen in a fork of the run"
	for ev := range currentMarks(view, id, mark.KindIterationFinished, mark.KindLoopStopped) {
		switch {
		case ev.Address != lane || ev.Seq > decided.Seq:
		case ev.Mark.Kind == mark.KindLoopStopped:
			d.Continues = false
		case ev.Seq > seq:
			return nil, nil
		}
	}
	if view.Err() != nil {
		return nil, view.Err()
	}
	fork := *view.Log().Full(decided)
	m, err := mark.New(mark.KindRaceDecided, d)
	if err != nil {
		return nil, err
	}
	fork.Mark, fork.Actions.StateDelta = m, maps.Clone(fork.Actions.StateDelta)
	for key := range fork.Actions.StateDelta { // the delta has at most one key, whose value is the winner's name
		fork.Actions.StateDelta[key] = d.Winner
	}
	return &fork, nil
}
