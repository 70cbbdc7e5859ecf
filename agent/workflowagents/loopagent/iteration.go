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

// beginIteration prepares iteration n and calls the callbacks before it. It reports whether the loop continues.
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
	if !r.takeHints(n) {
		return false
	}
	return len(r.cfg.BeforeIteration) == 0 || r.callBefore(n)
}

// takeHints gives iteration n the hints that people have given the run. In a durable run it records them, so that a resumed run gives
// its agents the same ones. It reports whether the loop continues.
func (r *run) takeHints(n int) bool {
	r.loop.Hints = nil
	if ev := r.place.Recorded(); ev != nil && ev.Mark != nil && ev.Mark.Kind == mark.KindHinted {
		var was mark.Hinted
		if err := ev.Mark.Decode(&was); err != nil {
			r.fail(err)
			return false
		}
		if was.Iteration == n {
			r.loop.Hints = was.Hints
			return r.mark(mark.KindHinted, was, nil)
		}
	}
	if r.place.IsReplay() || r.loop.Outer.GivesScore(r.Name()) { // the loop around it takes them, for agents that get them
		return true
	}
	if r.loop.Hints = r.ctx.RunConfig().Hints.Take(r.ctx.Branch()); r.loop.Hints == nil || !r.mode.durable {
		return true
	}
	return r.mark(mark.KindHinted, mark.Hinted{Iteration: n, Hints: r.loop.Hints}, nil)
}

// keepStart saves the state before the first iteration, which the judge has just scored. The loop hands it back if no
// iteration is better.
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

// callBefore and callAfter are functions of their own, so that a loop without callbacks does not
// allocate their closures.
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

// endIteration records the outcome of an iteration, calls the callbacks after it, and saves the states that later iterations or
// the result need. It reports whether the loop continues.
func (r *run) endIteration(it *loop.IterationRecord) bool {
	if r.mode.tracksResults {
		kept := r.handBackValues()
		if r.tally.RollbackDue { // values that will be undone are not handed back
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
		r.loop.History.End(drive.IterationSummary{
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
		r.loop.Rejected = &drive.RejectedIteration{Iteration: it.Number, Reason: it.Rejected}
	}
	goal, own, rival := r.restores() && it.Best, r.tally.Own.Iteration == it.Number, r.tally.Rival.Iteration == it.Number
	if !r.cfg.KeepStates && !goal && !own && !rival && it.Rejected == "" {
		return ok
	}
	now := r.snapshot(r.loop.Address) // with the changes of the callbacks
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

// chooseBestFor sets the best iteration that the finalizer reads. It depends on the reason for which the loop has
// stopped, because an iteration with a better score may have missed the loop's target.
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
	abandoned, err := r.callWithGrace(in, func(ctx agent.InvocationContext) error {
		cb := agent.NewCallbackContext(ctx, &ev.Actions)
		for i := range n {
			if err := call(i, cb); err != nil || ctx.Err() != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case abandoned && r.ctx.Err() == nil: // drop the callback's changes; the next step fails because no time is left
		return true
	case abandoned:
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
	case ev.Seq != 0: // the event is in the log and must not change
		r.exits.byCallback = new(*a.Exit)
	default:
		r.acceptCallbackExit(a)
	}
	return r.yield(ev, nil)
}

// callWithGrace calls f with the context in, and waits for it. When the context ends, f can no longer change anything.
// If f does not return within the grace after that, callWithGrace abandons it and returns true. A panic in f becomes an
// error.
func (r *run) callWithGrace(in agent.InvocationContext, f func(agent.InvocationContext) error) (abandoned bool, err error) {
	if !r.mode.timed {
		return false, callRecovering(in, f)
	}
	ctx, closeFence := drive.At(in).WithFence()
	ended := make(chan error, 1)
	go func() {
		err := errors.New("it ended its goroutine by runtime.Goexit; it must return instead") // as t.Fatal does
		defer func() { ended <- err }()
		err = callRecovering(ctx, f)
	}()
	select {
	case err := <-ended:
		return false, err
	case <-in.Done():
		if r.ctx.Err() == nil {
			closeFence(context.Cause(in))
		}
	}
	t := time.NewTimer(r.mode.grace)
	defer t.Stop()
	select {
	case err := <-ended:
		return false, err
	case <-t.C:
		closeFence(context.Cause(in))
		return true, nil
	}
}

// callRecovering calls f, and returns a panic in f as an error.
func callRecovering(ctx agent.InvocationContext, f func(agent.InvocationContext) error) (err error) {
	defer agent.Recover(&err)
	return f(ctx)
}

// acceptCallbackExit accepts the request of an iteration callback to leave the loop. The request counts as the
// loop's own and needs no permission.
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

// applyCallbackExit makes the loop stop next if a callback has requested it, and reports whether it does. It does not replace
// an earlier reason to stop.
func (r *run) applyCallbackExit(d *loop.Decision) bool {
	x := r.exits.byCallback
	if r.exits.byCallback = nil; x == nil || r.tally.Exit != nil || d.Action != loop.RunStep && d.Action != loop.Rollback {
		return false
	}
	r.tally.Exit = exitOf(x)
	return true
}

// withLoopDeadline returns the loop's context with the loop's time limit. The time until the caller calls done
// counts in the loop's time. While an earlier part of the run is replayed, there is no limit and no time counts.
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
