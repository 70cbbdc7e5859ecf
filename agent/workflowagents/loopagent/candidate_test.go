// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"errors"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// LOOP 16, D21: the answer is the candidate, not the verdict.
func TestAnswerIsTheCandidate(t *testing.T) {
	writer := func() agent.Agent {
		return turns(t, "writer", sets("draft 1", "draft", "draft 1"), sets("draft 2", "draft", "draft 2"))
	}
	score := func(c *loopagent.Config) { c.Rules.Score = &loop.Score{Key: "review", Target: new(8.0)} }
	leaver := func(name string) func(*loopagent.Config) {
		return func(c *loopagent.Config) { c.Rules.CanExit = []string{name} }
	}
	for name, tt := range map[string]struct {
		more func(*loopagent.Config)
		subs []agent.Agent
		want string
	}{
		"a critic who scores": {score,
			[]agent.Agent{writer(), turns(t, "critic", sets("too long: 5", "review", 5), sets("good: 9", "review", 9))}, "draft 2"},
		"a critic who comes first": {func(c *loopagent.Config) { c.Rules.Score = &loop.Score{Key: "review"} },
			[]agent.Agent{turns(t, "critic", sets("nothing yet: 1", "review", 1), sets("good: 9", "review", 9)), writer()}, "draft 2"},
		"a step that sets a flag": {func(c *loopagent.Config) { c.Rules.StopWhen = &loop.Condition{Expr: "state.approved"} },
			[]agent.Agent{writer(), turns(t, "critic", sets("too long", "approved", false), sets("good", "approved", true))}, "draft 2"},
		"a critic who leaves": {leaver("critic"),
			[]agent.Agent{writer(), turns(t, "critic", sets("too long", "review", "too long"), exits("good"))}, "draft 2"},
		"a critic who leaves at once": {leaver("critic"), []agent.Agent{writer(), turns(t, "critic", exits("good"))}, "draft 1"},
		"a critic who leaves, and everybody might": {nil,
			[]agent.Agent{writer(), turns(t, "critic", sets("too long", "review", "too long"), exits("good"))}, "draft 2"},
		"a critic who never leaves": {leaver("critic"),
			[]agent.Agent{writer(), turns(t, "critic", sets("too long", "review", "too long"), sets("still", "review", "still"))}, "draft 2"},
		"a critic who comes first, and leaves in silence": {leaver("critic"),
			[]agent.Agent{turns(t, "critic", sets("nothing yet", "review", "nothing yet"), escalate(&session.Event{})), writer()}, "draft 1"},
		"a critic who comes first, and leaves in silence, as everybody might": {nil,
			[]agent.Agent{turns(t, "critic", sets("nothing yet", "review", "nothing yet"), escalate(&session.Event{})), writer()}, "draft 1"},
		"a critic before whom nothing was made at first": {leaver("critic"),
			[]agent.Agent{turns(t, "writer", nil, sets("draft 2", "draft", "draft 2")), turns(t, "critic", sets("nothing yet", "review", "nothing yet"), sets("so so", "review", "so so"))}, "draft 2"},
		"an editor who leaves": {leaver("editor"), []agent.Agent{
			says(t, "critic", "no issues"), turns(t, "editor", sets("the text", "text", "the text"), exits("fine")),
		}, "the text"},
		"an editor who leaves in silence": {leaver("editor"), []agent.Agent{
			turns(t, "critic", sets("too long", "review", "too long"), sets("no issues", "review", "no issues")),
			turns(t, "editor", sets("the text", "text", "the text"), escalate(&session.Event{})),
		}, "the text"},
		"a judge alone": {score, []agent.Agent{turns(t, "w", sets("a: 5", "review", 5), sets("b: 9", "review", 9))}, "b: 9"},
		"a key":         {func(c *loopagent.Config) { score(c); c.Result = "plan" }, []agent.Agent{turns(t, "planner", sets("thinking", "plan", "the plan")), writer(), turns(t, "critic", sets("9", "review", 9))}, "the plan"},
		"a key of the best": {func(c *loopagent.Config) { c.Rules.Score, c.Result = &loop.Score{Key: "review"}, "draft" },
			[]agent.Agent{writer(), turns(t, "critic", sets("9", "review", 9), sets("5", "review", 5))}, "draft 1"},
		"a key with JSON": {func(c *loopagent.Config) { c.Result = "list" }, []agent.Agent{turns(t, "w", sets("done", "list", []any{"a", 1}))}, `["a",1]`},
		"a key of the iteration that was left": {func(c *loopagent.Config) { c.Result = "draft" },
			[]agent.Agent{writer(), turns(t, "critic", nil, exits("good"))}, "draft 2"},
		"a key that nobody writes": {func(c *loopagent.Config) { c.Result = "gone" }, []agent.Agent{says(t, "w", "x")}, "x"},
	} {
		root := loopOf(t, "l", 2, func(c *loopagent.Config) {
			c.OutputKey = "answer"
			if tt.more != nil {
				tt.more(c)
			}
		}, tt.subs...)
		start := root
		if name == "an editor who leaves" || name == "an editor who leaves in silence" { // there is a text to edit
			start = sequence(t, "all", turns(t, "first", sets("a text", "text", "a text")), root)
		}
		s := newStage(t, start, false)
		evs, err := s.send(t, t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		check(t, name+": answer", s.state(t, "answer"), any(tt.want))
		if last := evs[len(evs)-1]; last.Text() != tt.want && last.Content != nil {
			t.Errorf("%s: the last words are %q", name, last.Text())
		}
	}
}

// LOOP 16: the exit hands back the iteration that was left, unless the best is asked
// for.
func TestBestOnExit(t *testing.T) {
	for best, want := range map[bool]string{false: "draft 2", true: "draft 1"} {
		var rec *loop.StopRecord
		root := loopOf(t, "l", 0, func(c *loopagent.Config) {
			scored(&rec, loop.Score{})(c)
			c.OutputKey, c.Rules.BestOnExit, c.Rules.OnRegression = "answer", best, loop.RollbackOnWorse
		}, turns(t, "w", sets("draft 1", "draft", "draft 1"), sets("draft 2", "draft", "draft 2")),
			turns(t, "critic", sets("", "score", 9), sets("", "score", 5)), turns(t, "lead", nil, exits("enough")))
		s := newStage(t, root, false)
		if _, err := s.send(t, t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		check(t, "answer", s.state(t, "answer"), any(want))
		check(t, "draft", s.state(t, "draft"), any(want))
		check(t, "reason", rec.Reason, loop.ReasonExit)
	}
}

// LOOP 16, D21: a run in which nothing has worked is no success.
func TestNoIterationSucceeded(t *testing.T) {
	for name, more := range map[string]func(*loopagent.Config){
		"skip_step":      func(c *loopagent.Config) { c.Rules.OnError = loop.SkipStep },
		"next_iteration": func(c *loopagent.Config) { c.Rules.OnError = loop.NextIteration },
	} {
		var rec *loop.StopRecord
		root := loopOf(t, "l", 2, func(c *loopagent.Config) { more(c); into(&rec)(c); finalizeWith(c, "final") },
			fails(t, "w", errBroken, errBroken, errBroken), says(t, "final", "the end"))
		evs, err := play(t, root)
		if !errors.Is(err, errBroken) || len(evs) > 0 || rec.Reason != loop.ReasonError {
			t.Errorf("%s: error %v, %v, events %q", name, err, rec, lines(evs))
		}
		if at, ok := errors.AsType[*agent.StepError](err); !ok || at.Address != "l[2]/w" {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// LOOP 16: what the finalizer sees as the best fits the reason for which the loop has
// stopped: the best score may be that of an iteration that missed what the loop is to
// reach.
func TestFinalizerSeesTheBestThatFits(t *testing.T) {
	verdict := func(score float64, tests bool) map[string]any {
		return map[string]any{"score": score, "depth": score, "tests": tests}
	}
	for name, tt := range map[string]struct {
		more    func(*loopagent.Config)
		reviews []map[string]any
		want    string
	}{
		"a condition": {func(c *loopagent.Config) { c.Rules.StopWhen = &loop.Condition{Expr: "state.review.tests"} },
			[]map[string]any{verdict(9, false), verdict(7, true)}, "best.draft=draft 2 best.score=7"},
		"a condition, the best of two": {func(c *loopagent.Config) {
			c.Rules.StopWhen, c.Rules.OnRegression = &loop.Condition{Expr: "state.review.tests", For: 2}, loop.KeepBest // else the worse one is undone
		}, []map[string]any{verdict(9, false), verdict(7, true), verdict(6, true)}, "best.draft=draft 2 best.score=7"},
		"a condition within an iteration": {func(c *loopagent.Config) {
			c.Rules.StopWhen, c.Rules.StopCheck = &loop.Condition{Expr: "state.review.tests"}, loop.EachStep
		}, []map[string]any{verdict(9, false), verdict(7, true)}, "best.draft=draft 2"},
		"a target": {func(c *loopagent.Config) {
			c.Rules.Score.Target, c.Rules.Score.Dimensions, c.Rules.Score.DimensionTarget = new(7.0), []string{"depth"}, new(7.0)
		}, []map[string]any{{"score": 9, "depth": 6}, verdict(8, true)}, "best.draft=draft 2 best.score=8"},
		"a limit": {nil, []map[string]any{verdict(9, false), verdict(7, true), verdict(8, true)}, "best.draft=draft 1 best.score=9"},
	} {
		for _, policy := range []loop.Regression{loop.KeepBest, loop.RollbackOnWorse} {
			var reviews []*session.Event
			for _, r := range tt.reviews {
				reviews = append(reviews, sets("", "review", r))
			}
			root := loopOf(t, "l", 3, func(c *loopagent.Config) {
				finalizeWith(c, "final")
				c.Rules.Score, c.KeepStates, c.Rules.OnRegression = &loop.Score{Key: "review"}, true, policy
				if tt.more != nil {
					tt.more(c)
				}
			}, turns(t, "writer", sets("", "draft", "draft 1"), sets("", "draft", "draft 2"), sets("", "draft", "draft 3")),
				turns(t, "critic", reviews...), looks(t, "other", "iteration"), looks(t, "final", "best.draft", "best.score"))
			got := mustPlay(t, root)
			check(t, name+", "+string(policy), got[len(got)-1], "final: "+tt.want)
		}
	}
}
