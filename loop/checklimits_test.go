// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// Every limit and rule has its own error, at its own field. F9
func TestCheckLimits(t *testing.T) {
	type plan = loop.Plan
	score := &loop.Score{Key: "s"}
	step := func(s loop.Step) plan {
		s.Name = "a"
		return plan{Steps: []loop.Step{s}}
	}
	many := make([]string, 33)
	for i := range many {
		many[i] = string(rune('A' + i))
	}
	for name, c := range map[string]struct {
		plan plan
		want []string // field: text; the steps are one called a
	}{
		"all of it, as it should be": {plan{
			Steps: []loop.Step{
				{
					Name: "a", Timeout: secs(5), DelayBefore: secs(1), DelayAfter: secs(1), Retry: &loop.Retry{Attempts: 3, Backoff: secs(1), MaxBackoff: secs(9)},
					AdaptiveTimeout: &loop.AdaptiveTimeout{Factor: 2, Min: secs(1), Max: secs(9), After: 32}, Circuit: &loop.Circuit{Failures: 1, Cooldown: secs(1)},
				},
				{Name: "judge"}, {Name: "f", Finalizer: true},
			},
			Timeout: secs(9), IterationTimeout: secs(9), DelayBefore: secs(1), DelayAfter: secs(1), FinalizerReserve: 0.2, StateLimit: 9,
			Budget: &loop.Budget{Calls: 10, Tokens: 10, Cost: new(1.0)}, NoProgress: &loop.NoProgress{Repeats: 2, Swings: 1, Keys: []string{"k"}},
			NotWorth: &loop.NotWorth{Gain: 0.1, Per: loop.PerCost}, QualityGate: new(-1.0), OnRegression: loop.RollbackOnWorse,
			Score: &loop.Score{Key: "s", Judge: &loop.Judge{Step: "judge", Samples: 32}, Dimensions: many[:32], DimensionTarget: new(7.0)},
		}, nil},

		"timeouts": {plan{Timeout: -1, IterationTimeout: -2}, []string{"timeout: timeout is negative: -1ns", "iteration_timeout: iteration_timeout is negative: -2ns"}},
		"an iteration longer than the loop": {plan{Timeout: secs(5), IterationTimeout: secs(6)},
			[]string{"iteration_timeout: iteration_timeout 6s is longer than timeout 5s (an iteration could never run out of time)"}},
		"delays": {plan{DelayBefore: -1, DelayAfter: -1}, []string{"delay_before: delay_before is negative: -1ns", "delay_after: delay_after is negative: -1ns"}},
		"budget": {plan{Budget: &loop.Budget{Calls: -1, Cost: new(0.0)}},
			[]string{"budget: budget has a negative limit (0 sets no limit)", "budget.cost: budget.cost is 0 (give a positive number, or leave it out)"}},
		"tokens":           {plan{Budget: &loop.Budget{Tokens: -1}}, []string{"budget: budget has a negative limit (0 sets no limit)"}},
		"cost":             {plan{Budget: &loop.Budget{Cost: new(math.NaN())}}, []string{"budget.cost: budget.cost is NaN (give a finite number)"}},
		"nothing is left":  {plan{Steps: steps("a", "final"), Budget: &loop.Budget{Calls: 1}}, []string{"budget: budget is all kept for the finalizer (raise it, or keep a smaller share of it for the finalizer)"}},
		"one is left":      {plan{Steps: steps("a", "final"), Budget: &loop.Budget{Calls: 2}}, nil},
		"one is enough":    {plan{Budget: &loop.Budget{Calls: 1}}, nil},
		"reserve":          {plan{Steps: steps("a", "final"), FinalizerReserve: 1}, []string{"reserve: reserve is 1 (give a share below 1, such as 0.1)"}},
		"negative reserve": {plan{Steps: steps("a", "final"), FinalizerReserve: -0.1}, []string{"reserve: reserve is -0.1 (give a share below 1, such as 0.1)"}},
		"reserve for none": {plan{FinalizerReserve: 0.1}, []string{"reserve: reserve is kept for a finalizer, but the loop has none"}},
		"reserve for each": {plan{Steps: steps("a", "final"), FinalizeEach: true, FinalizerReserve: 0.1}, []string{"reserve: reserve is kept for a finalizer, but the loop has none"}},
		"state limit":      {plan{StateLimit: -1}, []string{"state_limit: state_limit is negative: -1"}},
		"finalize each":    {plan{FinalizeEach: true}, []string{"finalize_each: finalize_each needs a finalizer"}},

		"step timeout": {step(loop.Step{Timeout: -1}), []string{"steps[0].timeout: steps[0].timeout is negative: -1ns"}},
		"step delays": {step(loop.Step{DelayBefore: -1, DelayAfter: -1}),
			[]string{"steps[0].delay_before: steps[0].delay_before is negative: -1ns", "steps[0].delay_after: steps[0].delay_after is negative: -1ns"}},
		"retry": {step(loop.Step{Retry: &loop.Retry{Backoff: -1, MaxBackoff: -1}}), []string{
			"steps[0].retry.attempts: steps[0].retry has no attempts (give how often the step runs in all, at least 2)",
			"steps[0].retry.backoff: steps[0].retry.backoff is negative: -1ns", "steps[0].retry.max_backoff: steps[0].retry.max_backoff is negative: -1ns",
		}},
		"backoff": {step(loop.Step{Retry: &loop.Retry{Attempts: 2, Backoff: secs(2), MaxBackoff: secs(1)}}),
			[]string{"steps[0].retry.max_backoff: steps[0].retry.backoff 2s is above max_backoff 1s"}},
		"retry of the finalizer": {plan{Steps: []loop.Step{{Name: "a"}, {Name: "f", Finalizer: true, Retry: &loop.Retry{Attempts: 2}}}},
			[]string{"steps[1].retry: the finalizer is not run again (leave retry out)"}},
		"retry of a finalizer in each": {plan{FinalizeEach: true, Steps: []loop.Step{{Name: "a"}, {Name: "f", Finalizer: true, Retry: &loop.Retry{Attempts: 2}}}}, nil},
		"adaptive": {step(loop.Step{AdaptiveTimeout: &loop.AdaptiveTimeout{Min: -1, Factor: 0.5, After: 33}}), []string{
			"steps[0].adaptive.min: steps[0].adaptive.min is negative: -1ns", "steps[0].adaptive.max: steps[0].adaptive needs a max",
			"steps[0].adaptive.factor: steps[0].adaptive.factor is 0.5 (give at least 1)", "steps[0].adaptive.after: steps[0].adaptive.after is 33 (at most 32 runs are remembered)",
		}},
		"adaptive bounds": {step(loop.Step{AdaptiveTimeout: &loop.AdaptiveTimeout{Min: secs(2), Max: secs(1), Factor: math.NaN()}}), []string{
			"steps[0].adaptive.min: steps[0].adaptive.min 2s is above max 1s", "steps[0].adaptive.factor: steps[0].adaptive.factor is NaN (give at least 1)",
		}},
		"circuit": {step(loop.Step{Circuit: &loop.Circuit{}}), []string{
			"steps[0].circuit.failures: steps[0].circuit has no failures (give how many running open it)",
			"steps[0].circuit.cooldown: steps[0].circuit has no cooldown (give how long it stays open, such as 1m)",
		}},
		"cooldown": {step(loop.Step{Circuit: &loop.Circuit{Failures: 1, Cooldown: -1}}), []string{"steps[0].circuit.cooldown: steps[0].circuit.cooldown is negative: -1ns"}},

		"on_regression":        {plan{Score: score, OnRegression: "undo"}, []string{`on_regression: on_regression is "undo" (use "keep_best" or "rollback")`}},
		"rollback of what":     {plan{OnRegression: loop.RollbackOnWorse}, []string{"on_regression: on_regression needs a score (say under score where it is)"}},
		"best without a score": {plan{OnRegression: loop.KeepBest}, nil},
		"gate":                 {plan{Score: score, QualityGate: new(math.Inf(1))}, []string{"quality_gate: quality_gate is +Inf (give a finite number)"}},
		"gate to what":         {plan{QualityGate: new(5.0)}, []string{"quality_gate: quality_gate needs a score (say under score where it is)"}},
		"no_progress.repeats":  {plan{NoProgress: &loop.NoProgress{Repeats: 1}}, []string{"no_progress.repeats: no_progress.repeats is 1 (give at least 2: every result is the same as itself)"}},
		"no_progress.keys":     {plan{NoProgress: &loop.NoProgress{Keys: []string{"a", ""}}}, []string{"no_progress.keys: no_progress.keys has an empty key"}},
		"not_worth": {plan{Score: score, NotWorth: &loop.NotWorth{Gain: math.NaN(), Per: "hour"}}, []string{
			"not_worth.gain: not_worth.gain is NaN (give a finite number)", `not_worth.per: not_worth.per is "hour" (use "iteration", "minute", "ktokens" or "cost")`,
		}},
		"not_worth nothing": {plan{Score: score, NotWorth: &loop.NotWorth{}}, []string{"not_worth.gain: not_worth.gain is 0 (give the least gain that is worth going on for)"}},
		"not_worth of what": {plan{NotWorth: &loop.NotWorth{Gain: 1}}, []string{"not_worth: not_worth needs a score (say under score where it is)"}},

		"judge": {plan{Steps: steps("critic"), Score: &loop.Score{Key: "s", Judge: &loop.Judge{Step: "critc", Samples: 33}}}, []string{
			`score.judge.step: score.judge names "critc", which is no step (did you mean "critic"?)`, "score.judge.samples: score.judge.samples is 33 (give at most 32)",
		}},
		"a judge from elsewhere": {plan{Score: &loop.Score{Key: "s", Judge: &loop.Judge{Step: "somebody"}}}, []string{`score.judge.step: score.judge names "somebody", which is no step (name a step of the loop)`}},
		"the finalizer judges":   {plan{Steps: steps("a", "final"), Score: &loop.Score{Key: "s", Judge: &loop.Judge{Step: "final"}}}, []string{`score.judge.step: score.judge names "final", which is no step (name a step of the loop)`}},
		"dimensions": {plan{Score: &loop.Score{Key: "s", Dimensions: []string{"x", "", "x"}, DimensionTarget: new(math.Inf(-1))}}, []string{
			`score.dimensions: score.dimensions has "" twice, or empty`, `score.dimensions: score.dimensions has "x" twice, or empty`,
			"score.dimension_target: score.dimension_target is -Inf (give a finite number)",
		}},
		"too many dimensions":   {plan{Score: &loop.Score{Key: "s", Dimensions: many}}, []string{"score.dimensions: score has 33 dimensions (give at most 32)"}},
		"dimensions of nothing": {plan{Score: &loop.Score{DimensionTarget: new(7.0)}}, []string{"score: score has a threshold, but nothing says what the score is (give key or expr)"}},
	} {
		if c.plan.Steps == nil {
			c.plan.Steps = steps("a")
		}
		if diff := cmp.Diff(c.want, problems(t, c.plan)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
