// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// The law of the loop, rule by rule, as far as it is decided here. What has a
// larger table elsewhere bears its number there: 12, 14, 15, 17 to 21 and 23.

// LOOP 1: steps in list order, or in that of names, which are a permutation.
func TestLaw01Order(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b", "final"), MaxIterations: 1}
	if tr := run(t, p, nil); strings.Join(tr.ran, " ") != "a@1 b@1 final@1" {
		t.Errorf("ran %v", tr.ran)
	}
	p.Order = []string{"b", "a"}
	if tr := run(t, p, nil); strings.Join(tr.ran, " ") != "b@1 a@1 final@1" {
		t.Errorf("ran %v", tr.ran)
	}
	if diff := cmp.Diff([]int{1, 0}, p.Sequence()); diff != "" {
		t.Error(diff)
	}
	p.Order = []string{"b", "critc"}
	if got := problems(t, p); len(got) != 2 || !strings.HasPrefix(got[0], "order[1]: Order name not found in agent names: critc") {
		t.Errorf("%v", got)
	}
	if p = (loop.Plan{}); p.Check() == nil {
		t.Error("no steps are fine")
	}
}

// LOOP 2: the limit is checked before an iteration, the context between any two
// steps. C24
func TestLaw02LimitBeforeAnIteration(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b"), MaxIterations: 2}
	tr := run(t, p, nil)
	p.MaxIterations = 1 // nothing is left of a run that is resumed
	if d := p.Next(&tr.tally); d.Action != loop.Stop || d.Stop.Reason != loop.ReasonMaxIterations {
		t.Errorf("%+v", d)
	}
	tr = run(t, p, at(p, "b", 1, loop.Outcome{Canceled: "ctrl-c", Step: -1}, nil))
	if tr.stop.Reason != loop.ReasonCanceled || tr.stop.Iterations != 0 || tr.tally.Steps != 1 {
		t.Errorf("%v", tr.stop)
	}
}

// LOOP 4: after an exit the remaining steps of the iteration are skipped. O4, T30
func TestLaw04ExitSkipsTheRest(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b", "c"), MaxIterations: 9}
	tr := run(t, p, at(p, "b", 2, loop.Outcome{Exit: &loop.Exit{}}, nil))
	if got := strings.Join(tr.ran, " "); got != "a@1 b@1 c@1 a@2 b@2" || tr.ended[1].Complete || tr.stop.Iterations != 1 {
		t.Errorf("ran %s: %v", got, tr.stop)
	}
}

// LOOP 6: an exit may give a reason, a score, a scope, or nothing at all; a bare
// Escalate is one too.
func TestLaw06Exit(t *testing.T) {
	for name, c := range map[string]struct {
		exit   loop.Exit
		reason loop.StopReason
		detail string
	}{
		"nothing":   {loop.Exit{}, loop.ReasonExit, "no reason given by a"},
		"a reason":  {loop.Exit{Reason: "approved"}, loop.ReasonExit, "approved"},
		"escalated": {loop.Exit{Escalated: true}, loop.ReasonEscalated, "no reason given by a"},
		"an agent":  {loop.Exit{By: "inner"}, loop.ReasonExit, "no reason given by inner"},
		"a scope":   {loop.Exit{Scope: "all"}, loop.ReasonExit, "no reason given by a"},
		"a score":   {loop.Exit{Score: new(9.5)}, loop.ReasonExit, "no reason given by a"},
	} {
		p := loop.Plan{Steps: steps("a", "b"), Score: &loop.Score{Key: "score"}}
		rec := run(t, p, at(p, "a", 1, loop.Outcome{Exit: &c.exit}, scored(5))).stop
		by := c.exit.By
		if by == "" {
			by = "a"
		}
		want := 5.0
		if c.exit.Score != nil {
			want = *c.exit.Score
		}
		if rec.Reason != c.reason || rec.Detail != c.detail || rec.By != by || rec.Scope != c.exit.Scope || *rec.BestScore != want {
			t.Errorf("%s: %+v", name, rec)
		}
	}
}

// LOOP 7: an exit without permission is refused and recorded, and the loop goes on.
func TestLaw07Permission(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b", "final"), MaxIterations: 2, CanExit: []string{"b", "final"}}
	for name, may := range map[string]bool{"a": false, "b": true, "final": false, "stranger": false} {
		if p.MayExit(name) != may {
			t.Errorf("%s may: %v", name, !may)
		}
	}
	tr := run(t, p, at(p, "a", 1, loop.Outcome{Exit: &loop.Exit{Reason: "enough"}}, nil))
	if tr.stop.Reason != loop.ReasonMaxIterations || tr.stop.Refusals != 1 {
		t.Errorf("%v", tr.stop)
	}
	if diff := cmp.Diff([]loop.Refusal{{Iteration: 1, By: "a", Reason: "enough"}}, tr.stop.Refused); diff != "" {
		t.Error(diff)
	}
	p.FinalizeEach = true // in each iteration, but still a finalizer
	tr = run(t, p, func(d loop.Decision) loop.Outcome { return loop.Outcome{Exit: &loop.Exit{By: p.Steps[d.Step].Name}} })
	if tr.stop.By != "b" {
		t.Errorf("%v by %s", tr.stop, tr.stop.By)
	}
}

// LOOP 9: giving up has the same weight as success.
func TestLaw09GivingUp(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "final")}
	for status, want := range map[string]loop.StopReason{"impossible": loop.ReasonImpossible, "blocked": loop.ReasonBlocked, "fine": loop.ReasonExit} {
		tr := run(t, p, at(p, "a", 2, loop.Outcome{Exit: &loop.Exit{Status: status, Reason: "no data", Escalated: status == "blocked"}}, nil))
		if tr.stop.Reason != want || tr.stop.Reason.Failed() || tr.stop.Detail != "no data" || tr.stop.Result.Source != loop.FromFinalizer {
			t.Errorf("%s: %v", status, tr.stop)
		}
	}
}

// LOOP 10: 0 iterations are no limit.
func TestLaw10NoLimit(t *testing.T) {
	p := loop.Plan{Steps: steps("a"), StopWhen: &loop.Condition{Expr: "iteration >= 400"}}
	if tr := run(t, p, nil); tr.stop.Iterations != 400 {
		t.Errorf("%v", tr.stop)
	}
	if _, has := condition(run(t, p, nil).stop, "max_iterations"); has {
		t.Error("a limit that is none is listed")
	}
}

// LOOP 11: stop_when sees state, score, scores, iteration, usage and elapsed.
// T17, T25, T27
func TestLaw11StopWhen(t *testing.T) {
	for src, want := range map[string]int{
		"state.score >= 3": 3, "score >= 4": 4, "scores[scores.size() - 1] >= 2": 2, "iteration >= 5": 5, "usage.tokens >= 60": 6, "elapsed >= 3": 3,
		"usage.cost >= 1.0": 4, "score != null && score >= 3 && usage.calls > 3": 4,
	} {
		p := loop.Plan{Steps: steps("a"), MaxIterations: 9, Score: &loop.Score{Key: "score"}, StopWhen: &loop.Condition{Expr: src}}
		tr := run(t, p, func(d loop.Decision) loop.Outcome {
			return loop.Outcome{State: map[string]any{"score": d.Iteration}, Usage: loop.Usage{Calls: 1, InputTokens: 10, Cost: new(0.25)}}
		})
		if tr.stop.Reason != loop.ReasonCondition || tr.stop.Iteration != want {
			t.Errorf("%s: %v", src, tr.stop)
		}
	}
}

// LOOP 13: improvement is the difference from the last accepted score.
func TestLaw13Improvement(t *testing.T) {
	p := loop.Plan{Steps: steps("a"), MaxIterations: 9, Score: &loop.Score{Key: "score", MinDeltaPercent: new(5.0), Patience: 2}}
	tr := run(t, p, scored(5.2, 6.8, 6.9, 7.4, 7.6, 7.7))
	if tr.stop.Detail != "Convergence detected: Improvement < 5%, 2 times running" || tr.stop.Iteration != 6 {
		t.Errorf("%v: %s", tr.stop, tr.stop.Detail)
	}
	if got := tr.ended[0].String(); got != "Iteration 1: Score 5.2 → Improvement: N/A" {
		t.Error(got)
	}
	if got := tr.ended[1].String(); got != "Iteration 2: Score 6.8 → Improvement: +1.6 (30.8%)" {
		t.Error(got)
	}
	p.QualityGate = new(6.0)
	tr = run(t, p, scored(6.8, 5.2, 7.4, 7.4, 7.4))
	if d := tr.ended[2].Delta; *d != 0.6 {
		t.Errorf("after a rejected iteration: %v", *d)
	}
}

// LOOP 16: always a result; finalizer, best, last, partial. C8, C27, G4
func TestLaw16Result(t *testing.T) {
	for _, c := range []struct {
		steps  string
		scores bool
		script func(loop.Plan) script
		want   string
	}{
		{"a b final", true, always(nil), "finalizer 3"},
		{"a b final", true, func(p loop.Plan) script { return at(p, "final", 3, failure(""), nil) }, "best 2"},
		{"a b", true, always(nil), "best 2"},
		{"a b final", false, func(p loop.Plan) script { return at(p, "final", 3, failure(""), nil) }, "last 3"},
		{"a b", false, always(nil), "last 3"},
		{"a b", false, func(p loop.Plan) script { return at(p, "b", 3, failure(""), nil) }, "last 2"},
		{"a b final", false, func(p loop.Plan) script { return at(p, "b", 1, failure(""), nil) }, "partial 1"},
		{"a b final", false, func(p loop.Plan) script { return at(p, "a", 1, loop.Outcome{Step: -1, Canceled: "x"}, nil) }, "partial 0"},
		{"a b", true, func(p loop.Plan) script { return at(p, "a", 3, loop.Outcome{Canceled: "x"}, nil) }, "best 2"},
	} {
		p := loop.Plan{Steps: steps(strings.Fields(c.steps)...), MaxIterations: 3}
		if c.scores {
			p.Score = &loop.Score{Key: "score"}
		}
		s := c.script(p)
		tr := run(t, p, func(d loop.Decision) loop.Outcome {
			var o loop.Outcome
			if s != nil {
				o = s(d)
			}
			o.State = map[string]any{"score": []int{0, 5, 7, 6}[d.Iteration]}
			return o
		})
		if got := result(tr.stop); got != c.want {
			t.Errorf("%s, ran %v: %s, want %s", c.steps, tr.ran, got, c.want)
		}
	}
}

// LOOP 17: once after the loop, or at the end of each iteration. C6
func TestLaw17FinalizeEach(t *testing.T) {
	p := loop.Plan{Steps: steps("final", "a"), MaxIterations: 2, FinalizeEach: true}
	tr := run(t, p, nil)
	if got := strings.Join(tr.ran, " "); got != "a@1 final@1 a@2 final@2" || result(tr.stop) != "last 2" || p.Finalizer() != -1 {
		t.Errorf("ran %s: %+v", got, tr.stop.Result)
	}
	p.Order = []string{"a"}
	if tr = run(t, p, nil); strings.Join(tr.ran, " ") != "a@1 final@1 a@2 final@2" {
		t.Errorf("ran %v", tr.ran)
	}
	if tr = run(t, p, at(p, "a", 2, loop.Outcome{Exit: &loop.Exit{}}, nil)); strings.Join(tr.ran, " ") != "a@1 final@1 a@2" {
		t.Errorf("ran %v", tr.ran)
	}
}

// LOOP 20: what follows a failed step. C13, C14, G2, G3, G5
func TestLaw20OnError(t *testing.T) {
	for policy, want := range map[loop.ErrorPolicy]string{
		"": "a@1 b@1", loop.StopOnError: "a@1 b@1", loop.SkipStep: "a@1 b@1 c@1 a@2 b@2 c@2", loop.NextIteration: "a@1 b@1 a@2 b@2 c@2",
	} {
		p := loop.Plan{Steps: steps("a", "b", "c"), MaxIterations: 2, OnError: policy}
		tr := run(t, p, at(p, "b", 1, failure(""), nil))
		if got := strings.Join(tr.ran, " "); got != want || tr.stop.Reason.Failed() != (policy == "" || policy == loop.StopOnError) {
			t.Errorf("%q: ran %s: %v", policy, got, tr.stop)
		}
	}
}

// LOOP 24: a cached step is no run of it.
func TestLaw24Cache(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b"), MaxIterations: 3}
	tr := run(t, p, func(d loop.Decision) loop.Outcome { return loop.Outcome{Cached: d.Step == 0 && d.Iteration > 1} })
	if tr.stop.CacheHits != 2 || tr.tally.Steps != 6 {
		t.Errorf("%d hits, %d steps", tr.stop.CacheHits, tr.tally.Steps)
	}
}

// LOOP 29: counters belong to a run. A tally knows nothing of the plan or of
// other tallies, and a copy is a fork.
func TestLaw29CountersBelongToARun(t *testing.T) {
	p := loop.Plan{
		Steps: steps("a", "b"), MaxIterations: 9, Score: &loop.Score{Key: "score", MinDelta: new(0.5), Patience: 3}, NoProgress: &loop.NoProgress{},
		StopWhen: &loop.Condition{Any: []loop.Condition{{Expr: "state.score > 100", For: 2}, {Expr: "score < 0"}}}, NotWorth: &loop.NotWorth{Gain: 1e-9},
	}
	script := func(shift float64) script {
		return func(d loop.Decision) loop.Outcome {
			return loop.Outcome{
				State: map[string]any{"score": shift * float64(d.Iteration)}, Fingerprint: fmt.Sprint(shift, d.Iteration),
				Usage: loop.Usage{Calls: 1, Cost: &shift}, Exit: &loop.Exit{By: "nobody"},
			}
		}
	}
	p.CanExit = []string{}
	one, two := run(t, p, script(1)), run(t, p, script(2))
	again := run(t, p, script(1))
	if diff := cmp.Diff(one.tally, again.tally, allOfIt); diff != "" {
		t.Errorf("the second run knows of the first:\n%s", diff)
	}
	// Two forks of a tally, taken in turns, are as two runs.
	var base loop.Tally
	replay := func(u *loop.Tally, outcomes []loop.Outcome) {
		for _, o := range outcomes {
			p.Add(u, o)
		}
	}
	replay(&base, one.outcomes[:4])
	left, right := base, base
	for i := 4; i < len(one.outcomes); i++ {
		p.Add(&left, one.outcomes[i])
		p.Add(&right, two.outcomes[i])
	}
	var wantLeft, wantRight loop.Tally
	replay(&wantLeft, one.outcomes)
	replay(&wantRight, one.outcomes[:4])
	replay(&wantRight, two.outcomes[4:])
	if diff := cmp.Diff(wantLeft, left, allOfIt) + cmp.Diff(wantRight, right, allOfIt); diff != "" {
		t.Error(diff)
	}
}

// LOOP 31: a stopped run goes on with a raised limit, of whichever kind.
func TestLaw31RaisedLimits(t *testing.T) {
	for name, c := range map[string]struct{ plan, raised loop.Plan }{
		"iterations": {loop.Plan{MaxIterations: 2}, loop.Plan{MaxIterations: 3}},
		"calls":      {loop.Plan{Budget: &loop.Budget{Calls: 2}}, loop.Plan{Budget: &loop.Budget{Calls: 5}}},
		"cost":       {loop.Plan{Budget: &loop.Budget{Cost: new(0.2)}}, loop.Plan{Budget: &loop.Budget{Cost: new(0.9)}}},
		"time":       {loop.Plan{Timeout: secs(10)}, loop.Plan{Timeout: secs(99)}},
		"target":     {loop.Plan{Score: &loop.Score{Key: "score", Target: new(2.0)}}, loop.Plan{Score: &loop.Score{Key: "score", Target: new(9.0)}}},
	} {
		c.plan.Steps, c.raised.Steps = steps("a", "final"), steps("a", "final")
		tr := run(t, c.plan, func(d loop.Decision) loop.Outcome {
			return loop.Outcome{State: map[string]any{"score": d.Iteration}, Usage: loop.Usage{Calls: 1, Cost: new(0.1)}}
		})
		d := c.raised.Next(&tr.tally)
		if d.Action != loop.RunStep || d.Iteration != tr.stop.Iteration+1 {
			t.Errorf("%s: %+v", name, d)
		}
		c.raised.Add(&tr.tally, loop.Outcome{Iteration: d.Iteration, State: map[string]any{"score": 1}})
		if tr.tally.Finalized || tr.tally.FinalActive != 0 || tr.tally.Iteration != d.Iteration {
			t.Errorf("%s: %+v", name, tr.tally)
		}
	}
}
