// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"
	"errors"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
)

// spend gives the loop its own budget within the run's. Call the returned function when the loop
// has ended.
func (r *run) spend() func() {
	var limits budget.Limits
	if b := r.plan.Budget; b != nil {
		limits = budget.Limits{Calls: b.Calls, Tokens: b.Tokens, Cost: b.Cost}
	}
	own := r.me.Budget().Child(limits).Named(r.Name())
	r.me.BookEarlier(own)
	r.budget = own.Child(budget.Limits{}) // counts what is used from here on, and what is booked again
	if r.plan.Finalizer() < 0 {
		return func() {}
	}
	r.held = r.budget.Hold(r.plan.Share())
	return r.held.Release
}

// since returns the loop's usage after the given one.
func (r *run) since(before budget.Usage) loop.Usage {
	u := r.budget.Used().Sub(before)
	used := loop.Usage{Calls: u.Calls, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: u.Cost,
		CachedTokens: u.CachedTokens, CacheSaved: u.CacheSaved}
	if used.EstimatedTokens = u.EstimatedTokens; u.Estimated && used.EstimatedTokens == 0 {
		used.EstimatedTokens = u.Tokens()
	}
	return used
}

// permanent reports whether it is no use to try again, as far as the error says.
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

// isLost reports whether an error is that the log cannot be written.
func isLost(err error) bool {
	_, ok := errors.AsType[*agent.LogError](err)
	return ok
}

// canceled returns the cause if the run was canceled on purpose, or nil. A log that cannot be
// written is a failure and no cancellation.
func (r *run) canceled() error {
	if r.ctx.Err() == nil { // its cause takes longer
		return nil
	}
	if err := context.Cause(r.ctx); !isLost(err) {
		return err
	}
	return nil
}
