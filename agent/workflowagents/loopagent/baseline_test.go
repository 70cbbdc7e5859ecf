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

// fromStart is a loop that scores the draft it begins with. Each iteration writes a new one.
func fromStart(t *testing.T, rec **loop.StopRecord, its *[]loop.IterationRecord, regression loop.Regression, scores ...float64) *stage {
	t.Helper()
	draft := func(n int) *session.Event {
		ev := &session.Event{}
		ev.Actions.StateDelta = map[string]any{"draft": fmt.Sprint("draft ", n), "files": fmt.Sprint("tree ", n)}
		return ev
	}
	s := newStage(t, loopOf(t, "l", uint(len(scores)-1), func(c *loopagent.Config) {
		scored(rec, loop.Score{Baseline: true, Scorers: []string{"judge"}})(c)
		c.Rules.OnRegression, c.Result, c.OutputKey, c.HandBack, c.KeepStates = regression, "draft", "result", []string{"files"}, true
		c.AfterIteration = []loopagent.AfterIterationCallback{func(_ agent.Context, it loop.IterationRecord) error {
			*its = append(*its, it)
			return nil
		}}
	}, turns(t, "writer", draft(1), draft(2)), verdicts(t, scores...)), false)
	req := &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1", State: draft(0).Actions.StateDelta}
	if _, err := s.sessions.Create(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return s
}

// LOOP 14a: what is there before the first iteration is scored, and is what the loop hands back if nothing is better.
func TestBaseline(t *testing.T) {
	for name, c := range map[string]struct {
		regression loop.Regression
		scores     []float64
		best       int
		draft      any // in the state at the end
		result     any
		rollbacks  int
	}{
		"nothing is better, and the best is kept":   {loop.KeepBest, []float64{7, 5, 6}, 0, "draft 2", "draft 0", 0},
		"nothing is better, and what is worse goes": {loop.RollbackOnWorse, []float64{7, 5, 6}, 0, "draft 0", "draft 0", 2},
		"the second is better":                      {loop.RollbackOnWorse, []float64{7, 5, 8}, 2, "draft 2", "draft 2", 1},
	} {
		var rec *loop.StopRecord
		var its []loop.IterationRecord
		s := fromStart(t, &rec, &its, c.regression, c.scores...)
		evs, err := s.send(t, t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		check(t, name+": first", addressed(evs)[0], "l/judge: score 7")
		check(t, name+": best", rec.BestIteration, c.best)
		check(t, name+": rollbacks", rec.Rollbacks, c.rollbacks)
		check(t, name+": draft", s.state(t, "draft"), c.draft)
		check(t, name+": result", s.state(t, "result"), c.result)
		check(t, name+": files", s.state(t, "files"), any("tree "+c.result.(string)[len("draft "):]))
		if its[0].Baseline == nil || *its[0].Baseline != 7 || *its[0].Delta != -2 || its[1].Baseline != nil {
			t.Errorf("%s: %+v", name, its)
		}
		if c.rollbacks > 0 && its[0].Rejected != "score 5 is worse than 7, the start" {
			t.Errorf("%s: %s", name, its[0].Rejected)
		}
	}
}

// A start that cannot be scored ends nothing: the first iteration is compared with nothing, and says so.
func TestBaselineThatFails(t *testing.T) {
	var rec *loop.StopRecord
	var its []loop.IterationRecord
	n := 0
	_, err := play(t, loopOf(t, "l", 1, func(c *loopagent.Config) {
		scored(&rec, loop.Score{Baseline: true, Scorers: []string{"judge"}})(c)
		c.AfterIteration = []loopagent.AfterIterationCallback{func(_ agent.Context, it loop.IterationRecord) error {
			its = append(its, it)
			return nil
		}}
	}, says(t, "writer", "x"), does(t, "judge", func(_ agent.InvocationContext, say say) error {
		if n++; n == 1 {
			return errBroken
		}
		say(sets("5", "score", 5.0))
		return nil
	})))
	if err != nil || rec.BestIteration != 1 || its[0].Warning == "" || its[0].Delta != nil {
		t.Errorf("%v: %+v: %+v", err, rec, its)
	}
}
