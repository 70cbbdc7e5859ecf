// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/expr"
)

// unique leaves out what comes again.
func unique(all []any) []any {
	var out []any
	for _, v := range all {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func asNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	case int64:
		return float64(v), true
	}
	return 0, false
}

// put is a value with one of its fields set; where it is a text, the JSON in it.
func put(old any, field string, v any) any {
	if text, ok := old.(string); ok {
		var inner any
		_ = json.Unmarshal([]byte(text), &inner) // else there is nothing to keep
		old = inner
	}
	m, _ := old.(map[string]any)
	m = maps.Clone(m)
	if m == nil {
		m = make(map[string]any)
	}
	first, rest, deeper := strings.Cut(field, ".")
	if deeper {
		v = put(m[first], rest, v)
	}
	m[first] = v
	return m
}

// conditionVars are what the expressions of conditions, of scores and of tasks can
// read, all together.
func conditionVars() []expr.Var {
	return []expr.Var{
		{Name: "state", Type: expr.Map}, {Name: "result", Type: expr.Map}, {Name: "prev", Type: expr.Map},
		{Name: "score"}, {Name: "best_score"}, {Name: "scores", Type: expr.ListDouble},
		{Name: "iteration", Type: expr.Int}, {Name: "max_iterations", Type: expr.Int},
		{Name: "usage", Type: expr.Map}, {Name: "elapsed", Type: expr.Double}, {Name: "user_input"},
	}
}

// conditionVals are values for them, at some iteration.
func conditionVals(state map[string]any, iteration int) map[string]any {
	return map[string]any{
		"state": state, "result": map[string]any{}, "prev": map[string]any{},
		"score": 5.0, "best_score": 5.0, "scores": []float64{5}, "iteration": iteration, "max_iterations": 0,
		"usage":   map[string]any{"calls": 1, "input_tokens": 1, "output_tokens": 1, "tokens": 2, "cost": 0.0},
		"elapsed": 10.0, "user_input": "",
	}
}
