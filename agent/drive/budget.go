// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
)

// BudgetOf is the budget that the model calls of the step of ctx count in,
// which is one for all that run under it: sub-agents, parallel branches and
// agents that are tools. Whoever asks a model reserves each call there. It is
// never nil; outside a run it has no limits.
//
// A loop with a budget of its own runs its steps under a child of it:
//
//	own := drive.BudgetOf(ctx).Child(limits).Named(name)
//	hold := own.Hold(0.1)
//	defer hold.Release()
//	… drive.NewStep(ctx, drive.StepConfig{Agent: step, Loop: l, Budget: own})
//	… drive.NewStep(ctx, drive.StepConfig{Agent: finalizer, Budget: hold.Budget()})
func BudgetOf(ctx agent.InvocationContext) *budget.Budget {
	if inv := invocationOf(ctx); inv != nil {
		return inv.budget
	}
	return new(budget.Budget)
}

// newBudget is the budget of a run.
func (s *shared) newBudget() *budget.Budget {
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
