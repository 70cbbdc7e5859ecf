// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// decisive is the iteration in which the causes come about.
const decisive = 4

// cause makes one thing that ends a loop come about in the decisive iteration,
// and not before. They stand in the order in which they count.
type cause struct {
	name      string
	reason    loop.StopReason
	condition string // of the record; "" if it has none of its own
	plan      func(*loop.Plan)
	outcome   func(*loop.Outcome) // in the decisive iteration
	flat      bool                // the score hardly gains there
	failure   bool                // it is a failure of the step: there is one at most
	detail    string
}

var causes = []cause{
	{name: "canceled", reason: loop.ReasonCanceled, outcome: func(o *loop.Outcome) { o.Canceled = "ctrl-c" }, detail: "ctrl-c"},
	{name: "error", reason: loop.ReasonError, outcome: func(o *loop.Outcome) { o.Failure = failure("").Failure }, failure: true, detail: "a: broken"},
	{
		name: "budget refused", reason: loop.ReasonBudget, condition: "budget", failure: true, detail: "2000 tokens do not fit",
		outcome: func(o *loop.Outcome) {
			o.Failure = &loop.Failure{Kind: loop.BudgetSpent, Message: "2000 tokens do not fit"}
		},
	},
	{
		name: "budget exceeded", reason: loop.ReasonBudget, condition: "budget.tokens", detail: "1400 of 1300 tokens used",
		plan:    func(p *loop.Plan) { budget(p).Tokens = 1300 },
		outcome: func(o *loop.Outcome) { o.Usage.InputTokens = 1100 },
	},
	{name: "time over", reason: loop.ReasonTimeout, condition: "timeout", plan: func(p *loop.Plan) { p.Timeout = loop.Duration(decisive * time.Second) }, detail: "4s of 4s used"},
	{
		name: "out of time", reason: loop.ReasonTimeout, condition: "timeout", failure: true, detail: "too late",
		outcome: func(o *loop.Outcome) {
			o.Failure = &loop.Failure{Kind: loop.TotalTimeout, Message: "too late"}
		},
	},
	{name: "exit", reason: loop.ReasonExit, condition: "exit_loop", outcome: func(o *loop.Outcome) { o.Exit = &loop.Exit{Reason: "done"} }, detail: "done"},
	{name: "escalated", reason: loop.ReasonEscalated, condition: "exit_loop", outcome: func(o *loop.Outcome) { o.Exit = &loop.Exit{Escalated: true} }, detail: "no reason given by a"},
	{name: "impossible", reason: loop.ReasonImpossible, condition: "exit_loop", outcome: func(o *loop.Outcome) { o.Exit = &loop.Exit{Status: "impossible", Reason: "no data"} }, detail: "no data"},
	{name: "blocked", reason: loop.ReasonBlocked, condition: "exit_loop", outcome: func(o *loop.Outcome) { o.Exit = &loop.Exit{Status: "blocked", Reason: "no key"} }, detail: "no key"},
	{name: "stop_when", reason: loop.ReasonCondition, condition: "stop_when", plan: func(p *loop.Plan) { p.StopWhen = &loop.Condition{Expr: "iteration >= 4"} }, detail: "iteration >= 4"},
	{name: "target", reason: loop.ReasonTarget, condition: "target", plan: func(p *loop.Plan) { p.Score.Target = new(3.02) }, detail: "Score 4 ≥ 3.02"},
	{name: "converged", reason: loop.ReasonConverged, condition: "converged", plan: func(p *loop.Plan) { p.Score.MinDelta = new(0.1) }, flat: true, detail: "Convergence detected: Improvement < 0.1"},
	{name: "no progress", reason: loop.ReasonNoProgress, condition: "no_progress", plan: func(p *loop.Plan) { p.NoProgress = &loop.NoProgress{} }, detail: "the same result 3 times running"},
	{
		name: "not worth it", reason: loop.ReasonConverged, condition: "not_worth", plan: func(p *loop.Plan) { p.NotWorth = &loop.NotWorth{Gain: 0.9} }, flat: true,
		detail: "the next iteration is expected to gain 0.199229 per iteration, less than 0.9",
	},
	{name: "budget spent", reason: loop.ReasonBudget, condition: "budget.calls", plan: func(p *loop.Plan) { budget(p).Calls = decisive }, detail: "4 of 4 calls used"},
	{name: "limit", reason: loop.ReasonMaxIterations, condition: "max_iterations", plan: func(p *loop.Plan) { p.MaxIterations = decisive }, detail: "limit of 4 iterations"},
}

func budget(p *loop.Plan) *loop.Budget {
	if p.Budget == nil {
		p.Budget = &loop.Budget{}
	}
	return p.Budget
}

// stopBy runs a loop in which some causes come about at once.
func stopBy(t *testing.T, causes ...cause) trace {
	t.Helper()
	p := loop.Plan{Steps: steps("a"), MaxIterations: 9, Score: &loop.Score{Key: "score"}}
	flat := false
	for _, c := range causes {
		if c.plan != nil {
			c.plan(&p)
		}
		flat = flat || c.flat
	}
	return run(t, p, func(d loop.Decision) loop.Outcome {
		score := float64(d.Iteration)
		if flat && d.Iteration == decisive {
			score = 3.05
		}
		o := loop.Outcome{
			State: map[string]any{"score": score}, Usage: loop.Usage{Calls: 1, InputTokens: 100},
			Fingerprint: []string{"", "first", "same", "same", "same"}[d.Iteration],
		}
		for _, c := range causes {
			if c.outcome != nil && d.Iteration == decisive {
				c.outcome(&o)
			}
		}
		return o
	})
}

// LOOP "Why it stops": the thirteen reasons. T12, T13, T18, T20, T21, T23, T25, T26,
// F2, F6, C11, C15, C27, G4
func TestReasons(t *testing.T) {
	seen := map[loop.StopReason]bool{}
	for _, c := range causes {
		seen[c.reason] = true
		t.Run(c.name, func(t *testing.T) {
			rec := stopBy(t, c).stop
			if rec.Reason != c.reason || rec.Iteration != decisive || rec.Detail != c.detail {
				t.Errorf("%v\n%q, want %s: %q", rec, rec.Detail, c.reason, c.detail)
			}
			if rec.Reason.Failed() != (c.name == "error") {
				t.Error("only an error is a failure")
			}
			if got := holding(rec, true); c.condition != "" && (len(got) != 1 || !got[c.condition]) {
				t.Errorf("fired %v, want %s: %+v", got, c.condition, rec.Conditions)
			}
		})
	}
	if len(seen) != 13 {
		t.Errorf("%d reasons: %v", len(seen), seen)
	}
}

// holding are the conditions of a record that hold, or that fired.
func holding(rec *loop.StopRecord, fired bool) map[string]bool {
	names := map[string]bool{}
	for _, c := range rec.Conditions {
		if fired && c.Fired || !fired && c.Holds {
			names[c.Name] = true
		}
	}
	return names
}

// LOOP "Why it stops": of any two that hold at once, the earlier in the order
// is the reason, and the record shows that the later one held too.
func TestPrecedence(t *testing.T) {
	pairs := 0
	for i, first := range causes {
		for _, second := range causes[i+1:] {
			asks := first.condition == "exit_loop" && second.condition == "exit_loop" // one request in a step
			if first.failure && second.failure || asks || first.condition == "timeout" && second.condition == "timeout" {
				continue
			}
			pairs++
			t.Run(fmt.Sprintf("%s before %s", first.name, second.name), func(t *testing.T) {
				rec := stopBy(t, second, first).stop
				if rec.Reason != first.reason || rec.Iteration != decisive {
					t.Fatalf("%v, want %s", rec, first.reason)
				}
				if first.condition != "" && !holding(rec, true)[first.condition] {
					t.Errorf("%s did not fire: %+v", first.condition, rec.Conditions)
				}
				// What ends the iteration in the middle leaves the rest unseen.
				cut := first.failure || second.failure || first.name == "canceled"
				if !cut && second.condition != "" && !holding(rec, false)[second.condition] {
					t.Errorf("%s does not hold: %+v", second.condition, rec.Conditions)
				}
			})
		}
	}
	if pairs < 110 {
		t.Errorf("only %d pairs", pairs)
	}
}

// An explicit stop is never relabelled by what comes after it: a rollback, the
// finalizer, what they use, how long they take, how they end.
func TestExplicitStopIsNeverRelabelled(t *testing.T) {
	plan := func() loop.Plan {
		return loop.Plan{
			Steps: steps("a", "final"), MaxIterations: 9, Timeout: loop.Duration(time.Minute), IterationTimeout: loop.Duration(30 * time.Second),
			Budget: &loop.Budget{Calls: 20, Tokens: 10_000, Cost: new(5.0)}, StopWhen: &loop.Condition{Expr: "usage.calls > 10"},
			Score: &loop.Score{Key: "score", Target: new(8.0)}, NoProgress: &loop.NoProgress{}, MaxConsecutiveFailures: 1, StateLimit: 1000,
		}
	}
	late := map[string]loop.Outcome{
		"nothing":            {},
		"failure":            failure(""),
		"panic":              failure(loop.Panicked),
		"canceled":           {Canceled: "ctrl-c"},
		"canceled before":    {Canceled: "ctrl-c", Step: -1},
		"usage":              {Usage: loop.Usage{Calls: 100, InputTokens: 1e6, Cost: new(100.0)}},
		"unknown price":      {Usage: loop.Usage{Calls: 1}},
		"hours":              lasting(3*time.Hour, loop.Outcome{}),
		"exit":               {Exit: &loop.Exit{Status: "impossible"}},
		"call refused":       failure(loop.BudgetSpent),
		"state":              {State: map[string]any{"score": 9.0}, StateSize: 1 << 20},
		"all of it together": lasting(time.Hour, loop.Outcome{Failure: failure("").Failure, Usage: loop.Usage{Calls: 100}, Exit: &loop.Exit{}}),
	}
	for _, why := range []cause{causes[6], causes[7], causes[8], causes[9]} {
		for what, o := range late {
			for _, rollback := range []bool{false, true} {
				p := plan()
				if rollback { // the exit's iteration is worse, and undone first
					p.OnRegression, p.BestOnExit = loop.RollbackOnWorse, true
				}
				tr := run(t, p, func(d loop.Decision) loop.Outcome {
					switch {
					case d.Action == loop.Rollback: // as long and as dear as can be
						return lasting(2*time.Hour, loop.Outcome{Step: -1, Usage: loop.Usage{Calls: 50, InputTokens: 1e6, Cost: new(50.0)}})
					case d.Action == loop.Finalize:
						return o
					}
					one := loop.Outcome{State: map[string]any{"score": 7.0 - float64(d.Iteration)}, Usage: loop.Usage{Calls: 1, Cost: new(0.1)}, StateSize: 10}
					if d.Iteration == 2 || rollback {
						why.outcome(&one)
					}
					if rollback && d.Iteration == 1 {
						one.Exit = nil
					}
					return one
				})
				if tr.stop.Reason != why.reason || tr.final == nil || tr.final.Reason != why.reason || tr.stop.Detail != tr.final.Detail {
					t.Errorf("%s, then %s, rollback %v: %v, before the finalizer %v", why.name, what, rollback, tr.stop, tr.final)
				}
				if rollback != (tr.stop.Rollbacks == 1) || tr.stop.Iteration != 2 {
					t.Errorf("%s, then %s: ran %v", why.name, what, tr.ran)
				}
			}
		}
	}
}

// A reason that is a limit is not relabelled either, and the loop does not go on.
func TestLimitsAreNotRelabelledByTheFinalizer(t *testing.T) {
	for name, p := range map[string]loop.Plan{
		"cost":  {Budget: &loop.Budget{Cost: new(1.0)}},
		"calls": {Budget: &loop.Budget{Calls: 10}},
		"time":  {Timeout: loop.Duration(10 * time.Second)},
		"limit": {MaxIterations: 9},
	} {
		p.Steps = steps("a", "final")
		tr := run(t, p, func(d loop.Decision) loop.Outcome {
			if d.Action == loop.Finalize {
				return lasting(time.Hour, loop.Outcome{Usage: loop.Usage{Calls: 1000, InputTokens: 1}}) // of unknown price
			}
			return loop.Outcome{Usage: loop.Usage{Calls: 1, Cost: new(0.1)}}
		})
		if tr.stop.Reason != tr.final.Reason || tr.stop.Detail != tr.final.Detail || tr.stop.Iteration != 9 {
			t.Errorf("%s: %v, before the finalizer %v", name, tr.stop, tr.final)
		}
	}
}
