// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	_ "github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/loop"
)

// accepted shows which iterations were accepted: + and -, * for a new best.
func accepted(tr trace) string {
	var b strings.Builder
	for _, r := range tr.ended {
		switch {
		case r.Best:
			b.WriteByte('*')
		case r.Rejected != "":
			b.WriteByte('-')
		default:
			b.WriteByte('+')
		}
	}
	return b.String()
}

// LOOP 18: the scores 5, 7, 6, 8, 4, with and without rollback. O9
func TestLaw18Regression(t *testing.T) {
	plan := func(r loop.Regression) loop.Plan {
		return loop.Plan{Steps: steps("a", "final"), MaxIterations: 5, Score: &loop.Score{Key: "score"}, OnRegression: r}
	}
	tr := run(t, plan(loop.RollbackOnWorse), scored(5, 7, 6, 8, 4))
	if got, want := strings.Join(tr.ran, " "), "a@1 a@2 a@3 back to 2 a@4 a@5 back to 4 final@5"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
	if got := accepted(tr); got != "**-*-" {
		t.Errorf("accepted %s", got)
	}
	var lines []string
	for _, r := range tr.ended {
		lines = append(lines, strings.TrimSuffix(r.String()+", "+r.Rejected, ", "))
	}
	if diff := cmp.Diff([]string{
		"Iteration 1: Score 5 → Improvement: N/A",
		"Iteration 2: Score 7 → Improvement: +2 (40.0%)",
		"Iteration 3: Score 6 → Improvement: -1 (-14.3%), score 6 is worse than 7, the best so far (iteration 2)",
		"Iteration 4: Score 8 → Improvement: +1 (14.3%)", // from 7, not from 6
		"Iteration 5: Score 4 → Improvement: -4 (-50.0%), score 4 is worse than 8, the best so far (iteration 4)",
	}, lines); diff != "" {
		t.Error(diff)
	}
	u := tr.tally
	if u.Rejections != 2 || u.Rollbacks != 2 || u.RollbackDue || *u.Best != 8 || *u.Accepted != 8 || u.BestIteration != 4 || u.Complete != 5 {
		t.Errorf("%+v", u)
	}
	if tr.stop.Rejections != 2 || tr.stop.Rollbacks != 2 || tr.stop.String() != "Stopped: max_iterations after 5 iterations: limit of 5 iterations" {
		t.Errorf("%v: %+v", tr.stop, tr.stop)
	}
	if d := tr.decided[3]; d.Action != loop.Rollback || d.To != 2 || d.Iteration != 3 || d.Step != -1 || d.Ended.Number != 3 || d.Timeout != 0 {
		t.Errorf("%+v", d)
	}

	keep := plan(loop.KeepBest)
	keep.Steps = steps("a")
	tr = run(t, keep, scored(5, 7, 6, 8, 4))
	if got := accepted(tr); got != "**+*+" || result(tr.stop) != "best 4" || tr.stop.Rollbacks != 0 || *tr.tally.Accepted != 4 {
		t.Errorf("keep_best: accepted %s, result %s", got, result(tr.stop))
	}
	if got := tr.ended[3].String(); got != "Iteration 4: Score 8 → Improvement: +2 (33.3%)" { // from 6
		t.Errorf("%s", got)
	}
}

func TestRollbacks(t *testing.T) {
	plan := func(change func(*loop.Plan)) loop.Plan {
		p := loop.Plan{Steps: steps("a", "b"), MaxIterations: 3, Score: &loop.Score{Key: "score"}, OnRegression: loop.RollbackOnWorse, OnError: loop.NextIteration}
		change(&p)
		return p
	}
	same := func(*loop.Plan) {}
	gate := func(p *loop.Plan) { p.QualityGate = new(6.0) }
	for name, c := range map[string]struct {
		plan   loop.Plan
		script func(loop.Plan) script
		ran    string
		want   string // source, iteration, reason
	}{
		"equal is not worse": {plan(same), always(scored(5, 5, 5)), "a@1 b@1 a@2 b@2 a@3 b@3", "best 1 max_iterations"},
		"lower is better":    {plan(func(p *loop.Plan) { p.Score.LowerIsBetter = true }), always(scored(5, 6, 4)), "a@1 b@1 a@2 b@2 back to 1 a@3 b@3", "best 3 max_iterations"},
		"without a score it is not accepted over one that has one": {plan(same), always(scored(5, "?", 6)),
			"a@1 b@1 a@2 b@2 back to 1 a@3 b@3", "best 3 max_iterations"},
		"without any score there is nothing to go back to": {plan(same), always(scored("?", "?", 6)), "a@1 b@1 a@2 b@2 a@3 b@3", "best 3 max_iterations"},
		"an iteration that was cut short is undone": {plan(same),
			func(p loop.Plan) script { return at(p, "a", 2, failure(""), scored(5, 6, 7)) }, "a@1 b@1 a@2 back to 1 a@3 b@3", "best 3 max_iterations"},
		"the first one too": {plan(same),
			func(p loop.Plan) script { return at(p, "b", 1, failure(""), scored(5, 6, 7)) }, "a@1 b@1 back to 0 a@2 b@2 a@3 b@3", "best 3 max_iterations"},
		"out of time in the middle": {plan(func(p *loop.Plan) { p.IterationTimeout = secs(5) }),
			func(p loop.Plan) script {
				return at(p, "a", 2, lasting(time.Minute, loop.Outcome{}), scored(5, 6, 7))
			},
			"a@1 b@1 a@2 back to 1 a@3 b@3", "best 3 max_iterations"},
		"below the gate": {plan(gate), always(scored(5, 7, 5)), "a@1 b@1 back to 0 a@2 b@2 a@3 b@3 back to 2", "best 2 max_iterations"},
		"never above it": {plan(gate), always(scored(5, 5, 5)), "a@1 b@1 back to 0 a@2 b@2 back to 0 a@3 b@3 back to 0", "last 3 max_iterations"},
		"a worse exit is what was left": {plan(same),
			func(p loop.Plan) script {
				return at(p, "b", 2, loop.Outcome{Exit: &loop.Exit{}, State: map[string]any{"score": 3}}, scored(5))
			},
			"a@1 b@1 a@2 b@2", "last 2 exit_loop"},
		"a worse exit is undone if the best is asked for": {plan(func(p *loop.Plan) { p.BestOnExit = true }),
			func(p loop.Plan) script {
				return at(p, "b", 2, loop.Outcome{Exit: &loop.Exit{}, State: map[string]any{"score": 3}}, scored(5))
			},
			"a@1 b@1 a@2 b@2 back to 1", "best 1 exit_loop"},
		"the loop's time in the middle of an iteration": {plan(func(p *loop.Plan) { p.Timeout = secs(3) }),
			always(scored(5)), "a@1 b@1 a@2 back to 1", "best 1 timeout"},
		"the loop's time in a step": {plan(func(p *loop.Plan) { p.Timeout = secs(3.5) }),
			always(scored(5)), "a@1 b@1 a@2 b@2 back to 1", "best 1 timeout"},
		"the budget in the middle of an iteration": {plan(same),
			func(p loop.Plan) script { return at(p, "a", 2, failure(loop.BudgetSpent), scored(5)) }, "a@1 b@1 a@2 back to 1", "best 1 budget"},
		"the loop's time at the end of an iteration": {plan(func(p *loop.Plan) { p.Timeout = secs(4) }),
			always(scored(5, 6)), "a@1 b@1 a@2 b@2", "best 2 timeout"},
		"an error leaves things as they are": {plan(func(p *loop.Plan) { p.OnError = "" }),
			func(p loop.Plan) script { return at(p, "b", 2, failure(""), scored(5)) }, "a@1 b@1 a@2 b@2", "best 1 error"},
		"so does a cancellation": {plan(same),
			func(p loop.Plan) script { return at(p, "b", 2, loop.Outcome{Canceled: "x"}, scored(5)) }, "a@1 b@1 a@2 b@2", "best 1 canceled"},
		"a condition in the middle is what was asked for": {plan(func(p *loop.Plan) {
			p.StopWhen, p.StopCheck = &loop.Condition{Expr: "state.score > 5"}, loop.EachStep
		}), always(scored(5, 6)), "a@1 b@1 a@2", "partial 2 condition"},
	} {
		tr := run(t, c.plan, c.script(c.plan))
		if got := strings.Join(tr.ran, " "); got != c.ran {
			t.Errorf("%s: ran %s, want %s", name, got, c.ran)
		}
		if got := result(tr.stop) + " " + string(tr.stop.Reason); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if undone := strings.Count(c.ran, "back"); tr.stop.Rollbacks != undone || tr.stop.Rejections != undone || tr.tally.RollbackDue {
			t.Errorf("%s: %d rollbacks, %d rejections, want %d", name, tr.stop.Rollbacks, tr.stop.Rejections, undone)
		}
	}
}

func always(s script) func(loop.Plan) script { return func(loop.Plan) script { return s } }

// A rollback that cannot be done ends the loop: its state is nobody's.
func TestRollbackThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		o    loop.Outcome
		last bool // at the limit
		want string
	}{
		"fails":                  {failure(""), false, "error after 2 iterations: roll back: broken"},
		"fails at the end":       {failure(""), true, "error after 2 iterations: roll back: broken"},
		"is canceled":            {loop.Outcome{Canceled: "ctrl-c"}, false, "canceled after 2 iterations: ctrl-c"},
		"is canceled at the end": {loop.Outcome{Canceled: "ctrl-c"}, true, "canceled after 2 iterations: ctrl-c"},
	} {
		p := loop.Plan{Steps: steps("a", "final"), MaxIterations: 9, Score: &loop.Score{Key: "score"}, OnRegression: loop.RollbackOnWorse}
		if c.last {
			p.MaxIterations = 2
		}
		tr := run(t, p, func(d loop.Decision) loop.Outcome {
			if d.Action == loop.Rollback {
				c.o.Step = -1
				return c.o
			}
			return scored(5, 4)(d)
		})
		if got := tr.stop.String(); got != "Stopped: "+c.want || strings.Join(tr.ran, " ") != "a@1 a@2 back to 1" || tr.stop.Rollbacks != 0 {
			t.Errorf("%s: %s, ran %v", name, got, tr.ran)
		}
		if tr.stop.Result.Source != loop.FromBest {
			t.Errorf("%s: %+v", name, tr.stop.Result)
		}
	}
}

// A step that waits for a person's answer stops the loop, whoever may exit; its
// iteration is not over, so that it is neither valued nor undone.
func TestWaitingIsNoRegression(t *testing.T) {
	p := loop.Plan{Steps: steps("a"), CanExit: []string{}, Score: &loop.Score{Key: "score"}, OnRegression: loop.RollbackOnWorse, QualityGate: new(4.0)}
	tr := run(t, p, at(p, "a", 2, loop.Outcome{Exit: &loop.Exit{Waits: true, Reason: "approve?"}, State: map[string]any{"score": 3}}, scored(5)))
	if got := strings.Join(tr.ran, " "); got != "a@1 a@2" || tr.stop.String() != "Stopped: exit_loop after 2 iterations: approve?" || tr.ended[1].Score != nil {
		t.Errorf("ran %s: %v, %+v", got, tr.stop, tr.ended[1])
	}
}

// LOOP 19: what does not pass the gate is not accepted. O10
func TestLaw19QualityGate(t *testing.T) {
	for name, c := range map[string]struct {
		lower  bool
		scores []any
		want   string
		result string
	}{
		"some pass":       {false, []any{5, 6, 7, 5.9, 6.5}, "-**-+", "best 3"},
		"none passes":     {false, []any{5, 4, 3, 2, 1}, "-----", "last 5"},
		"lower is better": {true, []any{7, 6, 5, 6.1, 5.5}, "-**-+", "best 3"},
	} {
		p := loop.Plan{Steps: steps("a"), MaxIterations: 5, QualityGate: new(6.0), Score: &loop.Score{Key: "score", LowerIsBetter: c.lower}}
		tr := run(t, p, scored(c.scores...))
		if got := accepted(tr); got != c.want || result(tr.stop) != c.result || strings.Contains(strings.Join(tr.ran, " "), "back") {
			t.Errorf("%s: %s, %s, ran %v", name, got, result(tr.stop), tr.ran)
		}
		if tr.stop.Rejections != strings.Count(c.want, "-") {
			t.Errorf("%s: %d rejections", name, tr.stop.Rejections)
		}
	}
	p := loop.Plan{Steps: steps("a"), MaxIterations: 3, QualityGate: new(6.0), Score: &loop.Score{Key: "score", Target: new(5.0)}}
	tr := run(t, p, scored(5.5, 5.5, 6))
	if tr.stop.Reason != loop.ReasonTarget || tr.stop.Iteration != 3 || tr.ended[0].Rejected != "score 5.5 does not pass the quality gate of 6" {
		t.Errorf("a target below the gate: %v", tr.stop)
	}
	// Gains count from the last score that was accepted.
	p.Score = &loop.Score{Key: "score"}
	p.MaxIterations = 4
	tr = run(t, p, scored(7, 5, 8, 9))
	if *tr.ended[1].Delta != -2 || *tr.ended[2].Delta != 1 || *tr.ended[3].Delta != 1 {
		t.Errorf("%v", tr.ended)
	}
}

// The delay after an iteration is waited after its rollback too.
func TestDelayAfterRollback(t *testing.T) {
	p := loop.Plan{Steps: steps("a"), MaxIterations: 3, DelayAfter: secs(7), OnRegression: loop.RollbackOnWorse, Score: &loop.Score{Key: "score"}}
	tr := run(t, p, scored(5, 4, 6))
	if d := tr.decided[3]; d.Step != 0 || d.Wait != 7*time.Second {
		t.Errorf("%+v", d)
	}
}

// Scores that no float64 holds any more leave a tally that JSON can still write.
func TestExtremeScores(t *testing.T) {
	for _, scores := range [][]any{{1e300, -1e300}, {5e-324, 1e99}, {0, 1e100, -1e100, 1e100}, {-1e100, 1e100}, {"1e999", "1e200", 5}} {
		p := judged(2)
		p.Score.MinDeltaPercent = new(5.0)
		p.NotWorth, p.MaxIterations = &loop.NotWorth{Gain: 1e-300, Per: loop.PerMinute}, 6
		p.OnRegression = loop.RollbackOnWorse
		if tr := run(t, p, scored(scores...)); tr.stop.Reason.Failed() { // run stores every tally as JSON
			t.Errorf("%v: %v", scores, tr.stop)
		}
		exit := loop.Outcome{Exit: &loop.Exit{Score: new(math.Inf(1))}}
		tr := run(t, p, at(p, "writer", 2, exit, scored(scores...)))
		if tr.stop.Reason != loop.ReasonExit || tr.stop.ScoreNote != "not a finite number: +Inf" {
			t.Errorf("%v, %s", tr.stop, tr.stop.ScoreNote)
		}
	}
}
