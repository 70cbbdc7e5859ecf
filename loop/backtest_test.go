// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// M6, T31: one recording, other policies.
func TestBacktest(t *testing.T) {
	recorded := loop.Plan{Steps: steps("writer", "critic", "final"), MaxIterations: 5, Score: &loop.Score{Key: "score"}, OnError: loop.SkipStep}
	tr := run(t, recorded, at(recorded, "critic", 3, loop.Outcome{Exit: &loop.Exit{By: "nobody"}, State: map[string]any{"score": 7.4}}, scored(5.2, 6.8, 7.4, 7.6, 7.61)))
	if tr.stop.Reason != loop.ReasonExit {
		t.Fatalf("%v", tr.stop)
	}
	recorded.CanExit = []string{"writer"}
	tr = run(t, recorded, at(recorded, "critic", 3, loop.Outcome{Exit: &loop.Exit{By: "nobody"}, State: map[string]any{"score": 7.4}}, scored(5.2, 6.8, 7.4, 7.6, 7.61)))

	with := func(change func(*loop.Plan)) loop.Plan {
		p := recorded
		s := *p.Score
		p.Score = &s
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		plan    loop.Plan
		stop    string
		steps   int
		saved   [2]int // steps, iterations
		unknown string
	}{
		"the same":       {recorded, "Stopped: max_iterations after 5 iterations: limit of 5 iterations", 10, [2]int{0, 0}, ""},
		"lower limit":    {with(func(p *loop.Plan) { p.MaxIterations = 2 }), "Stopped: max_iterations after 2 iterations: limit of 2 iterations", 4, [2]int{6, 3}, ""},
		"higher limit":   {with(func(p *loop.Plan) { p.MaxIterations = 9 }), "", 10, [2]int{0, 0}, "unknown beyond the recording"},
		"no limit":       {with(func(p *loop.Plan) { p.MaxIterations = 0 }), "", 10, [2]int{0, 0}, "unknown beyond the recording"},
		"target":         {with(func(p *loop.Plan) { p.Score.Target = new(7.0) }), "Stopped: target_reached after 3 iterations: Score 7.4 ≥ 7", 6, [2]int{4, 2}, ""},
		"convergence":    {with(func(p *loop.Plan) { p.Score.MinDeltaPercent = new(5.0) }), "Stopped: converged after 4 iterations: Improvement < 5%", 8, [2]int{2, 1}, ""},
		"condition":      {with(func(p *loop.Plan) { p.StopWhen = &loop.Condition{Expr: "state.score > 6"} }), "Stopped: condition after 2 iterations: state.score > 6", 4, [2]int{6, 3}, ""},
		"after a step":   {with(func(p *loop.Plan) { p.StopWhen, p.StopCheck = &loop.Condition{Expr: "state.score > 6"}, loop.EachStep }), "Stopped: condition after 1 iteration: state.score > 6", 3, [2]int{7, 3}, ""},
		"exits allowed":  {with(func(p *loop.Plan) { p.CanExit = nil }), "Stopped: exit_loop after 3 iterations: no reason given by nobody", 6, [2]int{4, 2}, ""},
		"another order":  {with(func(p *loop.Plan) { p.Order = []string{"critic", "writer"} }), "", 0, [2]int{0, 0}, `in iteration 1 this plan would run "critic", the recording has "writer"`},
		"another finish": {with(func(p *loop.Plan) { p.Steps = steps("writer", "critic") }), "Stopped: max_iterations after 5 iterations: limit of 5 iterations", 10, [2]int{1, 0}, ""},
	} {
		got := c.plan.Backtest(tr.outcomes)
		line := ""
		if got.Stop != nil {
			line = got.Stop.String()
		}
		if line != c.stop || got.Note != c.unknown || got.Unknown != (c.unknown != "") {
			t.Errorf("%s: %s, note %q", name, line, got.Note)
		}
		if got.Steps != c.steps || [2]int{got.SavedSteps, got.SavedIterations} != c.saved {
			t.Errorf("%s: %d steps, saved %d and %d iterations", name, got.Steps, got.SavedSteps, got.SavedIterations)
		}
		if name == "the same" {
			if diff := cmp.Diff(tr.stop, got.Stop); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tr.ended, got.Records); diff != "" {
				t.Error(diff)
			}
		}
	}
	if got := recorded.Backtest(nil); !got.Unknown {
		t.Errorf("an empty recording: %+v", got)
	}
}
