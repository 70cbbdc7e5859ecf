// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"

	"github.com/refrain-dev/refrain/agent"
)

// Pausable returns a context that the run's [agent.RunConfig.Pause] can end, and a
// function to be called when the run is over. It is for runners.
func Pausable(ctx context.Context, cfg *agent.RunConfig) (context.Context, func()) {
	if cfg.Pause == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	cfg.Pause.Bind(ctx, cancel)
	return ctx, func() { cancel(nil) }
}

// Begin says that a step of a is about to do work. While the run is to be paused
// it waits until ctx is over. Whoever calls it calls Done when the step is over
// and what it came to is in the log; it is for agents that write down more about
// a step than the step itself does, and give it to [StepRun.Work]. It returns nil
// where there is nothing to wait for.
func (p Place) Begin(a agent.Agent) *agent.Work {
	inv := p.inv
	if inv == nil || inv.run.RunConfig.Pause == nil || inv.work != nil || !works(a) {
		return nil
	}
	return inv.run.RunConfig.Pause.Begin(p.ctx, inv.fence, false)
}

// works reports whether an agent does work itself: then what it runs is part of
// that work.
func works(a agent.Agent) bool { return len(a.SubAgents()) == 0 || agent.TypeOf(a) == agent.TypeLLM }
