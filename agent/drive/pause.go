// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"

	"github.com/refrain-dev/refrain/agent"
)

// Pausable returns a context that [agent.RunConfig.Pause] can end, and a function to call when
// the run has ended. It is for runners.
func Pausable(ctx context.Context, cfg *agent.RunConfig) (context.Context, func()) {
	if cfg.Pause == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	cfg.Pause.Bind(ctx, cancel)
	return ctx, func() { cancel(nil) }
}

// Begin counts a step of a as working, for a pause: see [agent.Pause]. If the run is to be
// paused, Begin waits until the context ends. Call Done on its result when the step has ended
// and its outcome is in the log. It is for agents that write more about a step than the step
// itself; put the result into [StepRun.Work]. Begin returns nil if there is nothing to wait
// for.
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
