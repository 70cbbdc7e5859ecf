// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

func (r *run) beginIteration(n int) bool {
	if n == 1 && r.tally.BaselineOver {
		r.keepStart()
	}
	r.loop.Iteration = n
	if r.readsHistory && r.loop.History == nil {
		r.loop.History = new(drive.History)
	}
	r.setAddresses(n)
	if r.mode.tracksResults {
		r.results.candidates.begin(n)
	}
	r.writes.ofCallbacks = nil
	return len(r.cfg.BeforeIteration) == 0 || r.callBefore(n)
}

// keepStart keeps the start, which has just been scored, as what the loop hands back if no iteration is better.
func (r *run) keepStart() {
	now := r.snapshot(r.loop.Address)
	if r.restores() {
		r.snapshots.initial = now
	}
	if r.tally.Start == nil {
		return
	}
	r.questions.best, r.questions.start = r.questions.iteration, r.questions.iteration
	r.results.candidates.start = candidate{value: now.state[r.cfg.Result], handBack: r.handBackValues()}
	r.loop.BestScore, r.snapshots.rival = r.tally.Start, now.state
	if r.cfg.KeepStates {
		r.loop.Best = now.state
	}
}

// callBefore and callAfter are apart from their callers, which pay for no closure where
// there is no callback.
func (r *run) callBefore(n int) bool {
	return r.callBack(len(r.cfg.BeforeIteration), func(i int, ctx agent.Context) error {
		return r.cfg.BeforeIteration[i](ctx, n)
	})
}

func (r *run) callAfter(it loop.IterationRecord) bool {
	return r.callBack(len(r.cfg.AfterIteration), func(i int, ctx agent.Context) error {
		return r.cfg.AfterIteration[i](ctx, it)
	})
}

// endIteration records the outcome of an iteration.
func (r *run) endIteration(it *loop.IterationRecord) bool {
	if r.mode.tracksResults {
		kept := r.handBackValues()
		if r.tally.RollbackDue { // what is undone is not handed back either
			kept = nil
		}
		r.results.candidates.end(it, r.value(), kept)
	}
	r.observeIterationEnd(it, nil)
	r.loop.Score = it.Score
	if it.Best {
		r.loop.BestScore, r.questions.best = it.Score, r.questions.iteration
	}
	r.clearIterationKeys(r.loop.IterationAddress)
	if r.loop.History != nil {
		r.loop.History.End(drive.PastIteration{
			Number: it.Number, Score: it.Score, Delta: it.Delta, Percent: it.Percent, Best: it.Best,
			Complete: it.Complete,
			Rejected: it.Rejected, RolledBack: it.Rejected != "" && r.plan.OnRegression == loop.RollbackOnWorse,
			Failures: it.Failures,
		})
	}
	if r.mode.durable && !r.mark(mark.KindIterationFinished, *it, nil) {
		return false
	}
	ok := len(r.cfg.AfterIteration) == 0 || r.callAfter(*it)
	r.loop.Rejected = nil
	if it.Rejected != "" {
		r.loop.Rejected = &drive.Rejected{Iteration: it.Number, Reason: it.Rejected}
	}
	goal, own, rival := r.restores() && it.Best, r.tally.Own.Iteration == it.Number, r.tally.Rival.Iteration == it.Number
	if !r.cfg.KeepStates && !goal && !own && !rival && it.Rejected == "" {
		return ok
	}
	now := r.snapshot(r.loop.Address) // with what the callbacks made of it
	if goal {
		r.snapshots.accepted = now
	}
	if own {
		r.snapshots.legBest, r.questions.legBest = now, r.questions.iteration
	}
	if rival {
		r.snapshots.rival = now.state
	}
	if r.loop.Rejected != nil {
		r.loop.Rejected.State = now.state
	}
	if r.cfg.KeepStates {
		r.loop.Prev = now.state
		if it.Best {
			r.loop.Best = now.state
		}
		if it.Met {
			r.snapshots.met = now.state
		}
	}
	return ok
}

// chooseBestFor chooses the best iteration for the finalizer by the reason for which the loop has stopped
// (LOOP 16), because an iteration with a better score may have missed the loop's target.
func (r *run) chooseBestFor(reason loop.StopReason) {
	t, l := &r.tally, r.loop
	switch {
	case r.plan.Score == nil:
	case reason == loop.ReasonTarget:
		l.Best, l.BestScore = l.Prev, l.Score
	case reason == loop.ReasonCondition && t.Ended.Number != 0:
		l.Best, l.BestScore = r.snapshots.met, t.MetScore
	case reason == loop.ReasonCondition: // in the middle of an iteration
		if l.Best, l.BestScore = nil, nil; r.cfg.KeepStates {
			l.Best = r.snapshot(l.Address).state
		}
	}
}

// callBack calls n iteration callbacks and yields what they changed.
func (r *run) callBack(n int, call func(int, agent.Context) error) bool {
	in, done := r.withLoopDeadline()
	defer done()
	ev := &session.Event{}
	gone, err := r.callWithGrace(in, func(ctx agent.InvocationContext) error {
		cb := agent.NewCallbackContext(ctx, &ev.Actions)
		for i := range n {
			if err := call(i, cb); err != nil || ctx.Err() != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case gone && r.ctx.Err() == nil: // its changes too; the next step finds no time left, and says so
		return true
	case gone:
		r.fail(context.Cause(r.ctx))
		return false
	case err != nil && (in.Err() == nil || r.ctx.Err() != nil || isPanic(err)):
		r.fail(fmt.Errorf("iteration callback: %w", err))
		return false
	}
	if err := ev.Normalize(); err != nil {
		r.fail(fmt.Errorf("iteration callback: %w", err))
		return false
	}
	if a := &ev.Actions; len(a.StateDelta) == 0 && len(a.ArtifactDelta) == 0 && !a.AsksToLeave() {
		ev = nil
	}
	if ev = r.place.MatchCallbackEvent(ev); ev == nil {
		return true
	}
	r.noteChangedKeys(ev)
	if r.writes.on {
		r.writes.ofCallbacks = r.writes.addKeys(r.writes.ofCallbacks, ev)
	}
	switch a := &ev.Actions; {
	case !a.AsksToLeave():
	case ev.Seq != 0: // it is in the log, and as it is
		r.exits.byCallback = new(*a.Exit)
	default:
		r.acceptCallbackExit(a)
	}
	return r.yield(ev, nil)
}

// callWithGrace calls f under a context. When f's own time is over it changes nothing any more.
// Gone says that f did not heed its context, and was left behind. A panic of f is an error.
func (r *run) callWithGrace(in agent.InvocationContext, f func(agent.InvocationContext) error) (gone bool, err error) {
	if !r.mode.timed {
		return false, callRecovering(in, f)
	}
	ctx, shut := drive.At(in).Fenced()
	over := make(chan error, 1)
	go func() {
		err := errors.New("it ended its goroutine by runtime.Goexit; it must return instead") // as t.Fatal does
		defer func() { over <- err }()
		err = callRecovering(ctx, f)
	}()
	select {
	case err := <-over:
		return false, err
	case <-in.Done():
		if r.ctx.Err() == nil {
			shut(context.Cause(in))
		}
	}
	t := time.NewTimer(r.mode.grace)
	defer t.Stop()
	select {
	case err := <-over:
		return false, err
	case <-t.C:
		shut(context.Cause(in))
		return true, nil
	}
}

// callRecovering calls f and makes a panic of it an error.
func callRecovering(ctx agent.InvocationContext, f func(agent.InvocationContext) error) (err error) {
	defer agent.Recover(&err)
	return f(ctx)
}

// acceptCallbackExit takes the request of an iteration callback to leave the loop. It is the loop's
// own, and needs no permission.
func (r *run) acceptCallbackExit(a *session.EventActions) {
	x := &session.Exit{Plain: true}
	if a.Exit != nil {
		x = new(*a.Exit)
	}
	if x.By = r.Name(); x.Reason == "" {
		x.Reason = "an iteration callback asked to leave"
	}
	if !r.cfg.Propagate {
		x.HandledBy = r.loop.Address
	}
	a.Escalate, a.Exit, r.exits.byCallback = true, x, x
}

// applyCallbackExit makes the loop leave next, as a callback has requested. An earlier reason to stop stays.
func (r *run) applyCallbackExit(d *loop.Decision) bool {
	x := r.exits.byCallback
	if r.exits.byCallback = nil; x == nil || r.tally.Exit != nil || d.Action != loop.RunStep && d.Action != loop.Rollback {
		return false
	}
	r.tally.Exit = exitOf(x)
	return true
}

// withLoopDeadline returns the loop's context with the loop's time limit. The time until done is called
// counts as the loop's, unless an earlier part of the run is being replayed.
func (r *run) withLoopDeadline() (ctx agent.InvocationContext, done func()) {
	if !r.mode.timed || r.place.IsReplay() {
		return r.ctx, func() {}
	}
	began, cancel := r.now(), func() {}
	ctx = r.ctx
	if left, ok := r.plan.Left(&r.tally); ok {
		var bounded context.Context
		bounded, cancel = context.WithTimeoutCause(r.ctx, left, &TimeoutError{Kind: loop.TotalTimeout, After: left})
		ctx = r.ctx.WithContext(bounded)
	}
	return ctx, func() {
		cancel()
		r.tally.Between += r.now().Sub(began)
	}
}
