// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// yieldEndMark yields the mark that a step has finished. The mark includes the step's outcome for the loop, so that a
// recorded run can be tested with another plan. For a step that did not run, yieldEndMark also yields the mark of its start.
func (r *run) yieldEndMark(d *loop.Decision, o *loop.Outcome) bool {
	fin, ev := r.current.endData, r.current.endMark
	switch {
	case ev == nil:
		begun := r.markFor(r.current.address, mark.KindStepStarted, nil)
		begun.Mark.Batch = true // the end of the step follows
		if !r.yieldMark(begun) {
			return false
		}
		fin = new(mark.StepFinished)
		if o.Failure != nil {
			fin.Error, fin.At = o.Failure.Message, string(r.current.address)
			fin.Timeout = o.Failure.Kind == d.TimeoutKind && d.TimeoutKind != ""
		}
		ev = r.markFor(r.current.address, mark.KindStepFinished, nil)
	case ev.Mark.Data != nil: // the step was abandoned or taken from the cache, so current.endData is not its data
		fin = new(mark.StepFinished)
		if err := ev.Mark.Decode(fin); err != nil {
			r.yield(nil, err)
			return false
		}
	}
	fin.Again = o.Failure != nil && !drive.Overall(r.failures.current) && r.plan.Retries(&r.tally, *o)
	fin.Canceled = o.Canceled != "" || r.ctx.Err() != nil && isLogLost(context.Cause(r.ctx)) // a resumed run then runs the step again
	state := o.State
	o.State = r.recordedKeys.valuesIn(state) // the log has the other keys
	err := r.setEndData(ev.Mark, fin, o)
	o.State = state
	if err != nil {
		r.yield(nil, err)
		return false
	}
	r.current.endMark = nil
	ev.Mark.Batch = r.mode.batchesMarks && o.Failure == nil && !fin.Canceled
	return r.yieldMark(ev)
}

// yieldMark yields a mark and reports whether the loop continues. It returns true for a canceled run, whose marks are still
// written.
func (r *run) yieldMark(ev *session.Event) bool { return r.yield(ev, nil) || r.ctx.Err() != nil }
