// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"github.com/refrain-dev/refrain/budget"
)

// Budget returns the budget of the step's model calls. Everything that runs under the step
// shares it: sub-agents, parallel branches, and agents that are tools. Reserve each model call
// there. It is never nil. Outside a run it has no limits.
//
// A loop with a budget of its own runs its steps under a child of it:
//
//	own := drive.At(ctx).Budget().Child(limits).Named(name)
//	hold := own.Hold(0.1)
//	defer hold.Release()
//	… drive.NewStep(ctx, drive.StepConfig{Agent: step, Loop: l, Budget: own})
//	… drive.NewStep(ctx, drive.StepConfig{Agent: finalizer, Budget: hold.Budget()})
func (p Place) Budget() *budget.Meter {
	if inv := p.inv; inv != nil {
		return inv.budget
	}
	return new(budget.Meter)
}

// newBudget is the budget of a run.
func (s *shared) newBudget() *budget.Meter {
	c := s.RunConfig
	if c == nil || c.Budget == nil && c.Prices == nil {
		return &s.unlimited
	}
	var limits budget.Limits
	if c.Budget != nil {
		limits = *c.Budget
	}
	return budget.New(limits, c.Prices)
}
