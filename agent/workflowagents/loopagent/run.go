// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"
	"sync"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// run runs the loop: it carries out one decision of the plan after the other until one of them ends the loop.
func (a *Agent) run(ctx agent.InvocationContext, yield func(*session.Event, error) bool) {
	r := a.begin(ctx, yield)
	r.loop.Started = r.now()
	if r.place.IsReplay() {
		r.useLoggedRules()
	}
	r.applyRaceLimit()
	if r.mode.timed {
		defer r.openBudget()()
	}
	r.prepare()
	if r.mode.durable {
		_, _ = r.chain() // from now on the view adds each event as it is appended; an error comes again at the stop
	}
	if r.place.IsReplay() {
		r.comparePlans()
	}
	if r.mode.durable && !r.mark(mark.KindLoopStarted, r.plan, nil) {
		return
	}
	var d loop.Decision
	for r.decide(&d) && r.carryOut(&d) {
	}
	if !r.phase.stopped && r.ctx.Err() != nil { // the run was canceled while the loop yielded an event
		r.fail(context.Cause(r.ctx))
	}
}

// prepare makes the data that only some loops need.
func (r *run) prepare() {
	if p := r.plan; p.NoProgress != nil || p.Score != nil && p.Score.Judge != nil {
		r.current.fingerprint = newFingerprint(r.ctx.Branch(), drive.At(r.ctx).Tree())
	}
	if r.caches() {
		r.steps.cache = newCache()
	}
	switch outer := r.loop.Outer; {
	case outer != nil:
		r.loop.Cache = outer.Cache
	case r.hasInnerLoop:
		r.loop.Cache = new(sync.Map)
	}
	r.writes.on = r.mode.tracksResults
	r.findStaleKeys()
	goesBack := r.restores()
	if goesBack {
		r.snapshots.initial = r.snapshot(r.loop.Address)
	}
	r.loop.IterationAddress = r.loop.Address
	for i := range r.plan.Steps {
		goesBack = goesBack || r.retries(i)
	}
	if goesBack && r.ctx.Branch() != "" {
		r.snapshots.changedKeys = make(map[string]bool)
	}
}

// decide sets d to the plan's next decision, after it has handled the end of an iteration. It reports whether the
// loop continues.
func (r *run) decide(d *loop.Decision) bool {
	*d = r.plan.Next(&r.tally)
	if d.Ended.Number > r.phase.lastEnded {
		r.phase.lastEnded = d.Ended.Number
		if !r.endIteration(&d.Ended) {
			return false
		}
		if r.applyCallbackExit(d) {
			*d = r.plan.Next(&r.tally)
		}
	}
	return true
}

// carryOut carries out a decision and reports whether the loop continues.
func (r *run) carryOut(d *loop.Decision) bool {
	if more, done := r.decideRaceLimit(d); done {
		return more
	}
	if r.phase.notContinued == nil && r.continueWithPlan() {
		r.phase.lastEnded = d.Ended.Number
		return r.mark(mark.KindLoopContinued, r.plan, nil)
	}
	switch d.Action {
	case loop.RunStep:
		if d.Iteration != r.loop.Iteration && !r.beginIteration(d.Iteration) {
			return false
		}
		return r.applyCallbackExit(d) || r.runStep(r.withTimeLeft(d))
	case loop.Rollback:
		return r.rollBack(d)
	case loop.BeginLeg:
		return r.beginLeg(d)
	case loop.Finalize:
		return r.beginFinalizer(d.Stop) && r.runStep(r.withTimeLeft(d))
	default:
		r.stop(d.Stop)
		return false
	}
}

// beginFinalizer ends the iterations, and gives the finalizer the values of the chosen iteration before its first attempt.
func (r *run) beginFinalizer(rec *loop.StopRecord) bool {
	first := !r.phase.finalizing
	r.phase.finalizing, r.loop.Leg, r.loop.Since, r.loop.Hints = true, nil, 0, nil
	r.observeIterationEnd(nil, nil)
	r.loop.IterationAddress = r.loop.Address
	r.chooseBestFor(rec.Reason)
	return !first || r.giveFinalizerValues(rec)
}

// withTimeLeft returns the decision with its time limit reduced by the time of the callbacks that have run since the decision.
func (r *run) withTimeLeft(d *loop.Decision) *loop.Decision {
	if r.tally.Between > 0 {
		*d = r.plan.Next(&r.tally)
	}
	return d
}
