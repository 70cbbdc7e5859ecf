// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// record writes the mark that a step has finished, with the step's outcome for the loop, so that a
// recorded run can be tested with another plan. A step that was not run gets its marks here.
func (r *run) record(d *loop.Decision, o *loop.Outcome) bool {
	fin, ev := r.fin, r.over
	switch {
	case ev == nil:
		begun := r.markOf(r.here, mark.KindStepStarted, nil)
		begun.Mark.Joins = true // the end of the step follows
		if !r.pass(begun) {
			return false
		}
		fin = new(mark.StepFinished)
		if o.Failure != nil {
			fin.Error, fin.At = o.Failure.Message, string(r.here)
			fin.Timeout = o.Failure.Kind == d.TimeoutKind && d.TimeoutKind != ""
		}
		ev = r.markOf(r.here, mark.KindStepFinished, nil)
	case ev.Mark.Data != nil: // the step was left behind
		fin = new(mark.StepFinished)
		if err := ev.Mark.Decode(fin); err != nil {
			r.yield(nil, err)
			return false
		}
	}
	fin.Again = o.Failure != nil && !drive.Overall(r.err) && r.plan.Retries(&r.tally, *o)
	fin.Canceled = o.Canceled != "" || r.ctx.Err() != nil && isLost(context.Cause(r.ctx)) // then it is made again
	state := o.State
	o.State = r.apart.of(state) // the log has the rest
	err := r.finish(ev.Mark, fin, o)
	o.State = state
	if err != nil {
		r.yield(nil, err)
		return false
	}
	r.over = nil
	ev.Mark.Joins = r.joins && o.Failure == nil && !fin.Canceled
	return r.pass(ev)
}

// pass hands a mark on. A canceled run's marks are still written.
func (r *run) pass(ev *session.Event) bool { return r.yield(ev, nil) || r.ctx.Err() != nil }
