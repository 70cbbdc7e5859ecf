// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

// runObserved does what runNow does, and tells an observer when the step begins and ends. It tells nothing about a
// step that cannot begin because the run is about to pause.
func (s *Step) runObserved(o observe.Observer) {
	inv := s.inv
	if p := s.parent.run.RunConfig.Pause; p.Asked() != nil && worksItself(s.cfg.Agent) && inv.work == nil {
		s.runNow()
		return
	}
	a := s.cfg.Agent
	ctx, end, err := beginObservedStep(inv.Context, o, &observe.Step{
		Agent: a.Name(), Description: a.Description(), Type: string(agent.TypeOf(a)), Address: string(inv.address),
		Iteration: inv.iteration, Attempt: inv.attempt, Resumed: inv.logged != nil,
	})
	if err != nil {
		s.stopWith(err)
		return
	}
	inv.Context, inv.stepContext = ctx, ctx // no other code has inv yet, because begin made it for this run
	defer func() {
		if crash := ObservedEnd(end, s.current.result.Err); crash != nil {
			s.current.stopped = false
			s.stopWith(crash)
		}
	}()
	s.runNow()
}

// beginObservedStep tells an observer that a step begins. It returns a panic of the observer as an
// [*agent.PanicError].
func beginObservedStep(ctx context.Context, o observe.Observer, step *observe.Step) (in context.Context, end func(error), crash error) {
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
