// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/observe"
)

// workObserved is workNow for a run that somebody observes. A step that a pause keeps from beginning is
// none.
func (s *Step) workObserved(o observe.Observer) {
	inv := s.inv
	if p := s.parent.run.RunConfig.Pause; p.Asked() != nil && works(s.cfg.Agent) && inv.work == nil {
		s.workNow()
		return
	}
	a := s.cfg.Agent
	ctx, end, err := observedStep(inv.Context, o, &observe.Step{
		Agent: a.Name(), Description: a.Description(), Type: string(agent.TypeOf(a)), Address: string(inv.address),
		Iteration: inv.iteration, Attempt: inv.attempt, Resumed: inv.record != nil,
	})
	if err != nil {
		s.fail(err)
		return
	}
	inv.Context, inv.own = ctx, ctx // nobody has seen it yet: begin made it for this run
	defer func() {
		if crash := ObservedEnd(end, s.res.Err); crash != nil {
			s.done = false
			s.fail(crash)
		}
	}()
	s.workNow()
}

// observedStep tells an observer that a step begins. A panic of the observer is an [*agent.PanicError].
func observedStep(ctx context.Context, o observe.Observer, step *observe.Step) (in context.Context, end func(error), crash error) {
	defer agent.Recover(&crash)
	if in, end = o.Step(ctx, step); in == nil || end == nil {
		panic("the observer's Step returned nil")
	}
	return in, end, nil
}

// ObservedEnd notifies an observer, by a call of end, that a piece of work has ended. It returns a panic
// of the observer as an [*agent.PanicError].
func ObservedEnd(end func(error), err error) (crash error) {
	defer agent.Recover(&crash)
	end(err)
	return nil
}
