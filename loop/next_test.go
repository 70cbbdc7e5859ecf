// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// B1, B2, B5, A14, A15, C24
func TestIterationsRunTheStepsInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		plan loop.Plan
		want string
	}{
		"list order":          {loop.Plan{Steps: steps("a", "b"), MaxIterations: 2}, "a@1 b@1 a@2 b@2"},
		"one step":            {loop.Plan{Steps: steps("a"), MaxIterations: 3}, "a@1 a@2 a@3"},
		"order by name":       {loop.Plan{Steps: steps("a", "b", "c"), Order: []string{"c", "a", "b"}, MaxIterations: 1}, "c@1 a@1 b@1"},
		"finalizer":           {loop.Plan{Steps: steps("a", "final", "b"), MaxIterations: 2}, "a@1 b@1 a@2 b@2 final@2"},
		"finalizer and order": {loop.Plan{Steps: steps("final", "a", "b"), Order: []string{"b", "a"}, MaxIterations: 1}, "b@1 a@1 final@1"},
	} {
		tr := run(t, c.plan, nil)
		if got := strings.Join(tr.ran, " "); got != c.want {
			t.Errorf("%s: ran %s, want %s", name, got, c.want)
		}
		if tr.stop.Reason != loop.ReasonMaxIterations || tr.stop.Iterations != int(c.plan.MaxIterations) {
			t.Errorf("%s: %v", name, tr.stop)
		}
	}
}

// T1-T5, T8, T13-T27, G4, C15, C27
func TestStopReasons(t *testing.T) {
	ab := loop.Plan{Steps: steps("a", "b"), MaxIterations: 3}
	with := func(change func(*loop.Plan)) loop.Plan {
		p := ab
		change(&p)
		return p
	}
	exit := func(e loop.Exit) loop.Outcome { return loop.Outcome{Exit: &e} }
	withScore := with(func(p *loop.Plan) { p.Score = &loop.Score{Key: "score", Target: new(8.0), MinDelta: new(0.1)} })
	when := with(func(p *loop.Plan) { p.StopWhen = &loop.Condition{Expr: "iteration >= 2"} })
	whenStep := when
	whenStep.StopCheck = loop.EachStep

	for name, c := range map[string]struct {
		plan   loop.Plan
		script script
		ran    string
		want   string // the record's line
		result string
	}{
		"limit": {ab, nil, "a@1 b@1 a@2 b@2 a@3 b@3", "max_iterations after 3 iterations: limit of 3 iterations", "last 3"},
		"exit": {ab, at(ab, "a", 2, exit(loop.Exit{Reason: "all good"}), nil), "a@1 b@1 a@2",
			"exit_loop after 1 iteration: all good", "partial 2"},
		"exit without a reason": {ab, at(ab, "b", 1, exit(loop.Exit{}), nil), "a@1 b@1",
			"exit_loop after 1 iteration: no reason given by b", "last 1"},
		"exit at once": {ab, at(ab, "a", 1, exit(loop.Exit{By: "inner"}), nil), "a@1",
			"exit_loop after 0 iterations: no reason given by inner", "partial 1"},
		"exit in the last step of the last iteration": {ab, at(ab, "b", 3, exit(loop.Exit{Reason: "done"}), nil), "a@1 b@1 a@2 b@2 a@3 b@3",
			"exit_loop after 3 iterations: done", "last 3"},
		"escalated": {ab, at(ab, "a", 2, exit(loop.Exit{Escalated: true}), nil), "a@1 b@1 a@2",
			"escalated after 1 iteration: no reason given by a", "partial 2"},
		"impossible": {ab, at(ab, "a", 1, exit(loop.Exit{Status: "impossible", Reason: "no data"}), nil), "a@1",
			"impossible after 0 iterations: no data", "partial 1"},
		"blocked": {ab, at(ab, "a", 1, exit(loop.Exit{Status: "blocked", Reason: "no key"}), nil), "a@1",
			"blocked after 0 iterations: no key", "partial 1"},
		"condition":              {when, nil, "a@1 b@1 a@2 b@2", "condition after 2 iterations: iteration >= 2", "last 2"},
		"condition after a step": {whenStep, nil, "a@1 b@1 a@2", "condition after 1 iteration: iteration >= 2", "partial 2"},
		"target":                 {withScore, scored(5, 9.0), "a@1 b@1 a@2 b@2", "target_reached after 2 iterations: Score 9 ≥ 8", "best 2"},
		"converged":              {withScore, scored(5, 5.05), "a@1 b@1 a@2 b@2", "converged after 2 iterations: Improvement < 0.1", "best 2"},
		"a fall converges":       {withScore, scored(5.0, 3.0), "a@1 b@1 a@2 b@2", "converged after 2 iterations: Improvement < 0.1", "best 1"},
		"best is not last":       {withScore, scored(5, 6, 5.95), "a@1 b@1 a@2 b@2 a@3 b@3", "converged after 3 iterations: Improvement < 0.1", "best 2"},
		"failure":                {ab, at(ab, "b", 2, failure(""), nil), "a@1 b@1 a@2 b@2", "error after 1 iteration: b: broken", "last 1"},
		"panic":                  {ab, at(ab, "a", 1, failure(loop.Panicked), nil), "a@1", "error after 0 iterations: a: panic: broken", "partial 1"},
		"canceled in a step":     {ab, at(ab, "a", 2, loop.Outcome{Canceled: "ctrl-c"}, nil), "a@1 b@1 a@2", "canceled after 1 iteration: ctrl-c", "last 1"},
		"canceled between":       {ab, at(ab, "a", 2, loop.Outcome{Canceled: "ctrl-c", Step: -1}, nil), "a@1 b@1 a@2", "canceled after 1 iteration: ctrl-c", "last 1"},
		// The first in the order of checks is the reason.
		"canceled before failure": {ab, at(ab, "b", 3, loop.Outcome{Canceled: "ctrl-c", Failure: failure("").Failure}, nil),
			"a@1 b@1 a@2 b@2 a@3 b@3", "canceled after 2 iterations: ctrl-c", "last 2"},
		"failure before exit": {ab, at(ab, "a", 1, loop.Outcome{Failure: failure("").Failure, Exit: &loop.Exit{}}, nil),
			"a@1", "error after 0 iterations: a: broken", "partial 1"},
		"exit before condition and target": {
			with(func(p *loop.Plan) {
				p.StopWhen = &loop.Condition{Expr: "true"}
				p.Score = withScore.Score
			}),
			at(ab, "b", 1, exit(loop.Exit{Reason: "x"}), scored(9.0)), "a@1 b@1", "exit_loop after 1 iteration: x", "best 1"},
		"condition before target": {with(func(p *loop.Plan) {
			p.StopWhen, p.Score = &loop.Condition{Expr: "score > 8"}, withScore.Score
		}), scored(9.0), "a@1 b@1", "condition after 1 iteration: score > 8", "best 1"},
		"target before converged": {withScore, scored(7.95, 8), "a@1 b@1 a@2 b@2", "target_reached after 2 iterations: Score 8 ≥ 8", "best 2"},
		"converged before limit":  {withScore, scored(1, 3, 3.0), "a@1 b@1 a@2 b@2 a@3 b@3", "converged after 3 iterations: Improvement < 0.1", "best 2"},
		"target before limit":     {withScore, scored(1, 3, 8.5), "a@1 b@1 a@2 b@2 a@3 b@3", "target_reached after 3 iterations: Score 8.5 ≥ 8", "best 3"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := run(t, c.plan, c.script)
			if got := strings.Join(tr.ran, " "); got != c.ran {
				t.Errorf("ran %s, want %s", got, c.ran)
			}
			if got := tr.stop.String(); got != "Stopped: "+c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if got := result(tr.stop); got != c.result {
				t.Errorf("result %s, want %s", got, c.result)
			}
			fired := 0
			for _, cond := range tr.stop.Conditions {
				if cond.Fired {
					fired++
				}
			}
			switch r := tr.stop.Reason; {
			case r == loop.ReasonCanceled || r == loop.ReasonError:
				if fired != 0 {
					t.Errorf("%d conditions fired: %+v", fired, tr.stop.Conditions)
				}
			case fired != 1:
				t.Errorf("%d conditions fired: %+v", fired, tr.stop.Conditions)
			}
			// M18: the same plan makes the same of the recording.
			back := c.plan.Backtest(tr.outcomes)
			if diff := cmp.Diff(tr.stop, back.Stop); diff != "" || back.Unknown {
				t.Errorf("backtest (-run +backtest):\n%s", diff)
			}
		})
	}
}

func result(r *loop.StopRecord) string {
	return string(r.Result.Source) + " " + string(rune('0'+r.Result.Iteration))
}

// G1-G3, G6, F5, C13, C14
func TestErrorPolicies(t *testing.T) {
	always := func(names string) func(loop.Plan) script {
		return func(p loop.Plan) script {
			return func(d loop.Decision) loop.Outcome {
				if strings.Contains(names, p.Steps[d.Step].Name) {
					return failure(loop.Failed)
				}
				return loop.Outcome{}
			}
		}
	}
	for name, c := range map[string]struct {
		plan   loop.Plan
		script func(loop.Plan) script
		ran    string
		want   string
	}{
		"skip step": {loop.Plan{Steps: steps("a", "b"), MaxIterations: 2, OnError: loop.SkipStep}, always("a"),
			"a@1 b@1 a@2 b@2", "max_iterations after 2 iterations: limit of 2 iterations"},
		"next iteration": {loop.Plan{Steps: steps("a", "b", "c"), MaxIterations: 2, OnError: loop.NextIteration}, always("b"),
			"a@1 b@1 a@2 b@2", "error after 0 iterations: No iteration succeeded; the last failure: b: broken"},
		"next iteration at the last step": {loop.Plan{Steps: steps("a", "b"), MaxIterations: 1, OnError: loop.NextIteration}, always("b"),
			"a@1 b@1", "error after 0 iterations: No iteration succeeded; the last failure: b: broken"},
		"a step's own": {loop.Plan{Steps: []loop.Step{{Name: "a", OnError: loop.SkipStep}, {Name: "b"}}, MaxIterations: 2}, always("ab"),
			"a@1 b@1", "error after 0 iterations: b: broken"},
		"a step's own stop": {loop.Plan{Steps: []loop.Step{{Name: "a", OnError: loop.StopOnError}}, OnError: loop.SkipStep}, always("a"),
			"a@1", "error after 0 iterations: a: broken"},
		"too many running": {loop.Plan{Steps: steps("a", "b"), MaxIterations: 9, OnError: loop.SkipStep, MaxConsecutiveFailures: 3}, always("ab"),
			"a@1 b@1 a@2", "error after 1 iteration: 3 steps failed one after another, the last: a: broken"},
		"a success between": {loop.Plan{Steps: steps("a", "b"), MaxIterations: 2, OnError: loop.SkipStep, MaxConsecutiveFailures: 2}, always("a"),
			"a@1 b@1 a@2 b@2", "max_iterations after 2 iterations: limit of 2 iterations"},
		"timeout goes to the next step": {loop.Plan{Steps: steps("a", "b"), MaxIterations: 1}, func(p loop.Plan) script { return at(p, "a", 1, failure(loop.Timeout), nil) },
			"a@1 b@1", "max_iterations after 1 iteration: limit of 1 iteration"},
		"timeout stops if told": {loop.Plan{Steps: steps("a", "b"), OnError: loop.StopOnError}, func(p loop.Plan) script { return at(p, "a", 1, failure(loop.Timeout), nil) },
			"a@1", "error after 0 iterations: a: timeout: broken"},
		"iteration timeout goes to the next iteration": {loop.Plan{Steps: steps("a", "b"), MaxIterations: 2}, func(p loop.Plan) script { return at(p, "a", 1, failure(loop.IterationTimeout), nil) },
			"a@1 a@2 b@2", "max_iterations after 2 iterations, 1 of them cut short: limit of 2 iterations"},
	} {
		tr := run(t, c.plan, c.script(c.plan))
		if got := strings.Join(tr.ran, " "); got != c.ran {
			t.Errorf("%s: ran %s, want %s", name, got, c.ran)
		}
		if got := tr.stop.String(); got != "Stopped: "+c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// T9, T11, C5
func TestExitNeedsPermission(t *testing.T) {
	ask := func(loop.Decision) loop.Outcome { return loop.Outcome{Exit: &loop.Exit{Reason: "please"}} }
	for name, c := range map[string]struct {
		canExit  []string
		want     loop.StopReason
		refusals int
	}{
		"everyone may":   {nil, loop.ReasonExit, 0},
		"only b may":     {[]string{"b"}, loop.ReasonExit, 1},
		"nobody may":     {[]string{}, loop.ReasonMaxIterations, 18},
		"a stranger may": {[]string{"x"}, loop.ReasonMaxIterations, 18},
	} {
		tr := run(t, loop.Plan{Steps: steps("a", "b", "final"), MaxIterations: 9, CanExit: c.canExit}, ask)
		if tr.stop.Reason != c.want || tr.stop.Refusals != c.refusals || len(tr.stop.Refused) != min(5, c.refusals) {
			t.Errorf("%s: %v, %d refused: %v", name, tr.stop, tr.stop.Refusals, tr.stop.Refused)
		}
	}
	p := loop.Plan{Steps: steps("a", "final"), CanExit: []string{"a", "final"}}
	if !p.MayExit("a") || p.MayExit("b") || p.MayExit("final") {
		t.Error("MayExit")
	}
	tr := run(t, loop.Plan{Steps: steps("a"), MaxIterations: 1, CanExit: []string{}}, ask)
	want := []loop.Refusal{{Iteration: 1, By: "a", Reason: "please"}}
	if diff := cmp.Diff(want, tr.stop.Refused); diff != "" {
		t.Error(diff)
	}
}

// D10, D13, C6, C7, C8
func TestFinalizer(t *testing.T) {
	for name, c := range map[string]struct {
		script func(loop.Plan) script
		reason loop.StopReason
		result string
		ran    string
	}{
		"after the limit":   {func(loop.Plan) script { return nil }, loop.ReasonMaxIterations, "finalizer 2", "a@1 a@2 final@2"},
		"after an exit":     {func(p loop.Plan) script { return at(p, "a", 1, loop.Outcome{Exit: &loop.Exit{}}, nil) }, loop.ReasonExit, "finalizer 1", "a@1 final@1"},
		"not after failure": {func(p loop.Plan) script { return at(p, "a", 2, failure(""), nil) }, loop.ReasonError, "last 1", "a@1 a@2"},
		"not when canceled": {func(p loop.Plan) script { return at(p, "a", 1, loop.Outcome{Canceled: "x"}, nil) }, loop.ReasonCanceled, "partial 1", "a@1"},
		"its failure":       {func(p loop.Plan) script { return at(p, "final", 2, failure(""), nil) }, loop.ReasonMaxIterations, "last 2", "a@1 a@2 final@2"},
		"its cancellation":  {func(p loop.Plan) script { return at(p, "final", 2, loop.Outcome{Canceled: "x", Step: -1}, nil) }, loop.ReasonMaxIterations, "last 2", "a@1 a@2 final@2"},
		"its exit":          {func(p loop.Plan) script { return at(p, "final", 2, loop.Outcome{Exit: &loop.Exit{}}, nil) }, loop.ReasonMaxIterations, "finalizer 2", "a@1 a@2 final@2"},
	} {
		p := loop.Plan{Steps: steps("a", "final"), MaxIterations: 2}
		tr := run(t, p, c.script(p))
		if tr.stop.Reason != c.reason || result(tr.stop) != c.result || strings.Join(tr.ran, " ") != c.ran {
			t.Errorf("%s: ran %v: %v, result %s", name, tr.ran, tr.stop, result(tr.stop))
		}
		if wantFailure := strings.HasPrefix(name, "its f") || strings.HasPrefix(name, "its c"); (tr.stop.FinalizerFailure != "") != wantFailure {
			t.Errorf("%s: finalizer failure %q", name, tr.stop.FinalizerFailure)
		}
		if strings.Contains(c.ran, "final") && tr.final.Reason != c.reason {
			t.Errorf("%s: told %q before the finalizer", name, tr.final.Reason)
		}
	}
}

// A run that stopped at its limit goes on with a raised one.
func TestRaisedLimitGoesOn(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "final"), MaxIterations: 2}
	tr := run(t, p, nil)
	p.MaxIterations = 3
	d := p.Next(&tr.tally)
	if d.Action != loop.RunStep || d.Iteration != 3 || d.Ended.Number != 0 {
		t.Fatalf("decision %+v", d)
	}
	p.Add(&tr.tally, loop.Outcome{Iteration: 3})
	if d = p.Next(&tr.tally); d.Action != loop.Finalize || d.Ended.Number != 3 {
		t.Fatalf("decision %+v", d)
	}
}

// A plan that Check refuses still stops.
func TestUncheckedPlansStop(t *testing.T) {
	for _, p := range []loop.Plan{{}, {Steps: steps("final")}, {Steps: steps("a"), Order: []string{"x"}}} {
		if p.Check() == nil {
			t.Errorf("%+v is accepted", p)
		}
		if d := p.Next(&loop.Tally{}); d.Action != loop.Stop || d.Stop.Reason != loop.ReasonError {
			t.Errorf("%+v: %+v", p, d)
		}
	}
}

func TestStopReasonKinds(t *testing.T) {
	for _, r := range []loop.StopReason{
		loop.ReasonExit, loop.ReasonEscalated, loop.ReasonImpossible, loop.ReasonBlocked, loop.ReasonCondition, loop.ReasonTarget, loop.ReasonConverged,
		loop.ReasonNoProgress, loop.ReasonMaxIterations, loop.ReasonTimeout, loop.ReasonBudget, loop.ReasonError, loop.ReasonCanceled,
	} {
		if r.Failed() != (r == "error") || r.Limit() != (r == "max_iterations" || r == "timeout" || r == "budget") {
			t.Errorf("%s: failed %v, limit %v", r, r.Failed(), r.Limit())
		}
	}
}
