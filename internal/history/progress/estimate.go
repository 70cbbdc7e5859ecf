// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"maps"
	"reflect"
	"slices"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Tally returns the plan's counts for the loop. It is whole if the log has the outcome of each step; otherwise Tally
// computes it from the records of the ended iterations. Do not change it.
func (l *Loop) Tally() (t loop.Tally, whole bool) {
	if l.account.whole() {
		return *l.account.now(l), true
	}
	c := l.omission.counts
	c.tally.Scores = slices.Clip(c.tally.Scores)
	for _, it := range l.Iterations {
		if it.Number > l.omission.upTo {
			c.add(it)
		}
	}
	t = c.tally
	// The judge gets samples with the spread that was recorded as noise: see the judge in package loop.
	t.Judge.PastSquares, t.Judge.PastFreedom = c.noise*c.noise/8, 1
	return t, false
}

// Forecast returns the forecast from the iterations that have ended, and from the running one if it
// has a provisional score.
func (l *Loop) Forecast() loop.Forecast {
	t, _ := l.Tally()
	return l.Plan.ForecastAt(&t, l.Moment(0))
}

// provisional reads the scores that the iterations around an event have so far.
func (l *Live) provisional(ev *session.Event) {
	for at := ev.Address; at != ""; at = at.Parent() {
		_, n := lastOf(at)
		s := l.steps[at.Parent()]
		if n == 0 || s == nil || s.Loop == nil || s.Loop.Plan.Score == nil {
			continue
		}
		it := s.Loop.pass(n, l.tree.Now)
		if it.Status != StatusRunning {
			continue
		}
		if x := ev.Actions.Exit; x != nil && x.Score != nil && x.Refused == "" {
			it.Provisional, it.dimensions = x.Score, nil
			continue
		}
		l.measure(s.Loop, it, at, ev)
	}
}

// measure reads a score as the plan would if the iteration ended now. What an
// earlier iteration has left is none of this one's: a key has to be written in
// it, an expression to come to something else than at its beginning.
func (l *Live) measure(lp *Loop, it *Iteration, at session.Address, ev *session.Event) {
	score := lp.Plan.Score
	state := make(map[string]any)
	began := ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted && len(it.begun()) == 1
	if score.Key != "" {
		v, written := ev.Actions.StateDelta[score.Key]
		if !written || v == nil {
			return
		}
		state[score.Key] = v
	} else {
		if len(ev.Actions.StateDelta) == 0 && !began {
			return
		}
		state = maps.Collect(l.view.StateAt(at).All())
	}
	alone := *score
	alone.Judge = nil // one sample is what there is
	p := loop.Plan{Steps: []loop.Step{{Name: "now"}}, Score: &alone}
	t, _ := lp.Tally()
	p.Add(&t, loop.Outcome{Iteration: it.Number, State: state})
	switch {
	case score.Key == "" && began:
		it.before = t.Score
	case score.Key == "" && reflect.DeepEqual(it.before, t.Score):
	case t.Score != nil:
		it.Provisional, it.dimensions = t.Score, t.Dimensions
	}
}

// begun returns the steps of the iteration that have begun.
func (it *Iteration) begun() []*Step {
	return slices.DeleteFunc(slices.Clone(it.Steps), func(s *Step) bool { return s.Address == "" })
}
