// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// LOOP 23: the model calls of one run are counted together, whoever makes them
// and under whatever context.
func TestCountModelCall(t *testing.T) {
	for _, tt := range []struct{ limit, calls, refused int }{
		{0, agent.DefaultMaxLLMCalls + 2, 2},
		{3, 5, 2},
		{-1, agent.DefaultMaxLLMCalls + 2, 0},
	} {
		refused := 0
		inner, err := agent.New(agent.Config{Name: "inner", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(func(*session.Event, error) bool) {
				for range tt.calls - 1 {
					if err := drive.At(ctx).CountModelCall(); errors.Is(err, agent.ErrTooManyModelCalls) {
						refused++
						if !strings.Contains(err.Error(), "MaxLLMCalls") {
							t.Errorf("the error does not say what to do: %v", err)
						}
					}
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		outer, err := agent.New(agent.Config{Name: "outer", SubAgents: []agent.Agent{inner}, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			if err := drive.At(ctx).CountModelCall(); err != nil {
				t.Errorf("the first call: %v", err)
			}
			return inner.Run(foreignContext{ctx})
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := drive.NewInvocation(t.Context(), drive.Invocation{
			ID: "i", Session: session.NewView(session.ViewConfig{}), RunConfig: &agent.RunConfig{MaxLLMCalls: tt.limit},
		})
		for _, err := range drive.Run(ctx, outer) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if refused != tt.refused {
			t.Errorf("limit %d: %d of %d calls were refused, want %d", tt.limit, refused, tt.calls, tt.refused)
		}
	}
}

// foreignContext is an invocation in a context of somebody else's.
type foreignContext struct{ agent.InvocationContext }
