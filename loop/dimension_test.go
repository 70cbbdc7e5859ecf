// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// M7, LOOP 12: a score has parts, wherever it comes from.
func TestLaw12DimensionsAreRead(t *testing.T) {
	named := []string{"clarity", "grammar"}
	for name, c := range map[string]struct {
		score loop.Score
		value any
		want  string // score, and dimensions; or why not
	}{
		"fields, and a score":       {loop.Score{Dimensions: named}, `{"score": 9, "clarity": 8, "grammar": 7}`, "9 clarity=8 grammar=7"},
		"fields, and their mean":    {loop.Score{Dimensions: named}, `{"clarity": 8, "grammar": 7}`, "7.5 clarity=8 grammar=7"},
		"in an object":              {loop.Score{Dimensions: named}, `{"dimensions": {"clarity": 8, "grammar": 7}, "clarity": 1}`, "7.5 clarity=8 grammar=7"},
		"in the order of the plan":  {loop.Score{Dimensions: []string{"grammar", "clarity"}}, `{"clarity": 8, "grammar": 7}`, "7.5 grammar=7 clarity=8"},
		"without names":             {loop.Score{}, `{"dimensions": {"tone": 6, "clarity": "8/10", "why": "x"}}`, "7 clarity=8 tone=6"},
		"without names, a score":    {loop.Score{}, `{"score": 5, "dimensions": {"b": 6, "a": 7}}`, "5 a=7 b=6"},
		"no dimensions at all":      {loop.Score{}, `{"score": 5}`, "5"},
		"fences":                    {loop.Score{Dimensions: named}, "Well:\n```json\n{\"clarity\": 8, \"grammar\": 7}\n```", "7.5 clarity=8 grammar=7"},
		"a map":                     {loop.Score{Dimensions: named}, map[string]any{"clarity": 8, "grammar": 7.0}, "7.5 clarity=8 grammar=7"},
		"another field":             {loop.Score{Dimensions: named, Field: "total"}, `{"total": 6, "clarity": 8, "grammar": 7}`, "6 clarity=8 grammar=7"},
		"an expression":             {loop.Score{Expr: "state.s.verdict", Dimensions: named}, map[string]any{"verdict": map[string]any{"clarity": 8, "grammar": 7}}, "7.5 clarity=8 grammar=7"},
		"an expression, by itself":  {loop.Score{Expr: "(state.s.clarity + state.s.grammar) / 2"}, map[string]any{"clarity": 8, "grammar": 7.0}, "7.5"},
		"a label knows no mean":     {loop.Score{Label: "total"}, `{"dimensions": {"a": 7}}`, `state key "s": no label "total" in "{\"dimensions\": {\"a\": 7}}"`},
		"one is missing":            {loop.Score{Dimensions: named}, `{"score": 9, "clarity": 8}`, `state key "s": no dimension "grammar" in "{\"score\": 9, \"clarity\": 8}"; give the step an output_schema with it`},
		"one is no number":          {loop.Score{Dimensions: named}, `{"clarity": 8, "grammar": {"score": 7}}`, `state key "s": dimension "grammar": no number but a map of 1`},
		"a target, and no object":   {loop.Score{DimensionTarget: new(7.0)}, map[string]any{"score": 9}, `state key "s": no object "dimensions" in {"score":9}; give the step an output_schema with it`},
		"named, and no JSON at all": {loop.Score{Dimensions: named}, 9, `state key "s": 9 is no JSON, so it has no dimension "clarity"; give the step an output_schema with it`},
		"a target, and words alone": {loop.Score{DimensionTarget: new(7.0)}, "Clear,\n but dry: 7", `state key "s": "Clear, but dry: 7" is no JSON, so it has no object "dimensions"; give the step an output_schema with it`},
	} {
		if c.score.Expr == "" {
			c.score.Key = "s"
		}
		p := loop.Plan{Steps: steps("a"), MaxIterations: 1, Score: &c.score}
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var u loop.Tally
		p.Add(&u, loop.Outcome{State: map[string]any{"s": c.value}})
		got := u.ScoreNote
		if u.Score != nil {
			got = num(*u.Score)
			for _, d := range u.Ended.Dimensions {
				got += fmt.Sprintf(" %s=%s", d.Name, num(d.Value))
			}
			if diff := cmp.Diff(u.Dimensions, u.Ended.Dimensions); diff != "" {
				t.Errorf("%s:\n%s", name, diff)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// T22, C17: the target is the score AND every dimension.
func TestDimensionTarget(t *testing.T) {
	dims := func(score, a, b float64) any {
		return map[string]any{"score": score, "dimensions": map[string]any{"a": a, "b": b}}
	}
	for name, c := range map[string]struct {
		score  loop.Score
		scores []any
		want   int // the iteration that reaches it; 0: none
		detail string
	}{
		"both":                     {loop.Score{Target: new(8.0), DimensionTarget: new(7.0)}, []any{dims(9, 9, 6), dims(7, 9, 9), dims(8, 7, 9)}, 3, "Score 8 ≥ 8, every dimension ≥ 7"},
		"the dimensions alone":     {loop.Score{DimensionTarget: new(7.0)}, []any{dims(9, 9, 6), dims(1, 7, 9)}, 2, "every dimension ≥ 7"},
		"the score alone":          {loop.Score{Target: new(8.0)}, []any{dims(7, 9, 9), dims(9, 1, 1)}, 2, "Score 9 ≥ 8"},
		"lower is better":          {loop.Score{Target: new(2.0), DimensionTarget: new(3.0), LowerIsBetter: true}, []any{dims(1, 4, 1), dims(2, 3, 1)}, 2, "Score 2 ≤ 2, every dimension ≤ 3"},
		"no dimensions to look at": {loop.Score{Target: new(8.0), DimensionTarget: new(7.0)}, []any{9}, 0, ""},
	} {
		c.score.Key = "score"
		p := loop.Plan{Steps: steps("a"), MaxIterations: 3, Score: &c.score}
		tr := run(t, p, scored(c.scores...))
		got := tr.stop.Iteration
		if tr.stop.Reason != loop.ReasonTarget {
			got = 0
		}
		if got != c.want || c.want > 0 && tr.stop.Detail != c.detail {
			t.Errorf("%s: %v", name, tr.stop)
		}
	}
	p := loop.Plan{Steps: steps("a"), MaxIterations: 1, Score: &loop.Score{Key: "score", Target: new(8.0), DimensionTarget: new(7.0)}}
	tr := run(t, p, scored(dims(9, 5, 6)))
	want := loop.ConditionRecord{Name: "dimension_target", Value: "a 5", Threshold: "every one ≥ 7", Unit: loop.UnitScore,
		Have: new(5.0), Bound: new(7.0)}
	if got, _ := condition(tr.stop, "dimension_target"); !cmp.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	tr = run(t, p, scored(dims(5, 8, 8)))
	want = loop.ConditionRecord{Name: "dimension_target", Value: "all of 2", Threshold: "every one ≥ 7", Holds: true, Unit: loop.UnitScore,
		Have: new(8.0), Bound: new(7.0)}
	if got, _ := condition(tr.stop, "dimension_target"); !cmp.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// The dimensions of a judge are the means of its samples.
func TestDimensionsOfSamples(t *testing.T) {
	p := judged(2)
	p.MaxIterations, p.Score.Dimensions = 1, []string{"a", "b"}
	tr := run(t, p, func(d loop.Decision) loop.Outcome {
		return loop.Outcome{State: map[string]any{"score": fmt.Sprintf(`{"a": %d, "b": 4}`, 4+d.Sample)}}
	})
	if got := fmt.Sprint(*tr.ended[0].Score, tr.ended[0].Dimensions); got != "4.75 [{a 5.5} {b 4}]" {
		t.Errorf("%s", got)
	}
}

// LOOP 12: lower is better, everywhere.
func TestLowerIsBetter(t *testing.T) {
	plan := func(change func(*loop.Plan)) loop.Plan {
		p := loop.Plan{Steps: steps("a"), MaxIterations: 4, Score: &loop.Score{Key: "score", LowerIsBetter: true}}
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		plan   loop.Plan
		scores []any
		want   string
		accept string
	}{
		"gain and best":    {plan(func(*loop.Plan) {}), []any{9, 7, 8, 6}, "best 4 max_iterations", "**+*"},
		"target":           {plan(func(p *loop.Plan) { p.Score.Target = new(7.0) }), []any{9, 8, 7}, "best 3 target_reached", "***"},
		"convergence":      {plan(func(p *loop.Plan) { p.Score.MinDelta = new(0.5) }), []any{9, 8, 7.9}, "best 3 converged", "***"},
		"in per cent":      {plan(func(p *loop.Plan) { p.Score.MinDeltaPercent = new(5.0) }), []any{9, 8, 7.9}, "best 3 converged", "***"},
		"gate":             {plan(func(p *loop.Plan) { p.QualityGate = new(7.5) }), []any{9, 7, 8, 6}, "best 4 max_iterations", "-*-*"},
		"rollback":         {plan(func(p *loop.Plan) { p.OnRegression = loop.RollbackOnWorse }), []any{9, 7, 8, 6}, "best 4 max_iterations", "**-*"},
		"not worth":        {plan(func(p *loop.Plan) { p.NotWorth = &loop.NotWorth{Gain: 0.9} }), []any{9, 7, 6}, "best 3 converged", "***"},
		"worth it":         {plan(func(p *loop.Plan) { p.NotWorth = &loop.NotWorth{Gain: 0.9} }), []any{9, 8, 7, 6}, "best 4 max_iterations", "****"},
		"above the target": {plan(func(p *loop.Plan) { p.Score.Target = new(5.0) }), []any{9, 8, 7, 6}, "best 4 max_iterations", "****"},
	} {
		tr := run(t, c.plan, scored(c.scores...))
		if got := result(tr.stop) + " " + string(tr.stop.Reason); got != c.want || accepted(tr) != c.accept {
			t.Errorf("%s: %s, %s", name, got, accepted(tr))
		}
	}
	tr := run(t, plan(func(*loop.Plan) {}), scored(9, 7, 8, 6))
	var lines []string
	for _, r := range tr.ended[1:] {
		lines = append(lines, strings.TrimPrefix(r.String(), "Iteration "))
	}
	if diff := cmp.Diff([]string{"2: Score 7 → Improvement: +2 (22.2%)", "3: Score 8 → Improvement: -1 (-14.3%)",
		"4: Score 6 → Improvement: +2 (25.0%)"}, lines); diff != "" {
		t.Error(diff)
	}
}
