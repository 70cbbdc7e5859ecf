// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/refrain-dev/refrain/loop"
)

// using is a step that takes a second and uses a call, with a score that rises.
func using(d loop.Decision) loop.Outcome {
	return loop.Outcome{State: map[string]any{"score": d.Iteration}, Usage: loop.Usage{Calls: 1, Cost: new(0.1)},
		StateSize: int64(10 * d.Iteration)}
}

// unless is using, but for one outcome the first time that it is due.
func unless(p loop.Plan, name string, iteration int, o loop.Outcome) script {
	first := true
	return func(d loop.Decision) loop.Outcome {
		if first && d.Step >= 0 && p.Steps[d.Step].Name == name && d.Iteration == iteration {
			first = false
			return o
		}
		return using(d)
	}
}

// LOOP 31: a loop that is reopened with larger limits does from there on what it
// would have done with these from the start.
func TestLaw31Reopen(t *testing.T) {
	type plan = loop.Plan
	score := &loop.Score{Key: "score", MinDelta: new(0.5), Patience: 2}
	for name, c := range map[string]struct {
		plan, larger plan
		reason       loop.StopReason
		ran          int // steps, until it first stops
	}{
		"iterations":      {plan{MaxIterations: 2}, plan{MaxIterations: 4}, loop.ReasonMaxIterations, 4},
		"no limit at all": {plan{MaxIterations: 2}, plan{Timeout: secs(9)}, loop.ReasonMaxIterations, 4},
		"calls":           {plan{Budget: &loop.Budget{Calls: 5}}, plan{Budget: &loop.Budget{Calls: 9}}, loop.ReasonBudget, 6},
		"cost":            {plan{Budget: &loop.Budget{Cost: new(0.5)}}, plan{Budget: &loop.Budget{Cost: new(0.9)}}, loop.ReasonBudget, 6},
		"time":            {plan{Timeout: secs(5)}, plan{Timeout: secs(9)}, loop.ReasonTimeout, 5},
		"size":            {plan{StateLimit: 25}, plan{StateLimit: 45}, loop.ReasonError, 6},
		"patience": {plan{Score: &loop.Score{Key: "score", MinDelta: new(9.0)}, MaxIterations: 6},
			plan{Score: &loop.Score{Key: "score", MinDelta: new(9.0), Patience: 3}, MaxIterations: 6}, loop.ReasonConverged, 4},
		"a farther target": {plan{Score: &loop.Score{Key: "score", Target: new(2.0)}}, plan{Score: &loop.Score{Key: "score",
			Target: new(5.0)}}, loop.ReasonTarget, 4},
		"delays are waited": {plan{MaxIterations: 2, DelayAfter: secs(5), DelayBefore: secs(2)}, plan{MaxIterations: 4, DelayAfter: secs(5),
			DelayBefore: secs(2)},
			loop.ReasonMaxIterations, 4},
	} {
		c.plan.Steps, c.larger.Steps = steps("a", "b"), steps("a", "b")
		first, whole := run(t, c.plan, using), run(t, c.larger, using)
		if first.stop.Reason != c.reason || len(first.ran) != c.ran {
			t.Errorf("%s: ran %v: %v", name, first.ran, first.stop)
		}
		u := first.tally
		if err := c.larger.Reopen(&u); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rest := goOn(t, c.larger, u, using)
		if diff := cmp.Diff(whole.decided[len(first.decided):], rest.decided); diff != "" {
			t.Errorf("%s: decided otherwise:\n%s", name, diff)
		}
		if diff := cmp.Diff(whole.tally, rest.tally, allOfIt) + cmp.Diff(whole.stop, rest.stop); diff != "" {
			t.Errorf("%s: not as if from the start:\n%s", name, diff)
		}
	}
	// What was cut short, failed or was canceled is due again, and then all is as if
	// it had gone well at once, but for the time, and what the record counts.
	for name, c := range map[string]struct {
		plan, larger plan
		once         loop.Outcome // of b in iteration 3, the first time
		reason       loop.StopReason
	}{
		"cut short by the time":  {plan{Timeout: secs(8)}, plan{Timeout: secs(99)}, lasting(7*time.Second, loop.Outcome{}), loop.ReasonTimeout},
		"by a limit from around": {plan{}, plan{}, failure(loop.TotalTimeout), loop.ReasonTimeout},
		"a call that did not fit": {plan{Budget: &loop.Budget{Tokens: 100}}, plan{Budget: &loop.Budget{Tokens: 1000}},
			failure(loop.BudgetSpent), loop.ReasonBudget},
		"or not into one around": {plan{}, plan{}, failure(loop.BudgetSpent), loop.ReasonBudget},
		"no longer bounded":      {plan{Budget: &loop.Budget{Tokens: 100}}, plan{}, failure(loop.BudgetSpent), loop.ReasonBudget},
		"by the iteration's time": {plan{IterationTimeout: secs(3), OnError: loop.StopOnError}, plan{IterationTimeout: secs(30)},
			lasting(7*time.Second, loop.Outcome{}), loop.ReasonError},
		"a failure": {plan{}, plan{}, failure(""), loop.ReasonError},
		"one too many": {plan{OnError: loop.SkipStep, MaxConsecutiveFailures: 1}, plan{OnError: loop.SkipStep,
			MaxConsecutiveFailures: 3}, failure(""), loop.ReasonError},
		"canceled":                 {plan{}, plan{}, loop.Outcome{Canceled: "ctrl-c", State: map[string]any{"score": 9}}, loop.ReasonCanceled},
		"canceled before it began": {plan{}, plan{}, loop.Outcome{Canceled: "ctrl-c", Step: -1}, loop.ReasonCanceled},
	} {
		for _, p := range []*plan{&c.plan, &c.larger} {
			p.Steps, p.MaxIterations, p.Score = steps("a", "b", "c", "final"), 4, score
			p.StopWhen, p.StopCheck = &loop.Condition{Expr: "state.score >= 9"}, loop.EachIteration
		}
		first, whole := run(t, c.plan, unless(c.plan, "b", 3, c.once)), run(t, c.larger, using)
		i := slices.Index(first.ran, "b@3")
		if after := strings.Join(first.ran[i+1:], " "); first.stop.Reason != c.reason || after != "" && after != "final@3" {
			t.Errorf("%s: ran %v: %v", name, first.ran, first.stop)
		}
		u := first.tally
		if err := c.larger.Reopen(&u); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rest := goOn(t, c.larger, u, using)
		if got, want := strings.Join(rest.ran, " "), strings.Join(whole.ran[i:], " "); got != want {
			t.Errorf("%s: went on with %s, want %s", name, got, want)
		}
		if diff := cmp.Diff(whole.ended, append(first.ended, rest.ended...), cmpopts.IgnoreFields(loop.IterationRecord{},
			"Failures")); diff != "" {
			t.Errorf("%s: other iterations:\n%s", name, diff)
		}
	}
}

// LOOP 14a, 31: a step of the baseline that a limit has cut short is due again, and not the one before it.
func TestReopenWithinABaseline(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b"), MaxIterations: 2, Budget: &loop.Budget{Tokens: 100},
		Score: &loop.Score{Key: "score", Baseline: true, Scorers: []string{"a", "b"}}}
	larger := p
	larger.Budget = &loop.Budget{Tokens: 1000}
	first := run(t, p, unless(p, "b", 0, failure(loop.BudgetSpent)))
	u := first.tally
	if err := larger.Reopen(&u); err != nil {
		t.Fatal(err)
	}
	rest := goOn(t, larger, u, using)
	if got := strings.Join(append(first.ran, rest.ran...), " "); got != "a@0 b@0 b@0 a@1 b@1 a@2 b@2" {
		t.Errorf("ran %s", got)
	}
}

// LOOP 31: what the first finalizer used counts, and it runs again.
func TestReopenedLoopFinalizesAgain(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "final"), Budget: &loop.Budget{Calls: 4}}
	tr := run(t, p, using)
	if got := strings.Join(tr.ran, " "); got != "a@1 a@2 a@3 final@3" {
		t.Fatalf("ran %s", got)
	}
	p.Budget = &loop.Budget{Calls: 8}
	if err := p.Reopen(&tr.tally); err != nil {
		t.Fatal(err)
	}
	if tr.tally.Finalized || tr.tally.FinalActive != 0 || tr.tally.FinalUsage.Calls != 0 {
		t.Errorf("%+v", tr.tally)
	}
	tr = goOn(t, p, tr.tally, using)
	if got := strings.Join(tr.ran, " "); got != "a@4 a@5 a@6 final@6" || tr.stop.Usage.Calls != 8 {
		t.Errorf("ran %s, %d calls", got, tr.stop.Usage.Calls)
	}
	// With one more for the finalizer alone there is none for another iteration.
	p.Budget = &loop.Budget{Calls: 9}
	stays(t, &p, tr.tally, "budget: 8 of 8 calls used (raise budget)")
}

// LOOP 31: an iteration that was rolled back in its middle is over. If the
// rollback did not come to pass, it goes on.
func TestReopenAfterARollback(t *testing.T) {
	p := loop.Plan{
		Steps: steps("a", "b", "c"), MaxIterations: 4, Score: &loop.Score{Key: "score"}, OnRegression: loop.RollbackOnWorse, Timeout: secs(7.5),
	}
	larger := p
	larger.Timeout = secs(99)
	for name, c := range map[string]struct {
		rollback          loop.Outcome
		first, want       string
		rejections, rolls int
	}{
		"undone":   {loop.Outcome{}, "a@3 b@3 back to 2", "a@4 b@4 c@4", 1, 1},
		"canceled": {loop.Outcome{Canceled: "ctrl-c", Step: -1}, "a@3 b@3 back to 2", "b@3 c@3 a@4 b@4 c@4", 0, 0},
		"failed":   {loop.Outcome{Failure: &loop.Failure{Message: "no room"}}, "a@3 b@3 back to 2", "b@3 c@3 a@4 b@4 c@4", 0, 0},
	} {
		tr := run(t, p, func(d loop.Decision) loop.Outcome {
			if d.Action == loop.Rollback {
				return c.rollback
			}
			return using(d)
		})
		if got := strings.Join(tr.ran[6:], " "); got != c.first {
			t.Fatalf("%s: ran %s", name, got)
		}
		if err := larger.Reopen(&tr.tally); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		tr = goOn(t, larger, tr.tally, using)
		if got := strings.Join(tr.ran, " "); got != c.want || tr.stop.Rejections != c.rejections || tr.stop.Rollbacks != c.rolls ||
			tr.stop.Reason != loop.ReasonMaxIterations {
			t.Errorf("%s: ran %s, %d rejections, %d rollbacks: %v", name, got, tr.stop.Rejections, tr.stop.Rollbacks, tr.stop)
		}
	}
	// What is over counts as one of the iterations.
	larger.MaxIterations = 3
	stays(t, &larger, run(t, p, using).tally, "max_iterations: limit of 3 iterations (raise max_iterations above 3)")
}

// stays checks that a plan does not lift what has ended a loop.
func stays(t *testing.T, p *loop.Plan, u loop.Tally, want string) {
	t.Helper()
	before := u
	err := p.Reopen(&u)
	var stopped *loop.StoppedError
	if !errors.As(err, &stopped) || err.Error() != "the loop stays stopped: "+want {
		t.Errorf("got  %v\nwant the loop stays stopped: %s", err, want)
	}
	if diff := cmp.Diff(before, u, allOfIt); diff != "" {
		t.Errorf("%s: the tally has changed:\n%s", want, diff)
	}
}

// LOOP 31: what the new plan does not lift stays, and the error says why.
func TestReopenSaysWhyNot(t *testing.T) {
	type plan = loop.Plan
	for want, c := range map[string]struct {
		plan, next plan
		at         loop.Outcome // of a in iteration 2
	}{
		"exit_loop: a asked to leave: good enough (a limit does not change that; begin a new run)": {plan{}, plan{},
			loop.Outcome{Exit: &loop.Exit{Reason: "good enough"}}},
		"impossible: a asked to leave (a limit does not change that; begin a new run)": {plan{}, plan{},
			loop.Outcome{Exit: &loop.Exit{Status: "impossible"}}},
		"exit_loop: a waits for an answer (answer it)": {plan{}, plan{},
			loop.Outcome{Exit: &loop.Exit{Waits: true}}},
		"max_iterations: limit of 2 iterations (raise max_iterations above 2)": {plan{MaxIterations: 2},
			plan{MaxIterations: 2, Timeout: secs(99)}, loop.Outcome{}},
		"max_iterations: limit of 1 iteration (raise max_iterations above 3)": {plan{MaxIterations: 3},
			plan{MaxIterations: 1}, loop.Outcome{}},
		"timeout: 3s of 3s used (raise timeout)": {plan{Timeout: secs(3)},
			plan{Timeout: secs(3)}, loop.Outcome{}},
		"timeout: out of time (raise timeout)": {plan{Timeout: secs(3)},
			plan{Timeout: secs(2.9)}, lasting(time.Minute, loop.Outcome{})},
		"timeout: broken (raise timeout)": {plan{Timeout: secs(9)},
			plan{Timeout: secs(9)}, failure(loop.TotalTimeout)}, // before it was measured to be over
		"budget: 3 of 3 calls used (raise budget)": {plan{Budget: &loop.Budget{Calls: 3}},
			plan{Budget: &loop.Budget{Calls: 3}}, loop.Outcome{Usage: loop.Usage{Calls: 1}}},
		"budget: broken (raise budget)": {plan{Budget: &loop.Budget{Calls: 3}},
			plan{Budget: &loop.Budget{Calls: 3}}, failure(loop.BudgetSpent)},
		"condition: iteration >= 2 (take out what ends it, or make it stricter)": {
			plan{StopWhen: &loop.Condition{Expr: "iteration >= 2"}}, plan{StopWhen: &loop.Condition{Expr: "iteration >= 2"}}, loop.Outcome{}},
		"target_reached: Score 2 ≥ 2 (set the target further)": {plan{Score: &loop.Score{Key: "score", Target: new(2.0)}},
			plan{Score: &loop.Score{Key: "score", Target: new(2.0)}}, loop.Outcome{}},
		"converged: Convergence detected: Improvement < 5 (take out what ends it, or make it stricter)": {
			plan{Score: &loop.Score{Key: "score", MinDelta: new(5.0)}}, plan{Score: &loop.Score{Key: "score", MinDelta: new(5.0)},
				MaxIterations: 9}, loop.Outcome{}},
		"no_progress: the same result 2 times running (take out what ends it, or make it stricter)": {
			plan{NoProgress: &loop.NoProgress{Repeats: 2, Keys: []string{"gone"}}}, plan{NoProgress: &loop.NoProgress{Repeats: 2,
				Keys: []string{"gone"}}}, loop.Outcome{}},
		"error: state_too_large: the state has 20 bytes, state_limit is 15: keep less in it, or raise state_limit": {plan{StateLimit: 15},
			plan{StateLimit: 19}, loop.Outcome{}},
		"error: a: iteration_timeout: out of time (raise iteration_timeout above 2s)": {
			plan{IterationTimeout: secs(2), OnError: loop.StopOnError}, plan{IterationTimeout: secs(2)}, lasting(time.Minute, loop.Outcome{})},
		"error: 1 step failed one after another, the last: a: broken (raise max_consecutive_failures above 1)": {
			plan{OnError: loop.SkipStep, MaxConsecutiveFailures: 1}, plan{OnError: loop.SkipStep, MaxConsecutiveFailures: 1}, failure("")},
	} {
		c.plan.Steps, c.next.Steps = steps("a"), steps("a")
		tr := run(t, c.plan, func(d loop.Decision) loop.Outcome {
			o := c.at
			if d.Iteration != 2 {
				o = loop.Outcome{}
			}
			if o.Usage.Calls == 0 && o.Failure == nil && o.Finished.IsZero() {
				u := using(d)
				o.State, o.StateSize, o.Usage = u.State, u.StateSize, u.Usage
			}
			return o
		})
		stays(t, &c.next, tr.tally, want)
	}
}

// A loop that goes on stays as it is.
func TestReopenOfALoopThatGoesOn(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b"), MaxIterations: 3}
	var u loop.Tally
	for range 3 {
		before := u
		if err := p.Reopen(&u); err != nil || !cmp.Equal(before, u, allOfIt) {
			t.Errorf("%v: %s", err, cmp.Diff(before, u, allOfIt))
		}
		p.Add(&u, loop.Outcome{Iteration: 1, Step: p.Next(&u).Step})
	}
	if err := new(loop.Plan).Reopen(&u); err == nil || err.Error() != "the loop stays stopped: error: the plan has no step to run" {
		t.Errorf("%v", err)
	}
}

// LOOP 31: what cannot be lifted is known before anything is done again.
func TestLaw31Lifts(t *testing.T) {
	old := &loop.Plan{MaxIterations: 3, Timeout: loop.Duration(time.Minute), Budget: &loop.Budget{Tokens: 100}}
	for _, tt := range []struct {
		name string
		rec  loop.StopRecord
		plan loop.Plan
		want string // of the error; "" if it goes on
	}{
		{"more iterations", loop.StopRecord{Reason: loop.ReasonMaxIterations, Iteration: 3}, loop.Plan{MaxIterations: 4}, ""},
		{"no limit", loop.StopRecord{Reason: loop.ReasonMaxIterations, Iteration: 3}, loop.Plan{}, ""},
		{"as many", loop.StopRecord{Reason: loop.ReasonMaxIterations, Iteration: 3}, loop.Plan{MaxIterations: 3}, "raise max_iterations above 3"},
		{"more time", loop.StopRecord{Reason: loop.ReasonTimeout}, loop.Plan{Timeout: loop.Duration(time.Hour)}, ""},
		{"as much time", loop.StopRecord{Reason: loop.ReasonTimeout}, loop.Plan{Timeout: loop.Duration(time.Minute)}, "raise timeout above 1m"},
		{"more budget", loop.StopRecord{Reason: loop.ReasonBudget}, loop.Plan{Budget: &loop.Budget{Tokens: 101}}, ""},
		{"as much budget", loop.StopRecord{Reason: loop.ReasonBudget}, loop.Plan{Budget: &loop.Budget{Tokens: 100}}, "raise budget"},
		{"exit", loop.StopRecord{Reason: loop.ReasonExit, By: "critic", Detail: "good"}, loop.Plan{}, "critic asked to leave: good"},
		{"condition", loop.StopRecord{Reason: loop.ReasonCondition}, loop.Plan{}, ""},
	} {
		err := tt.plan.Lifts(&tt.rec, old)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got error %v, want %q", tt.name, err, tt.want)
		}
	}
}
