// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/loop"
)

// states gives the iterations these states, the last one for ever.
func states(all ...map[string]any) script {
	return func(d loop.Decision) loop.Outcome { return loop.Outcome{State: all[min(d.Iteration, len(all))-1]} }
}

// LOOP 16, D21, T22, O9: what is handed back is from an iteration at whose end the
// criterion held.
func TestResultFitsTheReason(t *testing.T) {
	tested := func(score float64, tests bool) map[string]any {
		return map[string]any{"score": score, "tests": tests}
	}
	judged := func(score, least float64) map[string]any {
		return map[string]any{"score": map[string]any{"score": score, "dimensions": map[string]any{"depth": least}}}
	}
	whole := &loop.Score{Key: "score", Target: new(8.0), DimensionTarget: new(7.0)}
	score := &loop.Score{Key: "score"}
	passes := &loop.Condition{Expr: "state.tests"}
	twice := &loop.Condition{Expr: "state.tests", For: 3}
	for name, c := range map[string]struct {
		plan     loop.Plan
		script   script
		reason   loop.StopReason
		want     string // the result
		rejected string // iterations
	}{
		"condition":                     {loop.Plan{Score: score, StopWhen: passes}, states(tested(9, false), tested(7, true)), loop.ReasonCondition, "best 2", ""},
		"condition, rolling back":       {loop.Plan{Score: score, StopWhen: passes, OnRegression: loop.RollbackOnWorse}, states(tested(9, false), tested(7, true)), loop.ReasonCondition, "best 2", ""},
		"condition without a score":     {loop.Plan{StopWhen: passes}, states(tested(9, false), tested(7, true)), loop.ReasonCondition, "last 2", ""},
		"condition below the gate":      {loop.Plan{Score: score, StopWhen: passes, QualityGate: new(8.0), OnRegression: loop.RollbackOnWorse}, states(tested(9, false), tested(7, true)), loop.ReasonCondition, "last 2", "2"},
		"the best of those that held":   {loop.Plan{Score: score, StopWhen: twice}, states(tested(9, false), tested(7, true), tested(8, true), tested(6, true)), loop.ReasonCondition, "best 3", ""},
		"the run before is none":        {loop.Plan{Score: score, StopWhen: twice}, states(tested(9, true), tested(9, false), tested(5, true), tested(6, true), tested(4, true)), loop.ReasonCondition, "best 4", ""},
		"target and dimensions":         {loop.Plan{Score: whole}, states(judged(9.5, 6.9), judged(8, 8)), loop.ReasonTarget, "best 2", ""},
		"target, rolling back":          {loop.Plan{Score: whole, OnRegression: loop.RollbackOnWorse}, states(judged(8.2, 6.9), judged(8, 8)), loop.ReasonTarget, "best 2", ""},
		"another iteration is rejected": {loop.Plan{Score: whole, OnRegression: loop.RollbackOnWorse, MaxIterations: 2}, states(judged(8.2, 6.9), judged(7, 8)), loop.ReasonMaxIterations, "best 1", "2"},
	} {
		c.plan.Steps = steps("a")
		tr := run(t, c.plan, c.script)
		if tr.stop.Reason != c.reason || result(tr.stop) != c.want {
			t.Errorf("%s: %s with %s, want %s with %s", name, tr.stop.Reason, result(tr.stop), c.reason, c.want)
		}
		var rejected []string
		for _, it := range tr.ended {
			if it.Rejected != "" {
				rejected = append(rejected, num(float64(it.Number)))
			}
		}
		if got := strings.Join(rejected, " "); got != c.rejected {
			t.Errorf("%s: rejected %s, want %s", name, got, c.rejected)
		}
		if undone := strings.Contains(strings.Join(tr.ran, " "), "back"); undone != (c.reason == loop.ReasonMaxIterations) {
			t.Errorf("%s: ran %v", name, tr.ran)
		}
	}
}

// LOOP 16: an exit hands back the iteration that was left; the best only if the
// author asks for it.
func TestExitHandsBackWhatWasLeft(t *testing.T) {
	for name, c := range map[string]struct {
		exit loop.Exit
		best bool
		want string
	}{
		"exit":               {loop.Exit{}, false, "last 2 exit_loop"},
		"escalated":          {loop.Exit{Escalated: true}, false, "last 2 escalated"},
		"exit, best":         {loop.Exit{}, true, "best 1 exit_loop"},
		"escalated, best":    {loop.Exit{Escalated: true}, true, "best 1 escalated"},
		"impossible":         {loop.Exit{Status: loop.StatusImpossible}, false, "best 1 impossible"},
		"exit with a score":  {loop.Exit{Score: new(3.0)}, false, "last 2 exit_loop"},
		"exit, better score": {loop.Exit{Score: new(9.5)}, false, "best 2 exit_loop"},
	} {
		p := loop.Plan{Steps: steps("a", "b"), Score: &loop.Score{Key: "score"}, BestOnExit: c.best}
		tr := run(t, p, at(p, "b", 2, loop.Outcome{Exit: &c.exit}, scored(9, 7)))
		if got := result(tr.stop) + " " + string(tr.stop.Reason); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// LOOP 16: a loop in which nothing has worked has failed, and says so.
func TestNoIterationSucceeded(t *testing.T) {
	fails := func(kind string) script { return func(loop.Decision) loop.Outcome { return failure(kind) } }
	second := func(d loop.Decision) loop.Outcome {
		if d.Step == 1 {
			return failure("")
		}
		return loop.Outcome{}
	}
	for name, c := range map[string]struct {
		plan   loop.Plan
		script script
		want   string
	}{
		"timeouts":   {loop.Plan{}, fails(loop.Timeout), "error after 2 iterations: No iteration succeeded; the last failure: b: timeout: broken"},
		"skip_step":  {loop.Plan{OnError: loop.SkipStep}, fails(""), "error after 2 iterations: No iteration succeeded; the last failure: b: broken"},
		"cut short":  {loop.Plan{OnError: loop.NextIteration}, second, "error after 0 iterations: No iteration succeeded; the last failure: b: broken"},
		"a step did": {loop.Plan{OnError: loop.SkipStep}, second, "max_iterations after 2 iterations: limit of 2 iterations"},
		"iteration timeouts": {loop.Plan{IterationTimeout: secs(1)}, nil,
			"error after 0 iterations: No iteration succeeded; the last failure: a: iteration_timeout: the iteration took longer than 1s"},
		"the time, between failures": {loop.Plan{OnError: loop.SkipStep, Timeout: secs(3)}, fails(""),
			"error after 1 iteration: No iteration succeeded; the last failure: a: broken"},
		"the time, in the first iteration": {loop.Plan{Timeout: secs(1)}, nil, "timeout after 0 iterations: 1s of 1s used"},
	} {
		c.plan.Steps, c.plan.MaxIterations = append(steps("a", "b"), loop.Step{Name: "final", Finalizer: true}), 2
		if c.plan.Timeout > 0 {
			c.plan.Steps = c.plan.Steps[:2]
		}
		tr := run(t, c.plan, c.script)
		if got := strings.TrimPrefix(tr.stop.String(), "Stopped: "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if failed := strings.HasPrefix(c.want, "error"); tr.stop.Reason.Failed() != failed || failed && tr.final != nil {
			t.Errorf("%s: %+v, before the finalizer %v", name, tr.stop, tr.final)
		}
	}
	// A limit that is raised lets it go on.
	p := loop.Plan{Steps: steps("a"), MaxIterations: 1, OnError: loop.SkipStep}
	tr := run(t, p, fails(""))
	if p.Reopen(&tr.tally) == nil {
		t.Error("it goes on without a reason")
	}
	p.MaxIterations = 2
	if err := p.Reopen(&tr.tally); err != nil {
		t.Error(err)
	}
	if tr = goOn(t, p, tr.tally, nil); tr.stop.Reason != loop.ReasonMaxIterations || result(tr.stop) != "last 2" {
		t.Errorf("%v", tr.stop)
	}
}
