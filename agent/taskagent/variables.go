// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"maps"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/expr"
)

// variables are what every expression of a task can read.
var variables = []expr.Var{
	{Name: "state", Type: expr.Map},
	{Name: "prev", Type: expr.Map},
	{Name: "iteration", Type: expr.Int},
	{Name: "max_iterations", Type: expr.Int},
	{Name: "score"},
	{Name: "best_score"},
	{Name: "user_input"},
}

// values are their values in the step of ctx. The map of the state is a new one.
func values(ctx agent.InvocationContext) map[string]any {
	vals := map[string]any{
		"state": maps.Collect(drive.At(ctx).State().All()), "prev": map[string]any{},
		"iteration": 0, "max_iterations": 0, "score": nil, "best_score": nil, "user_input": "",
	}
	if v, ok := drive.At(ctx).Lookup("user_input"); ok {
		vals["user_input"] = v
	}
	l := drive.At(ctx).Loop()
	if l == nil {
		return vals
	}
	vals["iteration"], vals["max_iterations"] = l.Iteration, int(l.MaxIterations)
	if l.Prev != nil {
		vals["prev"] = l.Prev
	}
	if l.Score != nil {
		vals["score"] = *l.Score
	}
	if l.BestScore != nil {
		vals["best_score"] = *l.BestScore
	}
	return vals
}
