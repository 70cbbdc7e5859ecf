// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// runStep runs one sub-agent and adds its outcome to the tally.
func (r *run) runStep(d *loop.Decision) bool {
	asked := r.exits.accepted
	r.exits.accepted, r.exits.refused, r.failures.current = nil, nil, nil
	r.writes.ofStep = r.writes.ofStep[:0]
	switch {
	case d.Attempt > 1:
		if !r.undoAttempt(d, asked) {
			return false
		}
	case r.retries(d.Step):
		r.snapshots.beforeStep = r.snapshot(r.address(d))
	}
	r.current.address, r.current.endMark = r.address(d), nil
	r.loop.Sample = r.sample(d)
	r.loop.Scores = r.plan.Score.GivenBy(r.plan.Steps[d.Step].Name)
	if r.mode.resumed && r.place.IsReplay() {
		if known, more := r.replayStep(d); known {
			return more
		}
	}
	o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, Between: r.tally.Between}
	o.Started = r.now()
	before := r.usage()
	res, how := r.runDecision(d, &o)
	if r.current.work != nil {
		defer r.finishWork()
	}
	if res.ConsumerLeft {
		return false
	}
	if r.mode.tracksResults && !r.scoresStart(d) {
		r.recordOutput(d.Step, res)
	}
	r.setTimes(&o, res.Ended)
	o.Usage = r.usedSince(before)
	r.outcome(&o, d, res.Err, how)
	o.ExitWords = o.Exit == nil && res.Err == nil && !r.phase.finalizing && r.mentionsExitCall(res.Output)
	if r.mode.durable && !r.yieldEndMark(d, &o) {
		return false
	}
	r.add(d, &o, res.Err)
	return true
}

// setTimes sets the times of an outcome; end is zero if the step did not report when it ended. The times have no
// monotonic clock, because a log has none, and a replayed outcome must give the same duration.
func (r *run) setTimes(o *loop.Outcome, end time.Time) {
	if !r.mode.timed {
		return
	}
	if end.IsZero() {
		end = r.now()
	}
	duration := end.Sub(o.Started)
	o.Started = o.Started.Round(0)
	o.Finished = o.Started.Add(duration)
}

// add adds the outcome of a step to the tally; err is the step's error.
func (r *run) add(d *loop.Decision, o *loop.Outcome, err error) {
	again := r.tally.Rejudge
	if r.plan.Add(&r.tally, *o); again {
		r.loop.BestScore = r.tally.Best
	}
	if o.Failure != nil {
		r.failures.lastStep = r.failures.current
	}
	if o.Failure != nil && drive.Overall(err) && r.tally.Fatal == nil && !r.phase.finalizing {
		r.tally.Fatal = &loop.StepFailure{Step: r.plan.Steps[d.Step].Name, Failure: *o.Failure}
	}
}

// outcome fills in the outcome of a step.
func (r *run) outcome(o *loop.Outcome, d *loop.Decision, err error, how stepEnd) {
	if r.exits.accepted != nil {
		o.Exit = exitOf(r.exits.accepted)
		o.Exit.Waits = r.exits.waits
	} else if r.exits.refused != nil {
		o.Exit = exitOf(r.exits.refused)
	}
	if r.readsState() {
		o.State = r.stateForDecision()
		o.StateSize = r.place.StateSize(r.loop.IterationAddress)
		o.Wrote = r.writtenKeys()
		o.Left = slices.Sorted(maps.Keys(r.writes.stale))
	}
	if r.current.fingerprint != nil && err == nil {
		o.Fingerprint = r.current.fingerprint.sum()
	}
	panicked := err != nil && isPanic(err)
	if cause := r.canceled(); cause != nil && !panicked { // the step may have ended early without an error
		o.Canceled = cause.Error()
		return
	}
	if err == nil && r.ctx.Err() != nil {
		err = context.Cause(r.ctx)
	}
	if err == nil {
		return
	}
	r.failures.current = err
	o.Failure = &loop.Failure{Kind: loop.Failed, Message: err.Error(), Permanent: permanent(err),
		RetryAfter: retryDelay(err)}
	spent, _ := errors.AsType[*budget.ExceededError](err)
	_, tooLarge := errors.AsType[*session.StateLimitError](err)
	switch {
	case panicked:
		o.Failure.Kind = loop.Panicked
	case how == timedOut:
		o.Failure.Kind = d.TimeoutKind
	case how == notRun:
		o.Failure.Kind = d.Refuse.Kind
	case spent != nil:
		o.Failure.Kind = loop.BudgetSpent
		if spent.Budget != r.Name() && r.loop.Outer != nil {
			r.failures.outer = err // so that the loop with that budget stops too
		}
	case tooLarge:
		o.Failure.Kind = loop.StateTooLarge
	default:
		o.Failure.Kind = cmp.Or(r.recordedKind(err), loop.Failed)
	}
	if r.phase.finalizing && drive.Overall(err) {
		r.failures.outer = err
	}
}

// recordedKind returns the kind of the current step's failure in a recorded run, if an agent gives that failure in place of one
// of its own; otherwise "".
func (r *run) recordedKind(err error) string {
	failed, ok := errors.AsType[*agent.StepError](err)
	if !ok || failed.Address != r.current.address {
		return ""
	}
	rec, ok := errors.AsType[*drive.RecordedError](err)
	if !ok {
		return ""
	}
	return rec.LoopKind()
}

func isPanic(err error) bool {
	_, ok := errors.AsType[*agent.PanicError](err)
	return ok
}
