// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// M1, M2, C18
func TestImprovementInTheSeedsWords(t *testing.T) {
	plan := loop.Plan{Steps: steps("a"), MaxIterations: 9, Score: &loop.Score{Key: "score", MinDeltaPercent: new(5.0)}}
	tr := run(t, plan, scored(5.2, 6.8, 7.4, 7.6))
	var lines []string
	for _, r := range tr.ended {
		lines = append(lines, r.String())
	}
	want := []string{
		"Iteration 1: Score 5.2 → Improvement: N/A",
		"Iteration 2: Score 6.8 → Improvement: +1.6 (30.8%)",
		"Iteration 3: Score 7.4 → Improvement: +0.6 (8.8%)",
		"Iteration 4: Score 7.6 → Improvement: +0.2 (2.7%)",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if tr.stop.Detail != "Convergence detected: Improvement < 5%" || tr.stop.Iteration != 4 {
		t.Errorf("%+v", tr.stop)
	}
}

func TestImprovementTexts(t *testing.T) {
	for _, c := range []struct {
		scores []any
		lower  bool
		want   string
	}{
		{[]any{7.4, 7.2}, false, "Iteration 2: Score 7.2 → Improvement: -0.2 (-2.7%)"},
		{[]any{0.5, 0.4}, true, "Iteration 2: Score 0.4 → Improvement: +0.1 (20.0%)"},
		{[]any{0, 3}, false, "Iteration 2: Score 3 → Improvement: +3"},
		{[]any{-2.0, -1.0}, false, "Iteration 2: Score -1 → Improvement: +1 (50.0%)"},
		{[]any{5, 5}, false, "Iteration 2: Score 5 → Improvement: +0 (0.0%)"},
		{[]any{5, "?"}, false, "Iteration 2"},
		{[]any{"?", 5}, false, "Iteration 2: Score 5 → Improvement: N/A"},
		{[]any{0.1, 0.30000000000000004}, false, "Iteration 2: Score 0.3 → Improvement: +0.2 (200.0%)"},
	} {
		plan := loop.Plan{Steps: steps("a"), MaxIterations: 2, Score: &loop.Score{Key: "score", LowerIsBetter: c.lower}}
		tr := run(t, plan, scored(c.scores...))
		if got := tr.ended[1].String(); got != c.want {
			t.Errorf("%v: %s, want %s", c.scores, got, c.want)
		}
	}
}

// D18, T15, T21: how a score may be written in state.
func TestScoreIsRead(t *testing.T) {
	type dims struct {
		Score float64 `json:"score"`
	}
	for name, c := range map[string]struct {
		score loop.Score
		value any
		want  float64
		note  string
	}{
		"float":            {loop.Score{Key: "s"}, 7.5, 7.5, ""},
		"int":              {loop.Score{Key: "s"}, 7, 7, ""},
		"int8":             {loop.Score{Key: "s"}, int8(7), 7, ""},
		"json number":      {loop.Score{Key: "s"}, json.Number("7.5"), 7.5, ""},
		"text":             {loop.Score{Key: "s"}, " 7.5\n", 7.5, ""},
		"text with a rest": {loop.Score{Key: "s"}, "**8.5**/10, good", 8.5, ""},
		"json":             {loop.Score{Key: "s"}, `{"score": 8.5, "why": "x"}`, 8.5, ""},
		"fenced json":      {loop.Score{Key: "s"}, "My verdict:\n```json\n{\"score\": \"8.5\"}\n```", 8.5, ""},
		"field":            {loop.Score{Key: "s", Field: "total.mean"}, `{"total": {"mean": 6}}`, 6, ""},
		"map":              {loop.Score{Key: "s"}, map[string]any{"score": 3}, 3, ""},
		"struct":           {loop.Score{Key: "s"}, dims{4}, 4, ""},
		"label":            {loop.Score{Key: "s", Label: "score:"}, "Iteration 2\nScore: 7.5/10", 7.5, ""},
		"label, any words": {loop.Score{Key: "s", Label: "Nota"}, "2 problemas. NOTA final = 7,5", 7.5, ""},
		"expression":       {loop.Score{Expr: "state.s.map(x, double(x)).filter(x, x > 1.0).size() / 2.0"}, []any{1, 2, 3}, 1, ""},
		"expression, int":  {loop.Score{Expr: "state.s * 2"}, 4, 8, ""},
		"mean":             {loop.Score{Expr: "(state.s.a + state.s.b) / 2"}, map[string]any{"a": 8, "b": 7.5}, 7.75, ""},

		"missing":          {loop.Score{Key: "t"}, 1, 0, `state has no key "t"`},
		"no number":        {loop.Score{Key: "s"}, "fine", 0, `state key "s": "fine" has neither a number nor JSON with one; set label to the word before the number, or give the step an output_schema`},
		"no label":         {loop.Score{Key: "s", Label: "Score"}, "8", 0, `state key "s": no label "Score" in "8"`},
		"nothing after it": {loop.Score{Key: "s", Label: "Score"}, "Score: good", 0, `state key "s": after the label "Score": no number in the text`},
		"no field":         {loop.Score{Key: "s"}, `{"grade": 8}`, 0, `state key "s": no field "score" in the JSON`},
		"a list":           {loop.Score{Key: "s"}, []any{1}, 0, `state key "s": no score in a list of 1`},
		"null":             {loop.Score{Key: "s"}, nil, 0, `state key "s": no score in null`},
		"NaN":              {loop.Score{Key: "s"}, math.NaN(), 0, `state key "s": not a finite number: NaN`},
		"infinite":         {loop.Score{Expr: "state.s"}, math.Inf(1), 0, `not a finite number: +Inf`},
		"bad expression":   {loop.Score{Expr: "state.s.x"}, map[string]any{}, 0, `state.s has no key "x"`},
		"channel":          {loop.Score{Key: "s"}, make(chan int), 0, `state key "s": no score in a value of type chan int: json: unsupported type: chan int`},
	} {
		plan := loop.Plan{Steps: steps("a"), MaxIterations: 1, Score: &c.score}
		if err := plan.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var u loop.Tally
		plan.Add(&u, loop.Outcome{State: map[string]any{"s": c.value}})
		switch {
		case c.note != u.ScoreNote:
			t.Errorf("%s: note %q, want %q", name, u.ScoreNote, c.note)
		case c.note == "" && (u.Score == nil || *u.Score != c.want):
			t.Errorf("%s: score %v, want %v", name, u.Score, c.want)
		}
	}
}

// T23, T24, T31, O9
func TestConvergence(t *testing.T) {
	for name, c := range map[string]struct {
		score  loop.Score
		scores []any
		want   int // the iteration it converges at; 0: never
	}{
		"below the delta":                {loop.Score{MinDelta: new(0.1)}, []any{1, 2, 2.05}, 3},
		"exactly the delta goes on":      {loop.Score{MinDelta: new(0.1)}, []any{7.2, 7.3, 7.4, 7.5, 7.6, 7.7}, 0},
		"below the percentage":           {loop.Score{MinDeltaPercent: new(5.0)}, []any{100, 104}, 2},
		"exactly the percentage goes on": {loop.Score{MinDeltaPercent: new(5.0)}, []any{100, 105, 110.25, 120, 130, 140}, 0},
		"either":                         {loop.Score{MinDelta: new(1.0), MinDeltaPercent: new(5.0)}, []any{100, 102, 110, 120, 130, 140}, 2},
		"patience":                       {loop.Score{MinDelta: new(0.1), Patience: 2}, []any{1, 1, 2, 2, 2}, 5},
		"a fall is below":                {loop.Score{MinDelta: new(0.1), Patience: 2}, []any{5, 4, 3}, 3},
		"lower is better":                {loop.Score{MinDelta: new(0.1), LowerIsBetter: true}, []any{5, 4, 3.95}, 3},
		"zero delta wants only no fall":  {loop.Score{MinDelta: new(0.0)}, []any{5, 5, 5, 4}, 4},
		"from zero":                      {loop.Score{MinDeltaPercent: new(5.0)}, []any{0, 1, 1}, 3},
		"zero stays zero":                {loop.Score{MinDeltaPercent: new(5.0)}, []any{0, 0}, 2},
		"an unread score waits":          {loop.Score{MinDelta: new(0.1)}, []any{5, "?", 5}, 3},
	} {
		c.score.Key = "score"
		plan := loop.Plan{Steps: steps("a"), MaxIterations: 6, Score: &c.score}
		tr := run(t, plan, scored(c.scores...))
		got := tr.stop.Iteration
		if tr.stop.Reason != loop.ReasonConverged {
			got = 0
		}
		if got != c.want {
			t.Errorf("%s: converged at %d, want %d", name, got, c.want)
		}
	}
}

// A failed step may have left an old score behind: it proves no plateau.
func TestFailedStepProvesNoPlateau(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "judge"), MaxIterations: 3, OnError: loop.SkipStep, Score: &loop.Score{Key: "score", MinDelta: new(0.1)}}
	o := failure("")
	tr := run(t, p, at(p, "judge", 2, o, scored(5, 5, 6)))
	if tr.stop.Reason != loop.ReasonMaxIterations {
		t.Errorf("%v", tr.stop)
	}
	p.OnError = loop.NextIteration
	tr = run(t, p, at(p, "a", 2, o, scored(5, 5, 6)))
	if r := tr.ended[1]; r.Score != nil || r.Complete || tr.stop.Reason != loop.ReasonMaxIterations {
		t.Errorf("%+v, %v", r, tr.stop)
	}
}

// C8: the exit's iteration is scored too, or the approved version would not be the best.
func TestExitIsScored(t *testing.T) {
	p := loop.Plan{Steps: steps("judge", "checker", "b"), Score: &loop.Score{Key: "score"}, BestOnExit: true}
	tr := run(t, p, at(p, "checker", 2, loop.Outcome{Exit: &loop.Exit{}}, scored(5, 9)))
	if result(tr.stop) != "best 2" || *tr.stop.BestScore != 9 || tr.stop.Iterations != 1 {
		t.Errorf("%+v", tr.stop)
	}
	tr = run(t, p, at(p, "checker", 2, loop.Outcome{Exit: &loop.Exit{Score: new(4.0)}}, scored(5, 9)))
	if result(tr.stop) != "best 1" || *tr.ended[1].Score != 4 {
		t.Errorf("%+v", tr.stop)
	}
}

func TestEqualScoreKeepsTheEarlierBest(t *testing.T) {
	p := loop.Plan{Steps: steps("a"), MaxIterations: 4, Score: &loop.Score{Key: "score", LowerIsBetter: true}}
	tr := run(t, p, scored(5, 3, 3, 4))
	var best []string
	for _, r := range tr.ended {
		if r.Best {
			best = append(best, r.String()[:11])
		}
	}
	if tr.stop.BestIteration != 2 || strings.Join(best, ",") != "Iteration 1,Iteration 2" {
		t.Errorf("%v %+v", best, tr.stop)
	}
}
