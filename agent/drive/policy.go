// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/session"
)

// StepPolicy is how a sequence or a parallel agent treats one of its steps. The zero value does what ADK does.
type StepPolicy struct {
	// SkipOnError lets the agent around the step continue after the step has failed, as if the step had succeeded.
	// Earlier events and changes of the step stay.
	SkipOnError bool
	// DelayBefore and DelayAfter are the delays before and after the step, even if it fails, but not after a failure
	// that cancels the other branches of a parallel agent.
	DelayBefore, DelayAfter time.Duration
}

// StepPolicies are the policies of an agent's steps, by name.
type StepPolicies map[string]StepPolicy

// Check returns an error for a name that no step has, and for a negative delay.
func (p StepPolicies) Check(steps []agent.Agent) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !slices.ContainsFunc(steps, func(a agent.Agent) bool { return a.Name() == name }) {
			errs = append(errs, fmt.Errorf("policy for step %q, which is not one of the sub-agents; correct its name", name))
		}
		if p[name].DelayBefore < 0 || p[name].DelayAfter < 0 {
			errs = append(errs, fmt.Errorf("the policy of step %q has a negative delay; 0 means none", name))
		}
	}
	return errors.Join(errs...)
}

// Skips reports whether the agent continues after a step has failed with err. It never does after an error that
// concerns more than the step: see [Overall]. It also stops for a budget, because a loop around it must.
func (p StepPolicies) Skips(step string, err error) bool {
	return p[step].SkipOnError && !Overall(err) && !errors.Is(err, budget.ErrExceeded)
}

// Overall reports whether an error comes from a guard against endless runs, or from a log that cannot be written.
// No policy skips such an error, because an agent that continued would never end.
func Overall(err error) bool {
	if _, lost := errors.AsType[*agent.LogError](err); lost {
		return true
	}
	return errors.Is(err, agent.ErrTooManyModelCalls) || errors.Is(err, session.ErrLogLimit)
}

// PolicyRun runs steps by their policies, one after another.
type PolicyRun struct {
	ctx      agent.InvocationContext
	policies StepPolicies
	delay    time.Duration // DelayAfter of the previous step
}

// Course returns a [PolicyRun] of steps that run under ctx.
func (p StepPolicies) Course(ctx agent.InvocationContext) *PolicyRun {
	return &PolicyRun{ctx: ctx, policies: p}
}

// Run waits for the delay after the previous step and the delay before this one, and then runs the step by
// [Step.Run]. A resumed run waits only for steps that have not finished. If the policy skips the error, the result
// has no Err.
func (c *PolicyRun) Run(s *Step, yield func(*session.Event) bool) StepResult {
	name := s.cfg.Agent.Name()
	p := c.policies[name]
	if d := c.delay + p.DelayBefore; d > 0 && !s.isRecorded() {
		if err := sleep.For(c.ctx, d); err != nil {
			return StepResult{Err: err}
		}
	}
	res := s.Run(c.storeAtOnce(yield))
	if c.delay = p.DelayAfter; res.Err != nil && c.ctx.Err() == nil && c.policies.Skips(name, res.Err) {
		res.Err = nil
	}
	return res
}

// End waits for the delay after the last step.
func (c *PolicyRun) End() error { return sleep.For(c.ctx, c.delay) }

// storeAtOnce returns a yield that lets each new mark be stored at once, if there can be a delay before the next event.
func (c *PolicyRun) storeAtOnce(yield func(*session.Event) bool) func(*session.Event) bool {
	if !c.policies.hasDelay() {
		return yield
	}
	return func(ev *session.Event) bool {
		if ev.Mark != nil && ev.Seq == 0 {
			ev.Mark.Batch = false
		}
		return yield(ev)
	}
}

// hasDelay reports whether one of the policies has a delay.
func (p StepPolicies) hasDelay() bool {
	for _, of := range p {
		if of.DelayBefore > 0 || of.DelayAfter > 0 {
			return true
		}
	}
	return false
}

// isRecorded reports whether the log has the end of the next run of the step. It looks at the address of a first run.
func (s *Step) isRecorded() bool {
	p := s.parent
	return p.logged != nil && p.run.Replay.hasEnded(p.logged, p.address+"/"+session.Address(s.cfg.Agent.Name()))
}
