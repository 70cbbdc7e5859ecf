// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// around is a context of somebody's own: it has the invocation's methods, and the
// values that it likes.
type around struct {
	agent.InvocationContext
	hides bool
}

func (a around) Value(key any) any {
	if a.hides {
		return nil
	}
	return a.InvocationContext.Value(key)
}

// LOOP 30: a step under way is paused when it has come to its end, with all that it
// runs itself, under whatever context. Neither waits for the other.
func TestPauseDoesNotWaitForWhatRunsInAStep(t *testing.T) {
	for _, tt := range []struct {
		name string
		wrap func(agent.InvocationContext) agent.InvocationContext
	}{
		{"its own context", func(ctx agent.InvocationContext) agent.InvocationContext { return ctx }},
		{"one that embeds it", func(ctx agent.InvocationContext) agent.InvocationContext { return around{ctx, false} }},
		{"one that hides where it comes from", func(ctx agent.InvocationContext) agent.InvocationContext { return around{ctx, true} }},
		{"one that is never over", func(ctx agent.InvocationContext) agent.InvocationContext {
			return ctx.WithContext(context.WithoutCancel(ctx))
		}},
		{"two around each other", func(ctx agent.InvocationContext) agent.InvocationContext {
			return around{around{ctx, false}.WithContext(context.WithoutCancel(ctx)), false}
		}},
	} {
		for _, marks := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := &agent.RunConfig{Pause: new(agent.Pause)}
					ctx, over := drive.Pausable(t.Context(), cfg)
					defer over()
					inside, after := 0, 0
					child := custom(t, "child", func(_ agent.InvocationContext, yield yield) {
						inside++
						yield(says("from the child"), nil)
					})
					outer := custom(t, "outer", func(ctx agent.InvocationContext, yield yield) {
						cfg.Pause.Ask(agent.ErrPaused)
						for range 2 {
							for ev, err := range drive.Run(tt.wrap(ctx), child) {
								if !yield(ev, err) {
									return
								}
							}
						}
					})
					next := custom(t, "next", func(agent.InvocationContext, yield) { after++ })
					line := custom(t, "line", func(ctx agent.InvocationContext, yield yield) {
						for _, sub := range []agent.Agent{outer, next} {
							for ev, err := range drive.Run(ctx, sub) {
								if !yield(ev, err) || err != nil {
									return
								}
							}
						}
					}, outer, next)
					inv := drive.NewInvocation(ctx, drive.Invocation{
						ID: "e-1", Session: session.NewView(session.ViewConfig{}), RunConfig: cfg, Marks: marks,
					})
					_, errs := collect(drive.Run(inv, line))
					if len(errs) != 1 || !errors.Is(errs[0], agent.ErrPaused) {
						t.Errorf("errors %v, want that the run is paused", errs)
					}
					if inside != 2 || after != 0 {
						t.Errorf("the child ran %d times, the step behind it %d times", inside, after)
					}
				})
			})
		}
	}
}
