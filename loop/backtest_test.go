// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// M6, T31: one recording, other policies.
func TestBacktest(t *testing.T) {
	recorded := loop.Plan{Steps: steps("writer", "critic", "final"), MaxIterations: 5, Score: &loop.Score{Key: "score"}, OnError: loop.SkipStep}
	tr := run(t, recorded, at(recorded, "critic", 3, loop.Outcome{Exit: &loop.Exit{By: "nobody"}, State: map[string]any{"score": 7.4}},
		scored(5.2, 6.8, 7.4, 7.6, 7.61)))
	if tr.stop.Reason != loop.ReasonExit {
		t.Fatalf("%v", tr.stop)
	}
	recorded.CanExit = []string{"writer"}
	tr = run(t, recorded, at(recorded, "critic", 3, loop.Outcome{Exit: &loop.Exit{By: "nobody"}, State: map[string]any{"score": 7.4}},
		scored(5.2, 6.8, 7.4, 7.6, 7.61)))

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
	if got := recorded.Backtest(nil); !got.Unknown || got.Note != "unknown beyond the recording" {
		t.Errorf("an empty recording: %+v", got)
	}
}

// M18: where another plan goes another way, it says where.
func TestBacktestSaysWhereItIsUnknown(t *testing.T) {
	scores := scored(5, 7, 6, 8, 4)
	base := loop.Plan{Steps: steps("a", "b"), MaxIterations: 5, Score: &loop.Score{Key: "score"}, OnError: loop.SkipStep}
	with := func(change func(*loop.Plan)) loop.Plan {
		p := clone(&base)
		change(p)
		return *p
	}
	rollback := with(func(p *loop.Plan) { p.OnRegression = loop.RollbackOnWorse })
	circuit := with(func(p *loop.Plan) { p.Steps[0].Circuit = &loop.Circuit{Failures: 1, Cooldown: secs(60)} })
	slow := lasting(time.Minute, loop.Outcome{})
	two := func(d loop.Decision) loop.Outcome {
		o := scored(5, 7, 6, 8, 4)(d)
		o.State["other"] = []int{0, 7, 7, 6, 8, 4}[d.Iteration]
		return o
	}
	for name, c := range map[string]struct {
		recorded loop.Plan
		script   script
		plan     loop.Plan
		note     string
		blind    string // if the recorded plan is not known; "" says the same
	}{
		"a rollback that was not recorded": {base, scores, rollback, "after iteration 3 this plan would roll back, but the recorded run continued", ""},
		"one that this plan has not":       {rollback, scores, base, "after iteration 3 the recording rolls back, this plan would go on", ""},
		"one to another iteration": {rollback, two, with(func(p *loop.Plan) { p.OnRegression, p.Score.Key = loop.RollbackOnWorse, "other" }),
			"after iteration 3 this plan would roll back to iteration 1, the recording goes back to 2", "known"},
		"a retry that was not recorded": {base, at(base, "a", 2, failure(""), scores), with(func(p *loop.Plan) { p.Steps[0].Retry = &loop.Retry{Attempts: 2} }),
			`in iteration 2 this plan would run "a", the recording has "b"`, ""},
		"samples that were not": {base, scores, with(func(p *loop.Plan) { p.Score.Judge = &loop.Judge{Step: "b", Samples: 2} }),
			`in iteration 1 this plan would ask "b" once more, of which the recording has no answer`, ""},
		"in another iteration": {loop.Plan{Steps: steps("a"), MaxIterations: 3}, nil, loop.Plan{Steps: steps("a"), MaxIterations: 2, Score: &loop.Score{Key: "s", Judge: &loop.Judge{Step: "a", Samples: 2}}},
			`this plan would run "a" in iteration 1, the recording does in 2`, ""},
		"a circuit that was open": {circuit, at(base, "a", 1, failure(""), scores), base, `in iteration 2 this plan would run "a", whose circuit was open in the recording`, ""},
		"one that is":             {base, at(base, "a", 1, failure(""), scores), circuit, `in iteration 2 this plan would not run "a", whose circuit is open`, ""},
		"a step that would be cut short": {base, at(base, "a", 2, slow, scores), with(func(p *loop.Plan) { p.Steps[0].Timeout = secs(5) }),
			`in iteration 2 this plan would cut "a" short after 5s, the recording has 1m`, ""},
		"the very first, in a state that nobody knows": {loop.Plan{Steps: steps("a"), MaxIterations: 2}, lastingAll(time.Minute),
			loop.Plan{Steps: []loop.Step{{Name: "a", Timeout: secs(5)}}, MaxIterations: 1, Score: &loop.Score{Key: "score"}},
			`in iteration 1 this plan would cut "a" short after 5s, the recording has 1m`, ""},
		"one that was": {with(func(p *loop.Plan) { p.Steps[0].Timeout = secs(5) }), at(base, "a", 2, slow, scores), with(func(p *loop.Plan) { p.Steps[0].Timeout = secs(9) }),
			`in iteration 2 the recording cuts "a" short after 5s, this plan would not`, ""},
		"a call that was refused": {with(func(p *loop.Plan) { p.Budget = &loop.Budget{Calls: 9} }), at(base, "a", 2, failure(loop.BudgetSpent), scores),
			with(func(p *loop.Plan) { p.Budget = &loop.Budget{Calls: 10} }), `in iteration 2 a call of "a" did not fit into the budget of the recording, but might into this one`, "known"},
		"and no budget": {with(func(p *loop.Plan) { p.Budget = &loop.Budget{Calls: 9} }), at(base, "a", 2, failure(loop.BudgetSpent), scores),
			base, `in iteration 2 a call of "a" did not fit into the budget of the recording, but might into this one`, ""},
	} {
		tr := run(t, c.recorded, c.script)
		got := c.plan.BacktestOf(&c.recorded, tr.outcomes)
		if got.Note != c.note || !got.Unknown || got.Stop != nil || got.SavedSteps != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if c.blind == "" {
			c.blind = c.note
		}
		if got := c.plan.Backtest(tr.outcomes); got.Note != c.blind && (c.blind != "known" || got.Unknown) {
			t.Errorf("%s, without its plan: %+v", name, got)
		}
		if back := c.recorded.BacktestOf(&c.recorded, tr.outcomes); !cmp.Equal(tr.stop, back.Stop) {
			t.Errorf("%s: itself: %s\n%s", name, back.Note, cmp.Diff(tr.stop, back.Stop))
		}
		if back := c.recorded.Backtest(tr.outcomes); !cmp.Equal(tr.stop, back.Stop) {
			t.Errorf("%s: itself, without its plan: %s\n%s", name, back.Note, cmp.Diff(tr.stop, back.Stop))
		}
	}
}

func lastingAll(d time.Duration) script {
	return func(loop.Decision) loop.Outcome { return lasting(d, loop.Outcome{}) }
}

// What would have been saved, of what a run uses.
func TestBacktestSaves(t *testing.T) {
	p := loop.Plan{
		Steps: []loop.Step{{Name: "a", Retry: &loop.Retry{Attempts: 3}}, {Name: "judge"}, {Name: "final", Finalizer: true}}, MaxIterations: 4,
		Score: &loop.Score{Key: "score", Judge: &loop.Judge{Step: "judge", Samples: 2}}, OnRegression: loop.RollbackOnWorse,
	}
	n := 0
	tr := run(t, p, func(d loop.Decision) loop.Outcome {
		if d.Action == loop.Rollback {
			return loop.Outcome{Step: -1}
		}
		n++
		o := scored(5, 4, 6, 7)(d)
		o.Usage = loop.Usage{Calls: 1, InputTokens: 70, OutputTokens: 30, Cost: new(0.1), CachedTokens: 35, CacheSaved: 0.02}
		if d.Step == 0 && d.Attempt == 1 && d.Iteration == 3 {
			o.Failure = failure("").Failure
		}
		return o
	})
	// Of 13 runs of steps, 8 steps count; a rollback and a finalizer besides.
	if n != 14 || tr.tally.Steps != 8 {
		t.Fatalf("%d runs, %d steps: %v", n, tr.tally.Steps, tr.ran)
	}
	same := p.BacktestOf(&p, tr.outcomes)
	if same.SavedSteps != 0 || same.SavedIterations != 0 || same.SavedCalls != 0 || same.SavedTokens != 0 || *same.SavedCost != 0 || same.SavedTime != 0 {
		t.Errorf("itself: %+v", same)
	}
	q := clone(&p)
	q.MaxIterations = 2 // and the rollback of the second is in the recording
	got := q.BacktestOf(&p, tr.outcomes)
	want := loop.BacktestResult{
		Stop: got.Stop, Records: got.Records, BestScore: new(5.0), BestIteration: 1, Steps: 4, Iterations: 2,
		SavedSteps: 4, SavedIterations: 2, SavedCalls: 7, SavedTokens: 700, SavedCost: new(0.7), SavedTime: secs(7),
		Used: loop.Usage{Calls: 6, InputTokens: 420, OutputTokens: 180, Cost: new(0.6), CachedTokens: 210, CacheSaved: 0.12},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Stop.Rollbacks != 1 || len(got.Records) != 2 ||
		got.Stop.Result != (loop.Result{Source: loop.FromFinalizer, Iteration: 2}) {
		t.Errorf("%s\n%+v", diff, got.Stop)
	}
	// Without prices nothing is known of the cost.
	for i := range tr.outcomes {
		tr.outcomes[i].Usage.Cost = nil
	}
	if got := q.BacktestOf(&p, tr.outcomes); got.SavedCost != nil || got.Used.Cost != nil || got.SavedTokens != 700 {
		t.Errorf("%+v", got)
	}
	// How far it was good is said of a plan that goes beyond the recording too.
	q.MaxIterations = 9
	if got := q.BacktestOf(&p, tr.outcomes); !got.Unknown || *got.BestScore != 7 || got.BestIteration != 4 || got.Iterations != 4 {
		t.Errorf("%+v", got)
	}
	// A plan that stops where a rollback is due is supposed to do it.
	keep := clone(&p)
	keep.OnRegression = ""
	tr = run(t, *keep, scored(5, 4, 6, 7))
	q.MaxIterations = 2
	if got := q.BacktestOf(keep, tr.outcomes); got.Unknown || got.Stop.Rollbacks != 1 || got.Stop.Reason != loop.ReasonMaxIterations {
		t.Errorf("%+v", got)
	}
}

// A recording that ends with a cancellation, wherever it came.
func TestBacktestOfACanceledRun(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "final"), MaxIterations: 4, Score: &loop.Score{Key: "score"}, OnRegression: loop.RollbackOnWorse}
	stopped := clone(&p)
	stopped.MaxIterations = 2
	for name, s := range map[string]script{
		"in a step":     at(p, "a", 3, loop.Outcome{Canceled: "ctrl-c"}, scored(5, 6)),
		"between steps": at(p, "a", 3, loop.Outcome{Canceled: "ctrl-c", Step: -1}, scored(5, 6)),
		"in the rollback": func(d loop.Decision) loop.Outcome {
			if d.Action == loop.Rollback {
				return loop.Outcome{Step: -1, Canceled: "ctrl-c"}
			}
			return scored(5, 6, 4)(d)
		},
		"in the finalizer": at(p, "final", 4, loop.Outcome{Canceled: "ctrl-c"}, scored(5, 6)),
		"before it":        at(p, "final", 4, loop.Outcome{Canceled: "ctrl-c", Step: -1}, scored(5, 6)),
	} {
		tr := run(t, p, s)
		if got := p.BacktestOf(&p, tr.outcomes); !cmp.Equal(tr.stop, got.Stop) {
			t.Errorf("%s: itself:\n%s", name, cmp.Diff(tr.stop, got.Stop))
		}
		got := stopped.BacktestOf(&p, tr.outcomes)
		if got.Unknown || got.Stop.Reason != loop.ReasonMaxIterations || got.Stop.Result.Source != loop.FromFinalizer {
			t.Errorf("%s: stopped before: %+v", name, got.Stop)
		}
	}
}

// LOOP 14, 18: a run whose judge was asked again about the best, after a rollback. Another version of the rules does not ask, so the answer
// does not count; where it asks and the recording has no answer, the result says how often. No answer is made up.
func TestBacktestOfARunThatIsJudgedAgain(t *testing.T) {
	p := judged(3)
	p.Version, p.MaxIterations, p.OnRegression = p.Current(), 4, loop.RollbackOnWorse
	even := said(p, "abcd", []float64{7.8, 8.2, 8.6}, []float64{7, 7.4, 7.8}, []float64{7.8, 8.1, 8.4}, []float64{7.7, 8, 8.3})
	script := func(d loop.Decision) loop.Outcome {
		if d.Step == 1 && d.Sample > 3 {
			return loop.Outcome{State: map[string]any{"score": 7.6}}
		}
		return even(d)
	}
	before := p
	before.Version = 2
	now, was := run(t, p, script), run(t, before, script)
	if now.stop.BestIteration != 3 || was.stop.BestIteration != 1 {
		t.Fatalf("the answer decides nothing: %v, %v", now.stop, was.stop)
	}
	short := p
	short.MaxIterations = 2
	for name, c := range map[string]struct {
		plan, recorded loop.Plan
		of             trace
		want           *loop.StopRecord
		unasked, saved int
	}{
		"itself":                             {p, p, now, now.stop, 0, 0},
		"itself, by the rules before":        {before, before, was, was.stop, 0, 0},
		"by the rules before":                {before, p, now, was.stop, 0, 1}, // the answer would not have been asked for
		"a run by the rules before, by now":  {p, before, was, was.stop, 1, 0},
		"two iterations":                     {short, p, now, nil, 0, 5},
		"two iterations by the rules before": {short, before, was, nil, 0, 4},
	} {
		got := c.plan.BacktestOf(&c.recorded, c.of.outcomes)
		if got.Unknown || got.Unasked != c.unasked || got.SavedSteps != c.saved {
			t.Errorf("%s: %s, unasked %d, saved %d steps", name, got.Note, got.Unasked, got.SavedSteps)
			continue
		}
		if c.want != nil && (got.Stop.BestIteration != c.want.BestIteration || *got.Stop.BestScore != *c.want.BestScore || got.Stop.Reason != c.want.Reason) {
			t.Errorf("%s: %v, want %v", name, got.Stop, c.want)
		}
		if strings.HasPrefix(name, "itself") && !cmp.Equal(c.want, got.Stop) {
			t.Errorf("%s:\n%s", name, cmp.Diff(c.want, got.Stop))
		}
	}
	// A range of samples asks for answers that a fixed number does not have.
	more := p
	more.Score = new(*p.Score)
	more.Score.Judge, more.Score.Target = &loop.Judge{Step: "judge", Samples: 3, Max: 12}, new(8.0)
	if got := more.BacktestOf(&p, now.outcomes); got.Note != `in iteration 1 this plan would ask "judge" once more, of which the recording has no answer` {
		t.Errorf("3..12: %+v", got)
	}
}

// LOOP 14a: a run whose start was scored. What is asked about the start is no answer about the first iteration.
func TestBacktestOfABaseline(t *testing.T) {
	p := loop.Plan{Steps: steps("judge", "writer"), MaxIterations: 3, CanExit: []string{},
		Score: &loop.Score{Key: "score", Baseline: true, Judge: &loop.Judge{Step: "judge", Samples: 2}}}
	script := func(d loop.Decision) loop.Outcome {
		o := loop.Outcome{State: map[string]any{"score": []float64{8, 5, 6, 7}[d.Iteration]}}
		if d.Iteration == 0 && d.Sample == 1 {
			o.Exit = &loop.Exit{Reason: "enough"}
		}
		return o
	}
	tr := run(t, p, script)
	with := func(change func(*loop.Plan)) *loop.Plan {
		q := clone(&p)
		change(q)
		return q
	}
	if got := p.BacktestOf(&p, tr.outcomes); !cmp.Equal(tr.stop, got.Stop) || got.SavedSteps != 0 || got.BestIteration != 0 || *got.BestScore != 8 {
		t.Errorf("itself: %+v\n%s", got, cmp.Diff(tr.stop, got.Stop))
	}
	if got := with(func(q *loop.Plan) { q.MaxIterations = 1 }).BacktestOf(&p, tr.outcomes); got.SavedSteps != 4 || got.SavedIterations != 2 {
		t.Errorf("one iteration: %+v", got)
	}
	bare := with(func(q *loop.Plan) { q.Score.Baseline = false })
	if got := bare.BacktestOf(&p, tr.outcomes); got.Unknown || got.BestIteration != 3 || got.SavedSteps != 1 {
		t.Errorf("without a baseline: %+v", got)
	}
	if got := p.BacktestOf(bare, run(t, *bare, script).outcomes); got.Note != `this plan would score the start, of which the recording has no answer of "judge"` {
		t.Errorf("with one: %+v", got)
	}
	// The judge may leave while it judges the start, so that it is asked no second time.
	exits := with(func(q *loop.Plan) { q.CanExit = nil })
	if got := exits.BacktestOf(&p, tr.outcomes); got.Note != `this plan would begin with iteration 1, the recording asks "judge" once more about the start` {
		t.Errorf("with exits: %+v", got)
	}
}
