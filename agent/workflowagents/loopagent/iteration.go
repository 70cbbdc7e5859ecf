// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

func (r *run) beginIteration(n int) bool {
	r.loop.Iteration = n
	if r.looks && r.loop.History == nil {
		r.loop.History = new(agent.History)
	}
	r.place(n)
	r.cur = nil
	return r.callBack(len(r.cfg.BeforeIteration), func(i int, ctx agent.Context) error {
		return r.cfg.BeforeIteration[i](ctx, n)
	})
}

// endIteration takes down what an iteration came to.
func (r *run) endIteration(it loop.IterationRecord) bool {
	if it.Complete && r.cur != nil { // silence does not take back what was said
		r.last = r.cur
	}
	r.loop.Score = it.Score
	if it.Best {
		r.best, r.loop.BestScore = r.cur, it.Score
	}
	r.forget(r.loop.Pass)
	if r.loop.History != nil {
		r.loop.History.End(agent.PastIteration{
			Number: it.Number, Score: it.Score, Delta: it.Delta, Percent: it.Percent, Best: it.Best, Complete: it.Complete,
			Rejected: it.Rejected, Undone: it.Rejected != "" && r.plan.OnRegression == loop.RollbackOnWorse, Failures: it.Failures,
		})
	}
	if agent.Marks(r.ctx) && !r.mark(session.MarkIterationFinished, it, nil) {
		return false
	}
	ok := r.callBack(len(r.cfg.AfterIteration), func(i int, ctx agent.Context) error {
		return r.cfg.AfterIteration[i](ctx, it)
	})
	r.loop.Rejected = nil
	if it.Rejected != "" {
		r.loop.Rejected = &agent.Rejected{Iteration: it.Number, Reason: it.Rejected}
	}
	rolls := r.plan.OnRegression == loop.RollbackOnWorse && it.Best
	if !r.cfg.KeepStates && !rolls && it.Rejected == "" {
		return ok
	}
	now := r.snapshot(r.loop.Address) // with what the callbacks made of it
	if rolls {
		r.accepted = now
	}
	if r.loop.Rejected != nil {
		r.loop.Rejected.State = now
	}
	if r.cfg.KeepStates {
		r.loop.Prev = now
		if it.Best {
			r.loop.Best = now
		}
	}
	return ok
}

// callBack calls n iteration callbacks and yields what they changed.
func (r *run) callBack(n int, call func(int, agent.Context) error) bool {
	if n == 0 {
		return true
	}
	ev := &session.Event{}
	in, done := r.inTime()
	defer done()
	ctx := agent.NewCallbackContext(in, &ev.Actions)
	for i := range n {
		err := call(i, ctx)
		if in.Err() != nil && r.ctx.Err() == nil {
			break // the next step finds no time left, and says so
		}
		if err != nil {
			r.fail(fmt.Errorf("iteration callback: %w", err))
			return false
		}
	}
	r.touch(ev)
	return len(ev.Actions.StateDelta) == 0 && len(ev.Actions.ArtifactDelta) == 0 || r.yield(ev, nil)
}

// inTime is the loop's context for as long as the loop may take. What passes
// until done is called is the loop's time, unless it is an earlier part of the run
// that is told again.
func (r *run) inTime() (ctx agent.InvocationContext, done func()) {
	if !r.timed || agent.Replays(r.ctx) {
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
