// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"fmt"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// verdicts is a judge that gives one score after another, under the key "score".
func verdicts(t testing.TB, scores ...float64) agent.Agent {
	n := 0
	return does(t, "judge", func(_ agent.InvocationContext, say say) error {
		score := scores[min(n, len(scores)-1)]
		n++
		say(sets(fmt.Sprint("score ", score), "score", score))
		return nil
	})
}

// judged has the judge run so often.
func judged(rec **loop.StopRecord, samples uint, s loop.Score) func(*loopagent.Config) {
	s.Judge = &loop.Judge{Step: "judge", Samples: samples}
	return scored(rec, s)
}

// LOOP 14: a judge is asked more than once in an iteration, each time at an
// address of its own; what the iteration hands back is not its verdict.
func TestJudgeSamples(t *testing.T) {
	var rec *loop.StopRecord
	var its []loop.IterationRecord
	s := newStage(t, loopOf(t, "l", 2, func(c *loopagent.Config) {
		judged(&rec, 3, loop.Score{Target: new(8.0)})(c)
		c.OutputKey = "result"
		c.AfterIteration = []loopagent.AfterIterationCallback{func(_ agent.Context, it loop.IterationRecord) error {
			its = append(its, it)
			return nil
		}}
	}, turns(t, "writer", words("draft 1"), words("draft 2")), verdicts(t, 5, 6, 7, 8, 8, 9.5), says(t, "log", "x")), false)
	evs, err := s.send(t, t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", addressed(evs), []string{
		"l[1]/writer: draft 1", "l[1]/judge: score 5", "l[1]/judge#2: score 6", "l[1]/judge#3: score 7", "l[1]/log: x",
		"l[2]/writer: draft 2", "l[2]/judge: score 8", "l[2]/judge#2: score 8", "l[2]/judge#3: score 9.5", "l[2]/log: x",
		"l: ", // the result under its key
	})
	check(t, "scores", []float64{*its[0].Score, *its[1].Score}, []float64{6, 8.5})
	check(t, "samples", []int{its[0].Samples, its[1].Samples}, []int{3, 3})
	if its[0].Noise <= 0 {
		t.Errorf("no noise in %+v", its[0])
	}
	check(t, "reason", rec.Reason, loop.ReasonTarget)
	check(t, "state", s.state(t, "score"), any(9.5)) // the last verdict
	for _, ev := range evs {
		if ev.Author != ev.Address.Agent() || ev.Attempt != 1 {
			t.Errorf("event %+v", ev)
		}
	}
}

// LOOP 16: a verdict is not the candidate, wherever the judge stands.
func TestVerdictIsNotTheResult(t *testing.T) {
	var rec *loop.StopRecord
	s := newStage(t, loopOf(t, "l", 2, func(c *loopagent.Config) {
		judged(&rec, 0, loop.Score{})(c)
		c.OutputKey = "result"
	}, turns(t, "writer", words("draft 1"), words("draft 2")), verdicts(t, 5, 4)), false)
	evs, err := s.send(t, t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", lines(evs), []string{"writer: draft 1", "judge: score 5", "writer: draft 2", "judge: score 4", "l: draft 1"})
	check(t, "result", s.state(t, "result"), any("draft 1"))

	// Where nobody else has said anything there is nothing but the verdict.
	s = newStage(t, loopOf(t, "l", 1, func(c *loopagent.Config) {
		judged(&rec, 0, loop.Score{})(c)
		c.OutputKey = "result"
	}, turns(t, "writer", sets("", "draft", "x")), verdicts(t, 5)), false)
	if _, err := s.send(t, t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	check(t, "result", s.state(t, "result"), any("score 5"))
}

// LOOP 14: a judge that gives the same text 0.2, 0.2, 0.7, 0.7 is not taken for
// an improvement when samples are on; without them it is.
func TestNoisyJudgeIsNoImprovement(t *testing.T) {
	for _, tt := range []struct {
		samples uint // 0: it is no judge
		scores  []float64
		best    float64
		first   bool
	}{
		{0, []float64{0.2, 0.2, 0.7, 0.7}, 0.7, false},
		{1, []float64{0.2, 0.2, 0.7, 0.7}, 0.45, true}, // the candidate is the same, with the mean of all answers
		{2, []float64{0.2, 0.2, 0.7, 0.7}, 0.45, true},
		{2, []float64{0.2, 0.7, 0.2, 0.7}, 0.45, true},
	} {
		var rec *loop.StopRecord
		n, more := uint(4), scored(&rec, loop.Score{})
		if tt.samples > 0 {
			n, more = 4/tt.samples, judged(&rec, tt.samples, loop.Score{})
		}
		mustPlay(t, loopOf(t, "l", n, more, says(t, "writer", "the same"), verdicts(t, tt.scores...)))
		check(t, fmt.Sprint(tt, " best"), *rec.BestScore, tt.best)
		check(t, fmt.Sprint(tt, " first"), rec.BestIteration == 1, tt.first)
	}
}

// A judge that asks to leave is not asked again, and its own score counts.
func TestJudgeThatLeaves(t *testing.T) {
	var rec *loop.StopRecord
	leave := &session.Event{}
	leave.Actions.Escalate, leave.Actions.Exit = true, &session.Exit{Reason: "good", Score: new(9.0)}
	got := mustPlay(t, loopOf(t, "l", 9, judged(&rec, 3, loop.Score{}), says(t, "writer", "x"),
		turns(t, "judge", sets("5", "score", 5.0), leave)))
	check(t, "events", got, []string{"writer: x", "judge: 5", "judge: ", "l: x"})
	check(t, "best", rec.BestScore, new(9.0))
	check(t, "reason", rec.Reason, loop.ReasonExit)
}

// G10, LOOP 14: a sample that fails is tried again as that sample.
func TestRetryOfASample(t *testing.T) {
	var rec *loop.StopRecord
	n := 0
	evs, err := play(t, loopOf(t, "l", 1, func(c *loopagent.Config) {
		judged(&rec, 2, loop.Score{})(c)
		c.Rules.Steps = []loop.Step{{Name: "judge", Retry: &loop.Retry{Attempts: 2}}}
	}, says(t, "writer", "x"), does(t, "judge", func(_ agent.InvocationContext, say say) error {
		n++
		say(sets(fmt.Sprint(n), "score", float64(n)))
		if n == 2 {
			return errBroken
		}
		return nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ev := range evs {
		got = append(got, fmt.Sprintf("%s %d: %s", ev.Address, ev.Attempt, ev.Text()))
	}
	check(t, "events", got, []string{"l[1]/writer 1: x", "l[1]/judge 1: 1", "l[1]/judge#2 1: 2", "l[1]/judge#2 2: ", "l[1]/judge#2 2: 3", "l 1: x"})
	check(t, "score", rec.BestScore, new(2.0)) // the mean of 1 and 3
}
