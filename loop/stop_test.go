// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// K9: the record lists every condition, with what it saw.
func TestStopRecordListsEveryCondition(t *testing.T) {
	p := loop.Plan{
		Name: "refine", Steps: steps("a", "b"), MaxIterations: 3, CanExit: []string{"b"}, OnError: loop.SkipStep, MaxConsecutiveFailures: 4,
		StopWhen: &loop.Condition{Any: []loop.Condition{{Expr: "state.failed == 0", For: 2}, {Expr: "state.gone > 1"}, {Expr: `state.text == "ok"`}}},
		Score:    &loop.Score{Key: "score", Target: new(9.0), MinDelta: new(0.1), Patience: 2},
	}
	tr := run(t, p, func(d loop.Decision) loop.Outcome {
		o := loop.Outcome{
			State: map[string]any{"score": 5 + d.Iteration, "failed": 3 - d.Iteration, "text": strings.Repeat("long ", 100)},
			Usage: loop.Usage{Calls: 1, InputTokens: 10, Cost: new(0.25)},
		}
		switch d.Step {
		case 0:
			o.Exit = &loop.Exit{Reason: "enough"}
		case 1:
			o.Failure = failure("").Failure
		}
		return o
	})
	want := &loop.StopRecord{
		Loop: "refine", Reason: loop.ReasonMaxIterations, Detail: "limit of 3 iterations", Iterations: 3, Iteration: 3,
		Conditions: []loop.ConditionRecord{
			{Name: "exit_loop", Value: "asked by a, who may not", Threshold: "b", Note: "3 exits refused", Who: []string{"b"}},
			{Name: "max_consecutive_failures", Value: "1", Threshold: "≥ 4", Unit: loop.UnitFailures, Have: new(1.0), Bound: new(4.0)},
			{Name: "stop_when", Expr: `state.failed == 0 for 2 iterations or state.gone > 1 or state.text == "ok"`},
			{Name: "stop_when.any[0]", Expr: "state.failed == 0 for 2 iterations", Value: "0", Threshold: "== 0", Note: "held for 1 of 2 iterations",
				Unit: loop.UnitTimes, Have: new(1.0), Bound: new(2.0)},
			{Name: "stop_when.any[1]", Expr: "state.gone > 1", Note: `state has no key "gone"`},
			{Name: "stop_when.any[2]", Expr: `state.text == "ok"`, Value: "text of 500 characters", Threshold: `== "ok"`},
			{Name: "target", Expr: "state.score", Value: "8", Threshold: "≥ 9", Unit: loop.UnitScore, Have: new(8.0), Bound: new(9.0)},
			{Name: "converged", Expr: "state.score", Value: "+1 (14.3%)", Threshold: "< 0.1, 2 times running", Note: "0 of 2",
				Unit: loop.UnitTimes, Have: new(0.0), Bound: new(2.0)},
			{Name: "max_iterations", Value: "3", Threshold: "≥ 3", Holds: true, Fired: true, Unit: loop.UnitIterations,
				Have: new(3.0), Bound: new(3.0)},
		},
		Nearest: "target", Result: loop.Result{Source: loop.FromBest, Iteration: 3}, BestVersion: loop.BestVersion{BestScore: new(8.0), BestIteration: 3},
		Usage: loop.Usage{Calls: 6, InputTokens: 60, Cost: new(1.5)}, Elapsed: 6 * time.Second, Trend: loop.Improving,
		StopHistory: loop.StopHistory{Failures: 3, Refusals: 3,
			Refused: []loop.Refusal{{Iteration: 1, By: "a", Reason: "enough"}, {Iteration: 2, By: "a", Reason: "enough"}, {Iteration: 3, By: "a", Reason: "enough"}}},
	}
	if diff := cmp.Diff(want, tr.stop); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	b, err := json.Marshal(tr.stop)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `"elapsed":"6s"`) {
		t.Errorf("%s", b)
	}
	var back loop.StopRecord
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tr.stop, &back); diff != "" {
		t.Errorf("after JSON:\n%s", diff)
	}
}

func TestNearest(t *testing.T) {
	score := func(s loop.Score) loop.Plan {
		s.Key = "score"
		return loop.Plan{Steps: steps("a"), MaxIterations: 10, Score: &s}
	}
	exit := func(p loop.Plan, n int, rest script) script {
		return at(p, "a", n, loop.Outcome{Exit: &loop.Exit{}}, rest)
	}
	when := score(loop.Score{})
	when.StopWhen = &loop.Condition{Expr: "state.score >= 100"}
	for name, c := range map[string]struct {
		plan   loop.Plan
		at     int
		scores []any
		want   string
	}{
		"limit":              {score(loop.Score{}), 3, []any{1}, "max_iterations"},
		"target":             {score(loop.Score{Target: new(8.0)}), 3, []any{5, 6, 7}, "target"},
		"limit and target":   {score(loop.Score{Target: new(8.0)}), 9, []any{1}, "max_iterations"},
		"patience":           {score(loop.Score{Target: new(8.0), MinDelta: new(0.1), Patience: 4}), 4, []any{1}, "converged"},
		"improvement":        {score(loop.Score{MinDelta: new(0.1)}), 2, []any{5, 5.11}, "converged"},
		"condition":          {when, 2, []any{90}, "stop_when"},
		"overtaken, it held": {score(loop.Score{Target: new(8.0)}), 2, []any{5, 9}, "target"},
	} {
		tr := run(t, c.plan, exit(c.plan, c.at, scored(c.scores...)))
		if tr.stop.Nearest != c.want {
			t.Errorf("%s: nearest %q, want %q: %+v", name, tr.stop.Nearest, c.want, tr.stop.Conditions)
		}
	}
}

func TestNotesOfConditions(t *testing.T) {
	for src, want := range map[string]string{
		"score > 8":      "there is no score",
		"state.a.b > 8":  `state has no key "a"`,
		"state.t > 8":    "the values do not fit the operation",
		"state.t":        `gives the text "words", not true or false`,
		"usage.cost > 1": `usage has no key "cost"`,
	} {
		p := loop.Plan{Steps: steps("a"), MaxIterations: 1, StopWhen: &loop.Condition{Expr: src}}
		tr := run(t, p, func(loop.Decision) loop.Outcome { return loop.Outcome{State: map[string]any{"t": "words"}} })
		if got := tr.stop.Conditions[1].Note; got != want {
			t.Errorf("%s: note %q, want %q", src, got, want)
		}
	}
}

// F10: an unknown price stays unknown.
func TestCostIsNeverInvented(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b"), MaxIterations: 1}
	for name, c := range map[string]struct {
		usage [2]loop.Usage
		want  *float64
	}{
		"nothing used":      {[2]loop.Usage{}, nil},
		"known":             {[2]loop.Usage{{Calls: 1, Cost: new(0.5)}, {Calls: 1, Cost: new(0.25)}}, new(0.75)},
		"known, and a tool": {[2]loop.Usage{{Calls: 1, Cost: new(0.5)}, {}}, new(0.5)},
		"one unknown":       {[2]loop.Usage{{Calls: 1, Cost: new(0.5)}, {Calls: 1}}, nil},
		"unknown, known":    {[2]loop.Usage{{Calls: 1}, {Calls: 1, Cost: new(0.5)}}, nil},
		"free":              {[2]loop.Usage{{Calls: 1, Cost: new(0.0)}, {}}, new(0.0)},
	} {
		tr := run(t, p, func(d loop.Decision) loop.Outcome { return loop.Outcome{Usage: c.usage[d.Step]} })
		if diff := cmp.Diff(c.want, tr.stop.Usage.Cost); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// T9: a call of exit_loop in words is noted in the iteration's record, and ends nothing.
func TestExitInWordsIsNoted(t *testing.T) {
	p := loop.Plan{Steps: []loop.Step{{Name: "a"}, {Name: "b"}}, MaxIterations: 2}
	tr := run(t, p, func(d loop.Decision) loop.Outcome { return loop.Outcome{ExitWords: d.Iteration == 1 && d.Step == 0} })
	if got := tr.stop.String(); got != "Stopped: max_iterations after 2 iterations: limit of 2 iterations" {
		t.Error(got)
	}
	want := []string{"a wrote exit_loop() in words and did not call the tool, so the loop did not end", ""}
	for i, it := range tr.ended {
		if it.Warning != want[i] {
			t.Errorf("iteration %d: %q, want %q", it.Number, it.Warning, want[i])
		}
	}
}

// The limit counts iterations that were cut short, and so does the line about it.
func TestStopRecordNamesWhatWasCutShort(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b"), MaxIterations: 3, OnError: loop.NextIteration}
	tr := run(t, p, at(p, "a", 2, failure(""), func(loop.Decision) loop.Outcome { return loop.Outcome{} }))
	want := "Stopped: max_iterations after 3 iterations, 1 of them cut short: limit of 3 iterations"
	if got := tr.stop.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
