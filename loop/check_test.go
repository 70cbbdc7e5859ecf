// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

// G1, A16, C7, C16
func TestCheck(t *testing.T) {
	ab := steps("writer", "critic")
	for name, c := range map[string]struct {
		plan loop.Plan
		want []string // field: text
	}{
		"fine":           {loop.Plan{Steps: ab, Order: []string{"critic", "writer"}}, nil},
		"no steps":       {loop.Plan{}, []string{"steps: the loop has no steps"}},
		"only finalizer": {loop.Plan{Steps: steps("final")}, []string{`steps: the loop has no steps besides its finalizer "final"`}},
		"unknown name, near": {loop.Plan{Steps: ab, Order: []string{"writer", "critc", "critic"}},
			[]string{`order[1]: Order name not found in agent names: critc (did you mean "critic"?)`}},
		"unknown name, far": {loop.Plan{Steps: ab, Order: []string{"writer", "xyz", "critic"}},
			[]string{`order[1]: Order name not found in agent names: xyz`}},
		"missing name":       {loop.Plan{Steps: ab, Order: []string{"writer"}}, []string{`order: Order leaves out "critic" (it must name every agent once)`}},
		"doubled name":       {loop.Plan{Steps: ab, Order: []string{"writer", "critic", "writer"}}, []string{`order[2]: Order names "writer" twice`}},
		"finalizer in order": {loop.Plan{Steps: steps("a", "final"), Order: []string{"a", "final"}}, []string{`order[1]: Order names the finalizer "final" (it runs after the last iteration)`}},
		"two finalizers": {loop.Plan{Steps: []loop.Step{{Name: "a"}, {Name: "f", Finalizer: true}, {Name: "g", Finalizer: true}}},
			[]string{`steps[2]: two finalizers: "f" and "g" (a loop has at most one)`}},
		"same name": {loop.Plan{Steps: steps("a", "a")}, []string{`steps[1]: two steps are called "a"`}},
		"no name":   {loop.Plan{Steps: steps("")}, []string{`steps[0]: step 1 has no name`}},
		"policies": {loop.Plan{Steps: []loop.Step{{Name: "a", OnError: "retry"}}, OnError: "go on", StopCheck: "never"}, []string{
			`steps[0].on_error: steps[0].on_error is "retry" (use "stop", "skip_step" or "next_iteration")`,
			`on_error: on_error is "go on" (use "stop", "skip_step" or "next_iteration")`,
			`stop_check: stop_check is "never" (use "iteration" or "step")`,
		}},
		"target without a score": {loop.Plan{Steps: ab, Score: &loop.Score{Target: new(8.0)}},
			[]string{`score: score has a threshold, but nothing says what the score is (give key or expr)`}},
		"thresholds": {loop.Plan{Steps: ab, Score: &loop.Score{Key: "s", Target: new(math.NaN()), MinDelta: new(-1.0), MinDeltaPercent: new(math.Inf(1))}}, []string{
			`score.target: score.target is NaN (give a finite number)`,
			`score.min_delta: score.min_delta is negative: -1`,
			`score.min_delta_percent: score.min_delta_percent is +Inf (give a finite number)`,
		}},
		"score twice":       {loop.Plan{Steps: ab, Score: &loop.Score{Key: "s", Expr: "1.0", Label: "a", Field: "b"}}, []string{`score: score has both key and expr (give one of them)`, `score: score has both label and field (give one of them)`}},
		"score of nothing":  {loop.Plan{Steps: ab, Score: &loop.Score{Label: " "}}, []string{`score: score has neither key nor expr`, `score.label: score.label is blank`}},
		"score is text":     {loop.Plan{Steps: ab, Score: &loop.Score{Expr: `"8"`}}, []string{`score.expr: score.expr gives string, not double`}},
		"negative target":   {loop.Plan{Steps: ab, Score: &loop.Score{Key: "s", Target: new(-1.0)}}, nil},
		"patience alone":    {loop.Plan{Steps: ab, Score: &loop.Score{Key: "s", Patience: 2}}, []string{`score.patience: score.patience has nothing to wait for (give min_delta or min_delta_percent)`}},
		"condition is text": {loop.Plan{Steps: ab, StopWhen: &loop.Condition{Expr: `"yes"`}}, []string{`stop_when: stop_when gives string, not bool`}},
		"conditions": {loop.Plan{Steps: ab, StopWhen: &loop.Condition{Any: []loop.Condition{{Expr: "scor > 1"}, {}, {Not: &loop.Condition{All: []loop.Condition{}}}}}}, []string{
			`stop_when.any[0]: stop_when.any[0]: 1:1: nothing is called "scor" (did you mean "score"?)`,
			`stop_when.any[1]: stop_when.any[1] has 0 of expr, any, all and not (give exactly one)`,
			`stop_when.any[2].not: stop_when.any[2].not is an empty list`,
		}},
	} {
		if diff := cmp.Diff(c.want, problems(t, c.plan)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// problems are those that Check finds, as field: text.
func problems(t *testing.T, p loop.Plan) (got []string) {
	t.Helper()
	err := p.Check()
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%T", err)
	}
	for _, e := range joined.Unwrap() {
		p, ok := errors.AsType[*loop.PlanError](e)
		if !ok {
			t.Fatalf("%T", e)
		}
		got = append(got, p.Path()+": "+p.Error())
	}
	return got
}

// A definition places an expression's problem in its own file.
func TestCheckKeepsPositions(t *testing.T) {
	p := loop.Plan{Steps: steps("a"), StopWhen: &loop.Condition{Expr: "score > 1 &&\n  itration > 2"}}
	e, ok := errors.AsType[*expr.Error](p.Check())
	if !ok || e.Line != 2 || e.Column != 3 || e.Suggestion != "iteration" {
		t.Errorf("%v", e)
	}
}
