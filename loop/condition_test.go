// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// T14, T22, T25-T28, C17, C28
func TestStopWhen(t *testing.T) {
	e := func(s string) loop.Condition { return loop.Condition{Expr: s} }
	even, late, missing := e("iteration % 2 == 0"), e("iteration >= 4"), e("state.gone > 1")
	for name, c := range map[string]struct {
		when loop.Condition
		want int // iteration; 7: the limit
	}{
		"expression":            {even, 2},
		"any":                   {loop.Condition{Any: []loop.Condition{late, even}}, 2},
		"all":                   {loop.Condition{All: []loop.Condition{late, even}}, 4},
		"not":                   {loop.Condition{Not: &even}, 1},
		"for":                   {loop.Condition{Expr: "iteration != 2", For: 3}, 5},
		"for any":               {loop.Condition{Any: []loop.Condition{late, even}, For: 2}, 5},
		"for inside all":        {loop.Condition{All: []loop.Condition{even, {Expr: "iteration >= 2", For: 2}}}, 4},
		"for never":             {loop.Condition{Expr: "iteration % 2 == 0", For: 2}, 7},
		"missing key":           {missing, 7},
		"not missing key":       {loop.Condition{Not: &missing}, 7},
		"missing key or known":  {loop.Condition{Any: []loop.Condition{missing, even}}, 2},
		"missing key and known": {loop.Condition{All: []loop.Condition{missing, even}}, 7},
		"not (missing and no)":  {loop.Condition{Not: &loop.Condition{All: []loop.Condition{missing, e("iteration > 2")}}}, 1},
		"state":                 {e("has(state.score) && state.score >= 3"), 3},
		"score":                 {e("score != null && score >= 4"), 4},
		"scores":                {e("scores.size() >= 2 && scores[scores.size()-1] - scores[0] >= 2"), 3},
		"usage":                 {e("usage.tokens >= 40"), 4},
		"calls":                 {e("usage.calls > 1"), 2},
		"cost is known":         {e("has(usage.cost)"), 7},
		"elapsed":               {e("elapsed >= 3"), 3},
		"text":                  {e(`state.words.lowerAscii().contains("stop") && iteration > 1`), 2},
	} {
		p := loop.Plan{Steps: steps("a"), MaxIterations: 7, StopWhen: &c.when, Score: &loop.Score{Key: "score"}}
		tr := run(t, p, func(d loop.Decision) loop.Outcome {
			return loop.Outcome{
				State: map[string]any{"score": d.Iteration, "words": "Please STOP."},
				Usage: loop.Usage{Calls: 1, InputTokens: 7, OutputTokens: 3},
			}
		})
		if tr.stop.Iteration != c.want || (tr.stop.Reason == loop.ReasonCondition) != (c.want < 7) {
			t.Errorf("%s: %v", name, tr.stop)
		}
	}
}

// With StopCheck "step" a For still counts iterations.
func TestForCountsIterations(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b", "c"), MaxIterations: 5, StopCheck: loop.EachStep, StopWhen: &loop.Condition{Expr: "true", For: 3}}
	if tr := run(t, p, nil); tr.stop.Iteration != 3 || len(tr.ran) != 9 {
		t.Errorf("%v: %v", tr.ran, tr.stop)
	}
}

func TestConditionJSON(t *testing.T) {
	for text, want := range map[string]loop.Condition{
		`"state.a > 1"`:                  {Expr: "state.a > 1"},
		`{"expr":"state.a > 1","for":2}`: {Expr: "state.a > 1", For: 2},
		`{"any":["a",{"not":"b"}]}`:      {Any: []loop.Condition{{Expr: "a"}, {Not: &loop.Condition{Expr: "b"}}}},
		`{"all":["a","b"],"for":3}`:      {All: []loop.Condition{{Expr: "a"}, {Expr: "b"}}, For: 3},
	} {
		var got loop.Condition
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(got); err != nil || strings.TrimSpace(b.String()) != text {
			t.Errorf("%s came back as %s, %v", text, b.String(), err)
		}
	}
	for _, text := range []string{`{"anny":["a"]}`, `3`, `{"for":-1}`, `["a"]`} {
		var c loop.Condition
		if err := json.Unmarshal([]byte(text), &c); err == nil {
			t.Errorf("%s is read as %v", text, c)
		}
	}
}
