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

// values are what stand-ins leave behind, by path.
type values map[path]any

// maxTries bounds the search for values.
const maxTries = 20_000

// solve looks for values of some paths with which an expression comes to what is
// wanted. What else the expression reads is in vals.
func solve(src string, want bool, free []path, choices func(path) []any, vals map[string]any) (values, bool) {
	p, err := expr.Compile(src, conditionVars()...)
	if err != nil {
		return nil, false
	}
	lists := make([][]any, len(free))
	tries := 1
	for i, f := range free {
		lists[i] = append(choices(f), literals(src)...)
		lists[i] = unique(append(lists[i], true, false, 1.0, 0.0, "", "made up"))
		if tries *= len(lists[i]); tries > maxTries {
			return nil, false
		}
	}
	found := values{}
	for n := range tries {
		rest := n
		for i, f := range free {
			found[f] = lists[i][rest%len(lists[i])]
			rest /= len(lists[i])
		}
		if got, err := p.EvalBool(filled(vals, found)); err == nil && got == want {
			return maps.Clone(found), true
		}
	}
	return nil, false
}

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

// solveNumber looks for values with which an expression comes to a number. It
// changes one value at a time, and leaves the others at 10.
func solveNumber(src string, want float64, free []path, vals map[string]any) (values, bool) {
	p, err := expr.Compile(src, conditionVars()...)
	if err != nil || len(free) == 0 {
		return nil, false
	}
	const other = 10
	var best values
	off := math.Inf(1)
	for _, f := range free {
		for _, v := range []float64{want, want * other, other / want, want / other, want - other, want + other, want / 100, want * 100, want * float64(len(free))} {
			try := values{}
			for _, g := range free {
				try[g] = float64(other)
			}
			try[f] = v
			for _, all := range []bool{false, true} {
				if all {
					for _, g := range free {
						try[g] = v
					}
				}
				got, err := p.Eval(filled(vals, try))
				f, ok := asNumber(got)
				if err == nil && ok && math.Abs(f-want) < off {
					off, best = math.Abs(f-want), maps.Clone(try)
				}
			}
		}
	}
	return best, off <= 1e-6*max(1, math.Abs(want))
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

// filled are the values of an expression with some of them made up.
func filled(vals map[string]any, some values) map[string]any {
	all := maps.Clone(vals)
	for _, root := range []string{"state", "result"} {
		m, _ := all[root].(map[string]any)
		m = maps.Clone(m)
		if m == nil {
			m = make(map[string]any)
		}
		for _, p := range some.sorted() {
			if p.root == root {
				key, rest := p.key()
				m[key] = put(m[key], rest, p.text, some[p])
			}
		}
		all[root] = m
	}
	return all
}

func (v values) sorted() []path {
	return slices.SortedFunc(maps.Keys(v), func(a, b path) int { return strings.Compare(a.root+a.fields, b.root+b.fields) })
}

// put is a value with one of its fields set; where it is a text, the JSON in it.
func put(old any, field string, text bool, v any) any {
	if field == "" && !text {
		return v
	}
	if s, ok := old.(string); ok {
		var inner any
		_ = json.Unmarshal([]byte(s), &inner) // else there is nothing to keep
		old = inner
	}
	if field != "" {
		m, _ := old.(map[string]any)
		m = maps.Clone(m)
		if m == nil {
			m = make(map[string]any)
		}
		first, rest, _ := strings.Cut(field, ".")
		m[first] = put(m[first], rest, false, v)
		v = m
	}
	if !text {
		return v
	}
	data, err := json.Marshal(v)
	if err != nil {
		return old
	}
	return string(data)
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
