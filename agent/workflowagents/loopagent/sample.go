// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// sample returns the sample that a step is about to give, which is one of several answers of the judge to one question. It
// returns nil if the step is not the judge, or is asked only once.
func (r *run) sample(d *loop.Decision) *drive.Sample {
	judge := r.plan.Score != nil && r.plan.Score.Judge != nil && r.plan.Score.Judge.Step == r.plan.Steps[d.Step].Name
	if !judge || r.phase.finalizing {
		return nil
	}
	compares := r.plan.Score.Judge.Compare != ""
	switch {
	case r.tally.Rejudge && r.loop.Since > 0 && r.questions.legBest != nil:
		return r.questions.legBest.Sample(r.current.address, false)
	case r.tally.Rejudge && r.loop.Since == 0 && r.questions.best != nil:
		return r.questions.best.Sample(r.current.address, false)
	case r.tally.Rejudge:
		return nil
	case d.Sample <= 1 && d.Attempt == 1 && (d.Sample == 1 || r.plan.Rejudges()):
		if r.questions.iteration = r.loop.Question(r.current.address); compares {
			state := r.snapshot(r.loop.Address).state
			other := r.snapshots.rival
			if other == nil { // there is only one version
				other = state
			}
			r.questions.iteration.Compare(state, other)
		}
	}
	more := uint(d.Sample) < r.plan.Score.Judge.Most()
	switch {
	case d.Sample == 0:
		return nil
	case d.Sample%2 == 0 && compares:
		return r.questions.iteration.Swapped(r.current.address, more)
	}
	return r.questions.iteration.Sample(r.current.address, more)
}

// noteSample records the state keys that an event of the judge writes.
func (r *run) noteSample(ev *session.Event) {
	if r.questions.iteration == nil || ev.Partial || r.current.address.Agent() != r.plan.Score.Judge.Step {
		return
	}
	if !r.tally.Rejudge {
		r.questions.iteration.Note(r.place, ev)
	}
	r.loop.Sample.Wrote(ev)
}
