// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// raceLimit has the limits of a loop that runs in a race with other loops. They hold until it is known which loop is the best;
// see [drive.RaceLimit].
type raceLimit struct {
	*drive.RaceLimit
	ownPlan    *loop.Plan    // the plan of the loop without the race
	loopBudget *budget.Meter // the budget of the loop without the race; nil if the loop reads no clock
	budget     *budget.Meter // the budget in the race, within loopBudget
	decided    bool          // it is known whether the loop continues
}

// applyRaceLimit gives the loop the plan with the limits of its race, if it has one.
func (r *run) applyRaceLimit() {
	s := drive.RaceLimitOf(r.ctx, r.Name())
	if s == nil {
		return
	}
	r.spending.race = &raceLimit{RaceLimit: s, ownPlan: r.plan}
	own := *r.plan
	if s.Iterations > 0 && (own.MaxIterations == 0 || s.Iterations < own.MaxIterations) {
		own.MaxIterations = s.Iterations
	}
	own.Budget = lowerLimits(own.Budget, s.Budget)
	r.plan = &own
	if s.OnLimit == nil {
		r.loop.Plan = &own
	}
}

// lowerLimits returns a budget whose limits are the lower ones of b and of l, the limits of a race.
func lowerLimits(b *loop.Budget, l budget.Limits) *loop.Budget {
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

// decideRaceLimit handles a decision to stop that comes from the limits of the race and not from a limit of the loop itself.
// It waits until it is known whether the loop is the best one and continues. over reports that decideRaceLimit has handled
// the decision; more then reports whether the loop continues.
func (r *run) decideRaceLimit(d *loop.Decision) (more, over bool) {
	s := r.spending.race
	if s == nil || s.OnLimit == nil || s.decided || d.Stop == nil || !d.Stop.Reason.Limit() {
		return false, false
	}
	t := r.tally
	if s.ownPlan.Extend(&t) != nil {
		return false, false
	}
	s.decided = true
	switch goesOn := s.OnLimit(r.ctx, r.standing(d.Stop)); {
	case r.ctx.Err() != nil:
		r.fail(context.Cause(r.ctx))
		return false, true
	case !goesOn:
		return false, false
	}
	r.tally, r.plan, r.phase.lastEnded = t, s.ownPlan, max(r.phase.lastEnded, t.Ended.Number)
	if s.loopBudget != nil && s.Budget != (budget.Limits{}) {
		s.budget.EndAhead() // a resumed run books the usage after the race in the budget of the loop
		r.spending.budget = s.loopBudget.Child(budget.Limits{})
		clear(r.steps.direct) // the existing steps have the budget in the race
		r.steps.guarded = nil
		r.reserveForFinalizer()
	}
	if !r.mode.durable {
		return true, true
	}
	r.comparePlans()
	return r.mark(mark.KindLoopContinued, r.plan, nil), true
}

// standing returns the loop's best score and how it stops, for a comparison with the other loops of a race.
func (r *run) standing(rec *loop.StopRecord) mark.Standing {
	st := mark.Standing{Loop: r.Name(), Score: rec.BestScore, Error: r.plan.BestError(&r.tally), Best: rec.BestIteration,
		Iterations: rec.Iterations, Stop: string(rec.Reason)}
	if rec.Reason == loop.ReasonError {
		st.Failure = rec.Detail
	}
	return st
}
