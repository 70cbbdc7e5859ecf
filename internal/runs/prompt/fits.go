// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// Fits reports whether a run with these events can continue with a definition: it resumes the run in memory until a
// step would have to act. It fails with an [*agent.DivergedError] if the definition's agents act differently than the
// events record.
func Fits(ctx context.Context, code program.Code, events []*session.Event, p *program.Program, def *definition.Definition) error {
	svc, made, err := storeOf(ctx, nil, events)
	if err != nil {
		return err
	}
	root, err := (&ear{code: code}).build(ctx, p, def)
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: app, Agent: root, SessionService: svc, Durable: true})
	if err != nil {
		return err
	}
	cfg := def.RunConfig(p.Limits)
	cfg.Pause = new(agent.Pause)
	cfg.Pause.Ask(agent.ErrPaused) // before the first step that is not in the log
	for _, err := range r.Resume(ctx, app, app, session.RunOf(made).ID, cfg) {
		if diverged, ok := errors.AsType[*agent.DivergedError](err); ok {
			return diverged
		}
	}
	return ctx.Err()
}
