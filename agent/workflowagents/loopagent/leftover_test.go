// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// LOOP 12, 29: what the critic has said about an earlier message is no score of this
// one, and no flag.
func TestSecondMessageStartsAfresh(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for name, more := range map[string]func(*loopagent.Config){
			"score":      func(c *loopagent.Config) { c.Rules.Score = &loop.Score{Key: "score", Target: new(8.0)} },
			"expression": func(c *loopagent.Config) { c.Rules.Score = &loop.Score{Expr: "state.score", Target: new(8.0)} },
			"condition":  func(c *loopagent.Config) { c.Rules.StopWhen = &loop.Condition{Expr: "state.score > 8.0"} },
			"after every step": func(c *loopagent.Config) {
				c.Rules.StopWhen, c.Rules.StopCheck = &loop.Condition{Expr: `state["sc" + "ore"] > 8.0`}, loop.EachStep
			},
		} {
			var rec *loop.StopRecord
			root := loopOf(t, "l", 2, func(c *loopagent.Config) { more(c); into(&rec)(c) },
				says(t, "w", "a draft"), turns(t, "critic", sets("good", "score", 9.0)))
			s := newStage(t, root, durable)
			for _, want := range []loop.StopReason{"", loop.ReasonMaxIterations} {
				if _, err := s.send(t, t.Context(), "go"); err != nil {
					t.Fatal(err)
				}
				if want == "" && rec.Reason == loop.ReasonMaxIterations || want != "" && rec.Reason != want {
					t.Errorf("%s, durable %v: %v", name, durable, rec)
				}
			}
			if rec.BestScore != nil {
				t.Errorf("%s: best %v of nothing", name, *rec.BestScore)
			}
		}
	}
}

// LOOP 12, 29: an inner loop does not end by what its pass before has left.
func TestEveryPassJudgesAnew(t *testing.T) {
	n := 0
	critic := does(t, "critic", func(_ agent.InvocationContext, say say) error {
		n++
		say(sets("good", "approved", n%2 == 0))
		return nil
	})
	for name, around := range map[string]func(...agent.Agent) agent.Agent{
		"in the loop":     func(a ...agent.Agent) agent.Agent { return repeat(t, "outer", 3, a...) },
		"in a sequence":   func(a ...agent.Agent) agent.Agent { return repeat(t, "outer", 3, sequence(t, "seq", a...)) },
		"in another loop": func(a ...agent.Agent) agent.Agent { return repeat(t, "outer", 3, repeat(t, "middle", 1, a...)) },
		"rolled back": func(a ...agent.Agent) agent.Agent {
			return loopOf(t, "outer", 3, func(c *loopagent.Config) {
				c.Rules.Score, c.Rules.OnRegression = &loop.Score{Key: "mark"}, loop.RollbackOnWorse
			}, append(a, turns(t, "mark", sets("", "mark", 9), sets("", "mark", 1), sets("", "mark", 10)))...)
		},
	} {
		for _, durable := range []bool{false, true} {
			n = 0
			inner := loopOf(t, "inner", 5, func(c *loopagent.Config) {
				c.Rules.StopWhen, c.Rules.StopCheck = &loop.Condition{Expr: "state.approved"}, loop.EachStep
			}, says(t, "w", "x"), critic)
			evs, err := newStage(t, around(inner), durable).send(t, t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range lines(evs) {
				if l == "w: x" || l == "critic: good" {
					got = append(got, l[:1])
				}
			}
			if strings.Join(got, "") != strings.Repeat("wcwc", 3) {
				t.Errorf("%s, durable %v: %q", name, durable, got)
			}
			if name == "rolled back" {
				break // its mark says what it writes again
			}
		}
	}
}

// LOOP 12: what is given to a run is its own: by the user, by the session, by another
// step of the run, by another program in a shared key.
func TestGivenValuesCount(t *testing.T) {
	counts := func() agent.Agent {
		return does(t, "w", func(ctx agent.InvocationContext, say say) error {
			n, _ := ctx.Session().State().Get("n")
			i, _ := n.(float64)
			say(sets("x", "n", i+1))
			return nil
		})
	}
	run := func(expr string, before agent.Agent, create map[string]any, opts ...runner.RunOption) int {
		var rec *loop.StopRecord
		root := loopOf(t, "l", 4, func(c *loopagent.Config) { c.Rules.StopWhen = &loop.Condition{Expr: expr}; into(&rec)(c) }, counts())
		if before != nil {
			root = sequence(t, "all", before, root)
		}
		s := newStage(t, root, true)
		if _, err := s.sessions.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1", State: create}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for _, err := range s.Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}, opts...) {
				if err != nil {
					t.Fatal(err)
				}
			}
			opts = append(opts, runner.WithStateDelta(map[string]any{"n": 0}))
		}
		return rec.Iteration
	}
	check(t, "of the session", run("state.n >= state.limit", nil, map[string]any{"limit": 2}), 2)
	check(t, "of the message", run("state.n >= state.limit", nil, nil, runner.WithStateDelta(map[string]any{"limit": 2})), 2)
	check(t, "of a step before", run("state.n >= state.limit", does(t, "plan", func(_ agent.InvocationContext, say say) error {
		say(sets("", "limit", 2))
		return nil
	}), nil), 2)
	check(t, "of a step in the first run alone", run("state.n >= state.limit", turns(t, "plan", sets("", "limit", 2)), nil), 4)
	check(t, "a shared key", run(`state["app:stop"]`, nil, map[string]any{"app:stop": true}), 1)
}

// LOOP 18, 20: a critic that fails has not judged: its iteration has no score, and is
// not accepted over one that has.
func TestFailedCriticScoresNothing(t *testing.T) {
	var rec *loop.StopRecord
	var its []loop.IterationRecord
	w := 0
	writer := does(t, "w", func(_ agent.InvocationContext, say say) error {
		w++
		say(sets("draft "+string(rune('0'+w)), "draft", w))
		return nil
	})
	c := 0
	critic := does(t, "critic", func(_ agent.InvocationContext, say say) error {
		if c++; c > 1 {
			return errBroken
		}
		say(sets("7", "score", 7.0))
		return nil
	})
	root := loopOf(t, "l", 3, func(c *loopagent.Config) {
		c.Rules.Score, c.Rules.OnRegression, c.Rules.OnError = &loop.Score{Key: "score"}, loop.RollbackOnWorse, loop.SkipStep
		c.AfterIteration = append(c.AfterIteration, func(_ agent.Context, it loop.IterationRecord) error { its = append(its, it); return nil })
		into(&rec)(c)
	}, writer, critic)
	s := newStage(t, root, false)
	evs, err := s.send(t, t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	check(t, "state", s.state(t, "draft"), any(1.0))
	check(t, "rollbacks", rec.Rollbacks, 2)
	check(t, "result", rec.Result, loop.Result{Source: loop.FromBest, Iteration: 1})
	check(t, "last words", evs[len(evs)-1].Text(), "draft 1")
	if i := slices.IndexFunc(its, func(it loop.IterationRecord) bool { return it.Number > 1 && (it.Score != nil || it.Unscored == "") }); i >= 0 {
		t.Errorf("%+v", its[i])
	}
}
