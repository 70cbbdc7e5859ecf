// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"maps"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// lostRace returns the decision of a race in favor of the loop that the event with a sequence number belongs to, in
// place of the recorded decision. It returns nil if the event belongs to no loop that has lost a race, or if the loop
// has finished a later iteration before the decision. Of races within each other it takes the innermost.
func lostRace(view *session.View, id string, seq int64) (*session.Event, error) {
	var at session.Address
	for ev := range view.Outline() {
		if ev.Seq == seq {
			at = ev.Address
			break
		}
	}
	var decided *session.Event
	var d mark.RaceDecided
	var lane session.Address
	for ev := range counting(view, id, mark.KindRaceDecided) {
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
	for ev := range counting(view, id, mark.KindIterationFinished, mark.KindLoopStopped) {
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
	fork := *view.FullEvent(decided)
	m, err := mark.New(mark.KindRaceDecided, d)
	if err != nil {
		return nil, err
	}
	fork.Mark, fork.Actions.StateDelta = m, maps.Clone(fork.Actions.StateDelta)
	for key := range fork.Actions.StateDelta { // the key of the winner's name, if there is one
		fork.Actions.StateDelta[key] = d.Winner
	}
	return &fork, nil
}
