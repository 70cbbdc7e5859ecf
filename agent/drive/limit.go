// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// CountModelCall counts one model call of the run. Call it before the model. It returns
// [agent.ErrTooManyModelCalls] if the call would exceed the limit.
func (p Place) CountModelCall() error {
	inv := p.inv
	if inv == nil {
		return nil
	}
	limit, which := int64(agent.DefaultMaxLLMCalls), ", the default"
	if c := inv.run.RunConfig; c != nil && c.MaxLLMCalls != 0 {
		limit, which = int64(c.MaxLLMCalls), ""
	}
	if n := inv.run.modelCalls.Add(1); limit > 0 && n > limit {
		return fmt.Errorf("%w: the limit is %d%s; raise it with max_model_calls, in Go agent.RunConfig.MaxLLMCalls",
			agent.ErrTooManyModelCalls, limit, which)
	}
	return nil
}

// checkStateLimit compares the size of the state after an event with the smallest limit of the run and of the loops
// around the step. If the event makes the state larger and the limit is exceeded, it returns an error. If the event
// takes the state past 80 % of the limit, it writes a warning into the event. A mark has no limit, so that a loop can
// always roll back.
func (i *invocation) checkStateLimit(ev *session.Event) error {
	if len(ev.Actions.StateDelta) == 0 || ev.Mark != nil {
		return nil
	}
	limit, whose := i.run.RunConfig.StateLimit, "the limit of all runs here (--state-limit)"
	for l := i.loop; l != nil; l = l.Outer {
		if p := l.Plan; p != nil && p.StateLimit > 0 && (limit <= 0 || p.StateLimit < limit) {
			limit, whose = p.StateLimit, fmt.Sprintf("state_limit of the loop %q", l.Name)
		}
	}
	view := session.ViewBehind(i.run.Session)
	if limit <= 0 || view == nil {
		return nil
	}
	switch c, near := view.Change(ev), limit-limit/5; {
	case c.After <= c.Before:
	case c.After > limit:
		return &session.StateLimitError{StateChange: c, Limit: limit, SetBy: whose}
	case c.After > near && c.Before <= near:
		Annotate(ev, mark.MetadataWarning, fmt.Sprintf("the state has %d of %d bytes", c.After, limit))
	}
	return nil
}

// checkLogLimit returns an error if the log of the run has no room for another event of weight bytes.
func (i *invocation) checkLogLimit(weight int) error {
	limit, logged := i.run.RunConfig.LogLimit, i.run.Logged
	if limit <= 0 || logged == nil {
		return nil
	}
	if size := logged.Load() + int64(weight); size > limit {
		return &session.LogLimitError{Size: size, Limit: limit, Name: i.run.RunConfig.LogLimitName}
	}
	return nil
}

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

// newBudget returns the budget of a run.
func (s *runContext) newBudget() *budget.Meter {
	c := s.RunConfig
	if c == nil || c.Budget == nil && c.Prices == nil && c.Meter == nil {
		return &s.unlimitedMeter
	}
	var limits budget.Limits
	if c.Budget != nil {
		limits = *c.Budget
	}
	if c.Meter != nil {
		return c.Meter.Run(s.ID).Child(limits)
	}
	return budget.New(limits, c.Prices)
}
