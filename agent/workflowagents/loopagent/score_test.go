// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// drafts is an agent that says a draft and writes its score, one each time.
func drafts(t testing.TB, name, key string, scores ...float64) agent.Agent {
	n := 0
	return does(t, name, func(_ agent.InvocationContext, say say) error {
		say(sets("draft "+string(rune('1'+n)), key, scores[min(n, len(scores)-1)]))
		n++
		return nil
	})
}

// scored measures by state key and keeps the stop record.
func scored(rec **loop.StopRecord, s loop.Score) func(*loopagent.Config) {
	return func(c *loopagent.Config) {
		if s.Key == "" && s.Expr == "" {
			s.Key = "score"
		}
		c.Rules.Score = &s
		into(rec)(c)
	}
}

// T21, T23, T24, T31, C17, C18: a score ends the loop, and what is handed back
// is the best iteration, said last.
func TestScoreEndsTheLoop(t *testing.T) {
	for _, tt := range []struct {
		name   string
		score  loop.Score
		scores []float64
		reason loop.StopReason
		detail string
		want   []string // the loop's own words come last if the best came earlier
		best   int
	}{
		{"target", loop.Score{Target: new(8.0)}, []float64{5, 7, 8.5, 9}, loop.ReasonTarget, "Score 8.5 ≥ 8",
			[]string{"w: draft 1", "w: draft 2", "w: draft 3"}, 3},
		{"absolute gain", loop.Score{MinDelta: new(0.1)}, []float64{5, 6, 6.05}, loop.ReasonConverged, "Convergence detected: Improvement < 0.1",
			[]string{"w: draft 1", "w: draft 2", "w: draft 3"}, 3},
		{"relative gain", loop.Score{MinDeltaPercent: new(5.0)}, []float64{5.2, 6.8, 7.4, 7.6}, loop.ReasonConverged, "Convergence detected: Improvement < 5%",
			[]string{"w: draft 1", "w: draft 2", "w: draft 3", "w: draft 4"}, 4},
		{"a fall is no gain", loop.Score{MinDelta: new(0.1)}, []float64{5, 7, 4}, loop.ReasonConverged, "Convergence detected: Improvement < 0.1",
			[]string{"w: draft 1", "w: draft 2", "w: draft 3", "l: draft 2"}, 2},
		{"patience", loop.Score{MinDelta: new(0.1), Patience: 2}, []float64{5, 5, 6, 6, 6}, loop.ReasonConverged, "Convergence detected: Improvement < 0.1, 2 times running",
			[]string{"w: draft 1", "w: draft 2", "w: draft 3", "w: draft 4", "w: draft 5", "l: draft 3"}, 3},
		{"lower is better", loop.Score{Target: new(1.0), LowerIsBetter: true}, []float64{3, 2, 0.5}, loop.ReasonTarget, "Score 0.5 ≤ 1",
			[]string{"w: draft 1", "w: draft 2", "w: draft 3"}, 3},
		{"limit", loop.Score{}, []float64{3, 9, 4, 5, 6, 7}, loop.ReasonMaxIterations, "limit of 6 iterations",
			[]string{"w: draft 1", "w: draft 2", "w: draft 3", "w: draft 4", "w: draft 5", "w: draft 6", "l: draft 2"}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var rec *loop.StopRecord
			got := mustPlay(t, loopOf(t, "l", 6, scored(&rec, tt.score), drafts(t, "w", "score", tt.scores...)))
			check(t, "events", got, tt.want)
			check(t, "reason", rec.Reason, tt.reason)
			check(t, "detail", rec.Detail, tt.detail)
			check(t, "result", rec.Result, loop.Result{Source: loop.FromBest, Iteration: tt.best})
		})
	}
}

// LOOP: the order of checks. Where several conditions hold at once, the first
// in this order is the reason: exit, stop_when, target, converged, limit.
func TestPrecedenceOfStopReasons(t *testing.T) {
	holds := &loop.Condition{Expr: "score >= 1.0"}
	all := loop.Score{Target: new(8.0), MinDelta: new(1.0)}
	second := func(s string) *session.Event { return sets(s, "score", 8.5) }
	for _, tt := range []struct {
		last  *session.Event
		when  *loop.Condition
		score loop.Score
		want  loop.StopReason
	}{
		{exits("good"), holds, all, loop.ReasonExit},
		{second("x"), &loop.Condition{Expr: "iteration == 2 && score > 1.0"}, all, loop.ReasonCondition},
		{second("x"), nil, all, loop.ReasonTarget},
		{second("x"), nil, loop.Score{MinDelta: new(1.0)}, loop.ReasonConverged},
		{second("x"), nil, loop.Score{}, loop.ReasonMaxIterations},
	} {
		var rec *loop.StopRecord
		root := loopOf(t, "l", 2, func(c *loopagent.Config) {
			scored(&rec, tt.score)(c)
			if tt.when != nil {
				c.Rules.StopWhen = &loop.Condition{All: []loop.Condition{*tt.when, {Expr: "iteration >= 2"}}}
			}
		}, turns(t, "w", sets("x", "score", 7.9), tt.last))
		mustPlay(t, root)
		check(t, "reason", rec.Reason, tt.want)
	}
}

// T14, T25, T26, C28: a condition over the state ends the loop; looked at after
// every step it ends it in the middle of an iteration.
func TestStopWhen(t *testing.T) {
	for _, tt := range []struct {
		check loop.StopCheck
		want  []string
		whole int
	}{
		{loop.EachIteration, []string{"probe: ", "log: x", "probe: up", "log: x"}, 2},
		{loop.EachStep, []string{"probe: ", "log: x", "probe: up", "l: x"}, 1},
	} {
		var rec *loop.StopRecord
		root := loopOf(t, "l", 0, func(c *loopagent.Config) {
			c.Rules.StopWhen, c.Rules.StopCheck = &loop.Condition{Expr: `state.status == "up"`}, tt.check
			into(&rec)(c)
		}, turns(t, "probe", sets("", "status", "down"), sets("up", "status", "up")), says(t, "log", "x"))
		check(t, string(tt.check), mustPlay(t, root), tt.want)
		check(t, "reason", rec.Reason, loop.ReasonCondition)
		check(t, "complete", rec.Iterations, tt.whole)
	}
}

// A key that lives for one iteration can be a score and a condition: it is read
// before the iteration's keys are forgotten.
func TestIterationKeysCanBeMeasured(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "l", 9, func(c *loopagent.Config) {
		scored(&rec, loop.Score{Key: "iteration:score"})(c)
		c.Rules.StopWhen = &loop.Condition{Expr: `state["iteration:score"] > 7.0`}
	}, drafts(t, "w", "iteration:score", 5, 7, 9))
	mustPlay(t, root)
	check(t, "reason", rec.Reason, loop.ReasonCondition)
	check(t, "best", rec.BestScore, new(9.0))
}

// An iteration that writes no score of its own has none, where the score lives
// for one iteration.
func TestStaleIterationScoreIsNotReadAgain(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "l", 2, scored(&rec, loop.Score{Key: "iteration:score"}),
		turns(t, "w", sets("a", "iteration:score", 5.0), words("b")))
	check(t, "events", mustPlay(t, root), []string{"w: a", "w: b", "l: a"})
	if rec.ScoreNote == "" {
		t.Error("no note about the missing score")
	}
}

// C3: an exit may bring its own score.
func TestScoreOfAnExit(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "l", 9, scored(&rec, loop.Score{}),
		turns(t, "w", sets("a", "score", 9.0), exitsBy(session.Exit{Score: new(4.0)})))
	check(t, "events", mustPlay(t, root), []string{"w: a", "w: exit ", "l: a"})
	check(t, "best", rec.BestScore, new(9.0))
	check(t, "reason", rec.Reason, loop.ReasonExit)
}
