// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// legged is a loop that converges after one improvement that is too small, and has legs.
func legged(legs ...loop.Leg) loop.Plan {
	return loop.Plan{
		Steps: steps("a"), MaxIterations: 12, Score: &loop.Score{Key: "score", MinDelta: new(0.5)}, OnPlateau: legs,
	}
}

// LOOP 19a: each leg once, in order, from the best, and the best of all is handed back.
func TestLaw19aLegsInOrderFromTheBest(t *testing.T) {
	p := legged(loop.Leg{Model: "b"}, loop.Leg{Thinking: "high"})
	tr := run(t, p, scored(5, 7, 6, 8, 8.1, 7.9))
	if got, want := strings.Join(tr.ran, " "), "a@1 a@2 a@3 leg 1 from 2 a@4 a@5 leg 2 from 5 a@6"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
	var legs []int
	for _, r := range tr.ended {
		legs = append(legs, r.Leg)
	}
	if diff := cmp.Diff([]int{0, 0, 0, 1, 1, 2}, legs); diff != "" {
		t.Error(diff)
	}
	if s := tr.stop; s.Reason != loop.ReasonConverged || s.Leg != 2 || s.BestIteration != 5 || s.Result != (loop.Result{Source: loop.FromBest, Iteration: 5}) ||
		s.Detail != "Convergence detected: Improvement < 0.5; leg 2 of 2: thinking high" {
		t.Errorf("%+v", s)
	}
	if got := tr.ended[3].String(); got != "Iteration 4: Score 8 → Improvement: +1 (14.3%)" { // from the best, not from the last
		t.Error(got)
	}
	if got := tr.decided[3].Why; got != "Convergence detected: Improvement < 0.5" {
		t.Error(got)
	}
}

// LOOP 19a: a leg from the start is compared with the best of all for the result, and with its own best for rollbacks.
func TestLaw19aFreshLegHasItsOwnBest(t *testing.T) {
	p := legged(loop.Leg{Fresh: true})
	p.OnRegression = loop.RollbackOnWorse
	for _, c := range []struct {
		scores          []any
		ran             string
		accepted        string
		best            int
		worse, improved string
	}{
		{[]any{5, 8, 8.1, 3, 5, 4, 6, 6.1}, "a@1 a@2 a@3 leg 1 from 0 a@4 a@5 a@6 back to 5", "***++-", 3,
			"score 4 is worse than 5, the best of this leg (iteration 5)", "Iteration 4: Score 3 → Improvement: N/A"},
		{[]any{5, 5.2, 3, 8, 7}, "a@1 a@2 leg 1 from 0 a@3 a@4 a@5 back to 4", "**+*-", 4,
			"score 7 is worse than 8, the best of this leg (iteration 4)", "Iteration 3: Score 3 → Improvement: N/A"},
	} {
		tr := run(t, p, scored(c.scores...))
		if got := strings.Join(tr.ran, " "); got != c.ran || accepted(tr) != c.accepted || tr.stop.BestIteration != c.best {
			t.Errorf("ran %s, %s, best %d; want %+v", got, accepted(tr), tr.stop.BestIteration, c)
		}
		if last := tr.ended[len(tr.ended)-1]; last.Rejected != c.worse {
			t.Errorf("rejected %q, want %q", last.Rejected, c.worse)
		}
		for _, r := range tr.ended {
			if r.Leg == 1 {
				if r.String() != c.improved {
					t.Error(r)
				}
				break
			}
		}
	}
}

// LOOP 19a: only convergence begins a leg. Every other reason stops the loop at once, and legs add no iterations.
func TestLaw19aOnlyConvergenceBeginsALeg(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*loop.Plan)
		script script
		reason loop.StopReason
	}{
		"no iteration is left": {func(p *loop.Plan) { p.MaxIterations = 3 }, scored(5, 7, 7.1), loop.ReasonConverged},
		"the limit":            {func(p *loop.Plan) { p.MaxIterations = 3 }, scored(5, 7, 9), loop.ReasonMaxIterations},
		"the target":           {func(p *loop.Plan) { p.Score.Target = new(7.0) }, scored(5, 7), loop.ReasonTarget},
		"a condition":          {func(p *loop.Plan) { p.StopWhen = &loop.Condition{Expr: "iteration >= 3"} }, scored(5, 7, 7.1), loop.ReasonCondition},
		"no progress": {func(p *loop.Plan) {
			p.NoProgress, p.Score.MinDelta, p.NotWorth = &loop.NoProgress{Keys: []string{"score"}}, nil, &loop.NotWorth{Gain: 0.01}
		},
			scored(5, 7, 9, 9, 9), loop.ReasonNoProgress},
		"the budget": {func(p *loop.Plan) { p.Budget = &loop.Budget{Calls: 3} }, func(d loop.Decision) loop.Outcome {
			o := scored(5, 7, 7.1)(d)
			o.Usage.Calls = 1
			return o
		}, loop.ReasonConverged},
	} {
		p := legged(loop.Leg{Model: "b"})
		c.change(&p)
		tr := run(t, p, c.script)
		if tr.stop.Reason != c.reason || tr.stop.Leg != 0 || strings.Contains(strings.Join(tr.ran, " "), "leg") {
			t.Errorf("%s: ran %v: %+v", name, tr.ran, tr.stop)
		}
	}
}

// LOOP 19a: what counts towards convergence begins again with each leg: the improvements, the course and its proof.
func TestLaw19aALegHasItsOwnPlateau(t *testing.T) {
	p := legged(loop.Leg{Model: "b"})
	p.Score.Patience = 2
	tr := run(t, p, scored(5, 7, 7, 7, 7, 7, 9))
	if got, want := strings.Join(tr.ran, " "), "a@1 a@2 a@3 a@4 leg 1 from 2 a@5 a@6"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
	p = judged(2)
	p.Version, p.MaxIterations, p.Score.MinDelta, p.Score.Patience = 3, 40, new(0.1), 2
	p.OnPlateau = []loop.Leg{{Model: "b"}}
	flat := func(d loop.Decision) loop.Outcome {
		wave := []float64{7, 7.2, 6.9, 7.1}[d.Iteration%4]
		return loop.Outcome{State: map[string]any{"score": wave + 0.3*float64(d.Sample)}, Fingerprint: string(rune('a' + d.Iteration))}
	}
	tr = run(t, p, flat)
	n := len(tr.ended)
	first := 0
	for _, r := range tr.ended {
		if r.Leg == 0 {
			first++
		}
	}
	if first < 4 || n-first < 4 || tr.stop.Reason != loop.ReasonConverged {
		t.Errorf("%d iterations before the leg, %d in it: %v", first, n-first, tr.stop)
	}
}

// LOOP 31: a loop that stopped for its limit on a plateau goes on in its next leg.
func TestAHigherLimitBeginsTheLeg(t *testing.T) {
	p := legged(loop.Leg{Model: "b"})
	p.MaxIterations = 3
	tr := run(t, p, scored(5, 7, 7.1))
	if tr.stop.Detail != "Convergence detected: Improvement < 0.5; leg 1 of 1 has not begun" {
		t.Errorf("%q", tr.stop.Detail)
	}
	p.MaxIterations = 5
	if err := p.Reopen(&tr.tally); err != nil {
		t.Fatal(err)
	}
	tr = goOn(t, p, tr.tally, scored(5, 7, 7.1, 8, 9))
	if got := strings.Join(tr.ran, " "); got != "leg 1 from 3 a@4 a@5" || tr.stop.Reason != loop.ReasonMaxIterations {
		t.Errorf("ran %s: %v", got, tr.stop)
	}
}

// K9: a back-test says what the legs have cost, and where another plan would go another way.
func TestBacktestOfLegs(t *testing.T) {
	p := legged(loop.Leg{Model: "b"})
	tr := run(t, p, scored(5, 7, 7.1, 9, 9.1))
	if back := p.BacktestOf(&p, tr.outcomes); back.Unknown || !cmp.Equal(back.Stop, tr.stop) {
		t.Errorf("%+v", back)
	}
	none := p
	none.OnPlateau = nil
	if back := none.BacktestOf(&p, tr.outcomes); back.Unknown || back.Stop.Iteration != 3 || *back.Stop.BestScore != 7.1 || back.SavedIterations != 2 {
		t.Errorf("%+v", back)
	}
	for name, c := range map[string]struct {
		plan *loop.Plan
		note string
	}{
		"another leg":    {new(legged(loop.Leg{Model: "c"})), "after iteration 3 this plan would begin leg 1 (model c), the recording begins leg 1 (model b)"},
		"a later leg":    {new(legged(loop.Leg{Model: "b"}, loop.Leg{Fresh: true})), "unknown beyond the recording, where this plan would begin leg 2: from the start"},
		"more patience":  {func() *loop.Plan { q := p; q.Score = &loop.Score{Key: "score", MinDelta: new(0.05)}; return &q }(), "after iteration 3 this plan would go on, the recording begins leg 1 (model b)"},
		"an earlier leg": {func() *loop.Plan { q := p; q.Score = &loop.Score{Key: "score", MinDelta: new(2.5)}; return &q }(), "after iteration 2 this plan would begin leg 1 (model b), the recording goes on"},
	} {
		if back := c.plan.BacktestOf(&p, tr.outcomes); !back.Unknown || back.Note != c.note {
			t.Errorf("%s: %q, want %q", name, back.Note, c.note)
		}
	}
}

func TestCheckLegs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*loop.Plan)
		field  string
		want   string
	}{
		"no plateau":  {func(p *loop.Plan) { p.Score.MinDelta = nil }, "on_plateau", "on_plateau has no plateau to wait for"},
		"no score":    {func(p *loop.Plan) { p.Score = nil }, "on_plateau", "on_plateau has no plateau to wait for"},
		"nothing":     {func(p *loop.Plan) { p.OnPlateau[0] = loop.Leg{} }, "on_plateau[0]", "on_plateau[0] changes nothing"},
		"only steps":  {func(p *loop.Plan) { p.OnPlateau[0] = loop.Leg{Fresh: true, Steps: []string{"a"}} }, "on_plateau[0].steps", "nothing that changes"},
		"thinking":    {func(p *loop.Plan) { p.OnPlateau[0].Thinking = "hihg" }, "on_plateau[0].thinking", `did you mean "high"?`},
		"twice":       {func(p *loop.Plan) { p.OnPlateau[0].Steps = []string{"a", "a"} }, "on_plateau[0].steps[1]", `names "a" twice`},
		"a judge":     {func(p *loop.Plan) { p.Score.Judge, p.OnPlateau[0].Steps = &loop.Judge{Step: "a"}, []string{"a"} }, "on_plateau[0].steps[0]", "which gives the score"},
		"a finalizer": {func(p *loop.Plan) { p.Steps, p.OnPlateau[0].Steps = steps("a", "final"), []string{"final"} }, "on_plateau[0].steps[0]", "names the finalizer"},
	} {
		p := legged(loop.Leg{Model: "b"})
		c.change(&p)
		var pe *loop.PlanError
		if err := p.Check(); !errors.As(err, &pe) || pe.Field != c.field || !strings.Contains(pe.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
