// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/tool"
)

// deferring is a tool that says whether it has deferred its answer.
type deferring struct {
	tool.Function
	is bool
}

func (d deferring) DefersResponse() bool { return d.is }

// A tool that defers its answer and returns nothing gets no event with an answer, and ends the agent's turn.
func TestToolThatDefersItsAnswer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		is     bool
		result map[string]any
		err    error
		want   []string
	}{
		{"deferred", true, nil, nil, []string{"a: call look"}},
		{"not deferred", false, nil, nil, []string{"a: call look", "a: answer look map[]", "a: done"}},
		{"deferred, with an answer", true, map[string]any{"n": 1}, nil, []string{"a: call look", "a: answer look map[n:1]", "a: done"}},
		{"deferred, failed", true, nil, errors.New("dark"), []string{"a: call look", "a: answer look map[error:dark]", "a: done"}},
	} {
		look := function(t, "look", func(tool.Context) (map[string]any, error) { return tt.result, tt.err }).(tool.Function)
		if tt.result == nil && tt.err == nil {
			look = silent{look}
		}
		th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: script(t, calls("look"), says("done")),
			Tools: []tool.Tool{deferring{look, tt.is}}}))
		if diff := cmp.Diff(tt.want, th.must("go")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// silent is a tool that returns nothing at all.
type silent struct{ tool.Function }

func (silent) Run(tool.Context, any) (map[string]any, error) { return nil, nil }

// A task runner of the context runs the calls of a turn, under the contexts that it gives them.
func TestTaskRunnerRunsTheCallsOfATurn(t *testing.T) {
	type key struct{}
	var order []any
	look := function(t, "look", func(ctx tool.Context) (map[string]any, error) {
		order = append(order, ctx.Value(key{})) // without a lock: one after the other
		if ctx.Value(key{}) == 1 {
			ctx.EndInvocation()
		}
		return nil, nil
	})
	ctx := platform.WithTaskRunner(t.Context(), func(ctx context.Context, tasks []func(context.Context)) {
		for i := range tasks {
			tasks[len(tasks)-1-i](context.WithValue(ctx, key{}, len(tasks)-1-i))
		}
	})
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: script(t, calls("look", "look", "look"), says("not asked")),
		Tools: []tool.Tool{look}, AfterAgentCallbacks: []agent.AfterAgentCallback{}}))
	evs, err := th.ask(ctx, "go")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{2, 1, 0}, order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(evs); n != 2 {
		t.Errorf("the invocation went on after a call had ended it: %q", lines(evs))
	}
}
