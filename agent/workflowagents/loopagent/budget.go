// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"errors"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
)

// openBudget gives the loop its own budget within the budget of the run. The caller calls the returned function when the
// loop has ended.
func (r *run) openBudget() func() {
	whole := r.plan
	if r.spending.race != nil {
		whole = r.spending.race.ownPlan
	}
	var limits budget.Limits
	if b := whole.Budget; b != nil {
		limits = budget.Limits{Calls: b.Calls, Tokens: b.Tokens, Cost: b.Cost}
	}
	own := r.place.Budget().Child(limits).Named(r.Name())
	if s := r.spending.race; s != nil {
		s.loopBudget = own
		own = own.Child(s.Budget).Named(r.Name())
		s.budget = own
	}
	r.place.ChargeReplayed(own)
	r.spending.budget = own.Child(budget.Limits{}) // counts the usage from here on, also what replayed steps book again
	r.reserveForFinalizer()
	return func() {
		if r.spending.finalizer != nil {
			r.spending.finalizer.Release()
		}
	}
}

// reserveForFinalizer holds back the finalizer's part of the budget.
func (r *run) reserveForFinalizer() {
	if r.plan.Finalizer() < 0 {
		return
	}
	if r.spending.finalizer != nil {
		r.spending.finalizer.Release()
	}
	r.spending.finalizer = r.spending.budget.Hold(r.plan.Share())
}

// usage returns what the loop has used until now.
func (r *run) usage() budget.Usage {
	if r.spending.budget == nil {
		return budget.Usage{}
	}
	return r.spending.budget.Used()
}

// usedSince returns the loop's usage after the given one.
func (r *run) usedSince(before budget.Usage) loop.Usage {
	if r.spending.budget == nil {
		return loop.Usage{}
	}
	u := r.spending.budget.Used().Sub(before)
	used := loop.Usage{Calls: u.Calls, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: u.Cost,
		CachedTokens: u.CachedTokens, CacheSaved: u.CacheSaved}
	if used.EstimatedTokens = u.EstimatedTokens; u.Estimated && used.EstimatedTokens == 0 {
		used.EstimatedTokens = u.Tokens()
	}
	return used
}

// permanent reports whether an error means that another attempt cannot succeed.
func permanent(err error) bool {
	if p, ok := errors.AsType[drive.PermanentError](err); ok {
		return p.Permanent()
	}
	_, unpriced := errors.AsType[*budget.UnknownPriceError](err)
	return unpriced || drive.Overall(err)
}

// retryDelay returns the delay that an error asks for, or 0.
func retryDelay(err error) time.Duration {
	asks, ok := errors.AsType[drive.RetryError](err)
	if !ok {
		return 0
	}
	return max(0, asks.RetryDelay())
}

// isLogLost reports whether an error means that the log cannot be written.
func isLogLost(err error) bool {
	_, ok := errors.AsType[*agent.LogError](err)
	return ok
}
