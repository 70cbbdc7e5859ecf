// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// slice is the part of a loop up to the moment at which it is known whether it is better than those beside it.
type slice struct {
	*drive.Slice
	whole      *loop.Plan    // the plan of the loop without the slice
	loopBudget *budget.Meter // the budget of the loop without that of the slice; nil if nobody asks
	decided    bool          // it is known whether the loop goes on
}

// applySlice gives the loop the plan of its slice, if it has one.
func (r *run) applySlice() {
	s := drive.SliceOf(r.ctx, r.Name())
	if s == nil {
		return
	}
	r.spending.slice = &slice{Slice: s, whole: r.plan}
	own := *r.plan
	if s.Iterations > 0 && (own.MaxIterations == 0 || s.Iterations < own.MaxIterations) {
		own.MaxIterations = s.Iterations
	}
	own.Budget = least(own.Budget, s.Budget)
	r.plan = &own
	if s.Over == nil {
		r.loop.MaxIterations = own.MaxIterations
	}
}

// least returns a budget that allows what b and the limits of a slice allow.
func least(b *loop.Budget, l budget.Limits) *loop.Budget {
	if l == (budget.Limits{}) {
		return b
	}
	var own loop.Budget
	if b != nil {
		own = *b
	}
	less := func(to *int64, n int64) {
		if n > 0 && (*to == 0 || n < *to) {
			*to = n
		}
	}
	less(&own.Calls, l.Calls)
	less(&own.Tokens, l.Tokens)
	if l.Cost != nil && (own.Cost == nil || *l.Cost < *own.Cost) {
		own.Cost = l.Cost
	}
	return &own
}

// decideSlice waits, where the slice and no limit of the loop ends it, until it is known whether the loop goes on. over
// reports that next is done; more, whether the loop continues.
func (r *run) decideSlice(d *loop.Decision) (more, over bool) {
	s := r.spending.slice
	if s == nil || s.Over == nil || s.decided || d.Stop == nil || !d.Stop.Reason.Limit() {
		return false, false
	}
	t := r.tally
	if s.whole.Extend(&t) != nil {
		return false, false
	}
	s.decided = true
	switch goesOn := s.Over(r.ctx, r.standing(d.Stop)); {
	case r.ctx.Err() != nil:
		r.fail(context.Cause(r.ctx))
		return false, true
	case !goesOn:
		return false, false
	}
	r.tally, r.plan, r.phase.lastEnded = t, s.whole, max(r.phase.lastEnded, t.Ended.Number)
	if s.loopBudget != nil && s.Budget != (budget.Limits{}) {
		r.spending.budget = s.loopBudget.Child(budget.Limits{})
		clear(r.steps.direct) // they have the budget of the slice
		r.steps.guarded = nil
		r.reserveForFinalizer()
	}
	if !r.mode.durable {
		return true, true
	}
	r.comparePlans()
	return r.mark(mark.KindLoopContinued, r.plan, nil), true
}

// standing returns what the loop has come to, for a comparison with those beside it.
func (r *run) standing(rec *loop.StopRecord) mark.Standing {
	st := mark.Standing{Loop: r.Name(), Score: rec.BestScore, Error: r.plan.BestError(&r.tally), Best: rec.BestIteration,
		Iterations: rec.Iterations, Stop: string(rec.Reason)}
	if rec.Reason == loop.ReasonError {
		st.Failure = rec.Detail
	}
	return st
}
