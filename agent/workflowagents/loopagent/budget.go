// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"errors"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
)

// spend gives the loop a budget of its own within the one it runs under. What it
// returns is to be called when the loop is over.
func (r *run) spend() func() {
	var limits budget.Limits
	if b := r.plan.Budget; b != nil {
		limits = budget.Limits{Calls: b.Calls, Tokens: b.Tokens, Cost: b.Cost}
	}
	r.budget = agent.BudgetOf(r.ctx).Child(limits).Named(r.Name())
	if r.plan.Finalizer() < 0 {
		return func() {}
	}
	r.held = r.budget.Hold(r.plan.Share())
	return r.held.Release
}

// since is what the loop has used since.
func (r *run) since(before budget.Usage) loop.Usage {
	u := r.budget.Used().Sub(before)
	return loop.Usage{Calls: u.Calls, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: u.Cost}
}

// permanent reports whether it is no use to try again, as far as the error says.
func permanent(err error) bool {
	if p, ok := errors.AsType[interface {
		error
		Permanent() bool
	}](err); ok {
		return p.Permanent()
	}
	_, unpriced := errors.AsType[*budget.UnknownPriceError](err)
	return unpriced || guarded(err)
}

// guarded reports whether a step failed by the guard against a run without end.
// That is no limit to work within, and no policy makes up for it: a loop that
// went on would do so without end.
func guarded(err error) bool { return errors.Is(err, agent.ErrTooManyModelCalls) }
