// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

const noEngine = `expressions need an engine, which this program does not have; add import _ "github.com/refrain-dev/refrain/expr/cel"`

// This test program imports no engine. It learns which import to add, once for a condition of several expressions.
func TestWithoutAnEngine(t *testing.T) {
	if _, err := expr.Compile("true"); !errors.Is(err, expr.ErrNoEngine) || err.Error() != noEngine {
		t.Errorf("Compile: %v", err)
	}
	step, err := agent.New(agent.Config{Name: "step"})
	if err != nil {
		t.Fatal(err)
	}
	cfg := agent.Config{Name: "refine", SubAgents: []agent.Agent{step}}
	for name, c := range map[string]loopagent.Config{
		"stop_when": {Rules: loop.Plan{
			StopWhen: &loop.Condition{Any: []loop.Condition{{Expr: "iteration > 2"}, {Not: &loop.Condition{Expr: "state.open"}}}},
			Score:    &loop.Score{Expr: "state.score"},
		}},
		"score": {Rules: loop.Plan{Score: &loop.Score{Expr: "state.score"}}},
	} {
		c.AgentConfig = cfg
		_, err := loopagent.New(c)
		if want := `loop agent "refine": ` + name + ": " + noEngine; !errors.Is(err, expr.ErrNoEngine) || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
	}
	if _, err := loopagent.New(loopagent.Config{AgentConfig: cfg, MaxIterations: 3, Rules: loop.Plan{Score: &loop.Score{Key: "score", Target: new(8.0)}}}); err != nil {
		t.Errorf("a loop without expressions: %v", err)
	}
	_, err = taskagent.NewExpression(taskagent.ExpressionConfig{Config: taskagent.Config{Name: "sum"}, Value: "1 + 1"})
	if !errors.Is(err, expr.ErrNoEngine) || !strings.Contains(err.Error(), noEngine) {
		t.Errorf("a task: %v", err)
	}
}
