// SPDX-License-Identifier: Apache-2.0

package taskagent_test

import (
	"errors"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/expr"
	_ "github.com/refrain-dev/refrain/expr/cel"
)

// D8, D9: all expressions see the state as it was, so that two keys can change
// places.
func TestSetSeesTheStateBefore(t *testing.T) {
	a := must(taskagent.NewExpression(taskagent.ExpressionConfig{
		Config: taskagent.Config{Name: "swap", OutputKey: "sum", ResultKey: "all"},
		Set:    map[string]string{"a": "state.b", "b": "state.a", "gone": "null"},
		Value:  "state.a + state.b",
	}))
	got := run(t.Context(), t, a, map[string]any{"a": 1, "b": 2, "gone": true})
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "state", map[string]any{
		"a": 2.0, "b": 1.0, "sum": 3.0,
		"all": map[string]any{"a": 2.0, "b": 1.0, "gone": nil, "value": 3.0},
	}, got.state)
	if len(got.events) != 1 || got.events[0].Content != nil {
		t.Errorf("got %d events, want one without words", len(got.events))
	}
}

// C19, D15: an expression can read where the run is.
func TestExpressionVariables(t *testing.T) {
	where := must(taskagent.NewExpression(taskagent.ExpressionConfig{
		Config: taskagent.Config{Name: "where", OutputKey: "where"},
		Value:  `[iteration, max_iterations, score, best_score, prev.?where.orValue("none"), user_input]`,
	}))
	got := run(t.Context(), t, where, nil)
	equal(t, "outside a loop", any([]any{0.0, 0.0, nil, nil, "none", "Please."}), got.state["where"])

	l := must(loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{where}}, MaxIterations: 2, KeepStates: true,
	}))
	got = run(t.Context(), t, l, nil)
	first := []any{1.0, 2.0, nil, nil, "none", "Please."}
	equal(t, "in a loop", any([]any{2.0, 2.0, nil, nil, first, "Please."}), got.state["where"])
}

// D17: a key that is not there is an error that names it, and nothing is set.
func TestMissingKeyFailsTheStep(t *testing.T) {
	a := must(taskagent.NewExpression(taskagent.ExpressionConfig{
		Config: taskagent.Config{Name: "e", ResultKey: "all"},
		Set:    map[string]string{"a": "1", "b": "state.draft.size()"},
	}))
	got := run(t.Context(), t, a, nil)
	has(t, got.err, `evaluate the new value of "b"`)
	if key, ok := errors.AsType[*expr.KeyError](got.err); !ok || key.Key != "draft" {
		t.Errorf("the error is %v, want a KeyError for draft", got.err)
	}
	equal(t, "state", map[string]any{}, got.state)
}
