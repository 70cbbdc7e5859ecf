// SPDX-License-Identifier: Apache-2.0

package drive

import (
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
	ctx, end := o.Step(inv.Context, &observe.Step{
		Agent: a.Name(), Description: a.Description(), Type: string(agent.TypeOf(a)), Address: string(inv.address),
		Iteration: inv.iteration, Attempt: inv.attempt, Resumed: inv.record != nil,
	})
	inv.Context, inv.own = ctx, ctx // nobody has seen it yet: begin made it for this run
	if s.watched != nil {
		s.watched.observed.Store(&end)
	}
	defer func() { end(s.res.Err) }()
	s.workNow()
}

// ObservedEnd tells an observer that a piece of work has ended. A panic of the observer is returned as an
// [*agent.PanicError].
func ObservedEnd(end func(error), err error) (crash error) {
	defer agent.Recover(&crash)
	end(err)
	return nil
}
