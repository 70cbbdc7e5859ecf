// SPDX-License-Identifier: Apache-2.0

// Package stops finds in the log of a run why it stopped: the stop records of its outermost loops, without those of the
// loops that have lost a race, which decide nothing about the run.
//
//	var f stops.Fold
//	for ev := range events {
//		f.Add(ev)
//	}
//	return f.Last()
package stops

import (
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Fold keeps the stop records of the outermost loops of a run, and the decisions of their races. The zero value is ready
// to use.
type Fold struct {
	stops []stop
	races map[session.Address]string // the winner, by the agent that runs the loops
}

type stop struct {
	at  session.Address
	rec *loop.StopRecord
}

// Add takes the next event of the run that is not superseded. It ignores a mark that cannot be read.
func (f *Fold) Add(ev *session.Event) {
	switch {
	case ev.Mark == nil:
	case ev.Mark.Kind == mark.KindLoopStopped:
		rec := new(loop.StopRecord)
		if ev.Mark.Decode(rec) == nil {
			f.Stop(ev, rec)
		}
	case ev.Mark.Kind == mark.KindRaceDecided:
		var d mark.RaceDecided
		if ev.Mark.Decode(&d) == nil {
			f.Race(ev, &d)
		}
	}
}

// Stop takes the stop record of the loop of an event. The record of a loop inside another one does not count.
func (f *Fold) Stop(ev *session.Event, rec *loop.StopRecord) {
	if ev.Iteration == 0 {
		f.stops = append(f.stops, stop{ev.Address, rec})
	}
}

// Race takes the decision of the race of an event. If the events begin after the winner has stopped, its record has only what
// the decision tells of it.
func (f *Fold) Race(ev *session.Event, d *mark.RaceDecided) {
	if ev.Iteration != 0 {
		return
	}
	if f.races == nil {
		f.races = make(map[session.Address]string)
	}
	f.races[ev.Address] = d.Winner
	at := ev.Address + "/" + session.Address(d.Winner)
	s := d.Won()
	if s == nil || d.Continues || slices.ContainsFunc(f.stops, func(s stop) bool { return s.at == at }) {
		return
	}
	f.stops = append(f.stops, stop{at, &loop.StopRecord{Loop: s.Loop, Reason: loop.StopReason(s.Stop), Iterations: s.Iterations,
		Iteration: s.Iterations, BestVersion: loop.BestVersion{BestScore: s.Score, BestIteration: s.Best, BestError: s.Error}}})
}

// Lost reports whether the step at an address belongs to a loop that has lost a race.
func (f *Fold) Lost(at session.Address) bool {
	for race, winner := range f.races {
		if rest, in := strings.CutPrefix(string(at), string(race)+"/"); in {
			name, _, _ := strings.Cut(rest, "/")
			if session.Address(name).Place() != session.Address(winner).Place() {
				return true
			}
		}
	}
	return false
}

// All returns the records, in the order in which the loops stopped.
func (f *Fold) All() []*loop.StopRecord {
	var all []*loop.StopRecord
	for _, s := range f.stops {
		if !f.Lost(s.at) {
			all = append(all, s.rec)
		}
	}
	return all
}

// Last returns the last of the records; nil if there is none.
func (f *Fold) Last() *loop.StopRecord {
	for _, s := range slices.Backward(f.stops) {
		if !f.Lost(s.at) {
			return s.rec
		}
	}
	return nil
}
