// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
)

// spends is an agent that makes model calls of 100 tokens each, as far as its
// budget lets it, and counts them.
func spends(t testing.TB, name string, calls int, made *atomic.Int64) agent.Agent {
	return does(t, name, func(ctx agent.InvocationContext, say say) error {
		for range calls {
			room, err := drive.At(ctx).Budget().Reserve(budget.Request{Model: "m", InputTokens: 60, OutputTokens: 40})
			if err != nil {
				return err
			}
			made.Add(1)
			room.Commit(budget.Usage{InputTokens: 60, OutputTokens: 40})
		}
		say(words("spent"))
		return nil
	})
}

// limited gives a loop a budget, and keeps its stop record.
func limited(rec **loop.StopRecord, b loop.Budget) func(*loopagent.Config) {
	return func(c *loopagent.Config) {
		into(rec)(c)
		c.Rules.Budget = &b
	}
}

// prices make a call of spends cost 1.
var prices = budget.Prices{"m": {Input: 10_000, Output: 10_000}}

// F10, LOOP 23: a loop stops before a call that does not fit in its budget, and
// hands back what it has.
func TestBudgetStopsTheLoop(t *testing.T) {
	for _, tt := range []struct {
		name     string
		budget   loop.Budget
		made     int64
		complete int
		detail   string
	}{
		{"calls, spent when an iteration ends", loop.Budget{Calls: 4}, 4, 2, "4 of 4 calls used"},
		{"calls, in the middle", loop.Budget{Calls: 5}, 5, 2, `agent "b" (l[3]/b): budget of 5 calls of "l" is spent (5 used, 1 asked): raise its budget.calls`},
		{"tokens", loop.Budget{Tokens: 350}, 3, 1, `agent "b" (l[2]/b): budget of 350 tokens of "l" is spent (300 used, 100 asked): raise its budget.tokens`},
		{"cost", loop.Budget{Cost: new(5.5)}, 5, 2, `agent "b" (l[3]/b): budget of 5.5 (cost) of "l" is spent (5 used, 1 asked): raise its budget.cost`},
		{"too small for one", loop.Budget{Tokens: 99}, 0, 0, `agent "a" (l[1]/a): budget of 99 tokens of "l" is too small for the call (0 used, 100 asked): raise its budget.tokens`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var rec *loop.StopRecord
			var made atomic.Int64
			s := newStage(t, loopOf(t, "l", 0, func(c *loopagent.Config) {
				limited(&rec, tt.budget)(c)
				c.OutputKey = "result"
			}, spends(t, "a", 1, &made), spends(t, "b", 1, &made)), false)
			s.cfg.Prices = prices
			_, err := s.send(t, t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			check(t, "calls", made.Load(), tt.made)
			check(t, "reason", rec.Reason, loop.ReasonBudget)
			check(t, "detail", rec.Detail, tt.detail)
			check(t, "complete", rec.Iterations, tt.complete)
			if tt.complete > 0 {
				check(t, "result", s.state(t, "result"), any("spent"))
			}
			check(t, "usage", used(rec.Usage), fmt.Sprintf("%d calls, %d tokens, %d", tt.made, tt.made*100, tt.made))
		})
	}
}

// used has usage as calls, tokens and cost.
func used(u loop.Usage) string {
	cost := "0"
	if u.Cost != nil {
		cost = fmt.Sprint(*u.Cost)
	} else if u.Calls > 0 {
		cost = "unknown"
	}
	return fmt.Sprintf("%d calls, %d tokens, %s", u.Calls, u.InputTokens+u.OutputTokens, cost)
}

// LOOP 23: a loop's budget is for all in it. An inner loop that it stops ends the
// outer one too, which does not begin again and again.
func TestBudgetIsSharedDownward(t *testing.T) {
	for _, b := range []loop.Budget{{Calls: 5}, {Tokens: 550}} {
		for _, durable := range []bool{false, true} {
			var rec, inner *loop.StopRecord
			var made atomic.Int64
			s := newStage(t, loopOf(t, "outer", 0, limited(&rec, b),
				sequence(t, "seq", loopOf(t, "inner", 2, into(&inner), spends(t, "a", 1, &made)), says(t, "b", "x"))), durable)
			evs, err := s.send(t, t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			check(t, "calls", made.Load(), int64(5))
			check(t, "inner reason", inner.Reason, loop.ReasonBudget)
			check(t, "reason", rec.Reason, loop.ReasonBudget)
			check(t, "result", rec.Result, loop.Result{Source: loop.FromLast, Iteration: 2})
			check(t, "usage", rec.Usage.Calls, int64(5))
			check(t, "inner usage", inner.Usage.Calls, int64(1))
			balanced(t, evs)
		}
	}
}

// A budget of an inner loop ends that loop alone.
func TestBudgetOfAnInnerLoop(t *testing.T) {
	var rec, inner *loop.StopRecord
	var made atomic.Int64
	got := mustPlay(t, loopOf(t, "outer", 2, into(&rec), loopOf(t, "inner", 0, limited(&inner, loop.Budget{Calls: 3}),
		spends(t, "a", 2, &made)), says(t, "b", "x")))
	check(t, "events", got, []string{"a: spent", "b: x", "a: spent", "b: x"})
	check(t, "calls", made.Load(), int64(6)) // each time afresh
	check(t, "inner reason", inner.Reason, loop.ReasonBudget)
	check(t, "inner usage", inner.Usage.Calls, int64(3))
	check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
	check(t, "usage", rec.Usage.Calls, int64(6))
}

// Of three loops the one whose budget is spent stops, and those in it.
func TestBudgetOfTheMiddleLoop(t *testing.T) {
	var outer, middle, inner *loop.StopRecord
	var made atomic.Int64
	mustPlay(t, loopOf(t, "outer", 2, into(&outer), loopOf(t, "middle", 0, limited(&middle, loop.Budget{Calls: 3}),
		parallel(t, "par", loopOf(t, "inner", 0, into(&inner), spends(t, "a", 1, &made))))))
	check(t, "calls", made.Load(), int64(6))
	check(t, "reasons", []loop.StopReason{outer.Reason, middle.Reason, inner.Reason},
		[]loop.StopReason{loop.ReasonMaxIterations, loop.ReasonBudget, loop.ReasonBudget})
	check(t, "usage", []int64{outer.Usage.Calls, middle.Usage.Calls, inner.Usage.Calls}, []int64{6, 3, 3})
}

// F10: parallel branches share it, and together stay within it.
func TestBudgetOfParallelBranches(t *testing.T) {
	for range 20 {
		var rec *loop.StopRecord
		var made atomic.Int64
		mustPlay(t, loopOf(t, "l", 0, limited(&rec, loop.Budget{Calls: 25}), parallel(t, "par",
			spends(t, "a", 2, &made), spends(t, "b", 3, &made), repeat(t, "c", 2, spends(t, "d", 1, &made)),
			sequence(t, "e", spends(t, "f", 1, &made), spends(t, "g", 1, &made)))))
		check(t, "calls", made.Load(), int64(25))
		check(t, "reason", rec.Reason, loop.ReasonBudget)
		check(t, "usage", rec.Usage.Calls, int64(25))
	}
}

// LOOP 17: the finalizer has a share of the budget for itself, in an inner loop
// too, and what it uses is in the record.
func TestFinalizerHasBudgetLeft(t *testing.T) {
	for _, tt := range []struct {
		budget loop.Budget
		final  int // calls that the finalizer wants
		made   int64
		source loop.Source
	}{
		{loop.Budget{Calls: 10}, 1, 10, loop.FromFinalizer},
		{loop.Budget{Calls: 3}, 1, 3, loop.FromFinalizer},
		{loop.Budget{Tokens: 2000}, 2, 20, loop.FromFinalizer},
		{loop.Budget{Cost: new(20.0)}, 2, 20, loop.FromFinalizer},
		{loop.Budget{Calls: 10}, 2, 10, loop.FromLast},
	} {
		var rec *loop.StopRecord
		var made atomic.Int64
		s := newStage(t, loopOf(t, "l", 0, func(c *loopagent.Config) {
			limited(&rec, tt.budget)(c)
			finalizeWith(c, "final")
		}, spends(t, "a", 1, &made), spends(t, "final", tt.final, &made)), false)
		s.cfg.Prices = prices
		if _, err := s.send(t, t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		check(t, "calls", made.Load(), tt.made)
		check(t, "reason", rec.Reason, loop.ReasonBudget)
		check(t, "source", rec.Result.Source, tt.source)
		check(t, "usage", rec.Usage.Calls, tt.made)
	}
	t.Run("inner loop", func(t *testing.T) {
		var rec, inner *loop.StopRecord
		var made atomic.Int64
		got := mustPlay(t, loopOf(t, "outer", 0, func(c *loopagent.Config) {
			limited(&rec, loop.Budget{Calls: 10})(c)
			finalizeWith(c, "last word")
		}, loopOf(t, "inner", 0, func(c *loopagent.Config) {
			into(&inner)(c)
			finalizeWith(c, "final")
		}, spends(t, "a", 1, &made), spends(t, "final", 1, &made)), spends(t, "last word", 1, &made)))
		check(t, "last events", got[len(got)-2:], []string{"final: spent", "last word: spent"})
		check(t, "calls", made.Load(), int64(10))
		check(t, "reasons", []loop.StopReason{rec.Reason, inner.Reason}, []loop.StopReason{loop.ReasonBudget, loop.ReasonBudget})
		check(t, "sources", []loop.Source{rec.Result.Source, inner.Result.Source}, []loop.Source{loop.FromFinalizer, loop.FromFinalizer})
		check(t, "usage", []int64{rec.Usage.Calls, inner.Usage.Calls}, []int64{10, 9})
	})
}

// F10: the budget of the whole run stops the outermost loop, which is no failure.
func TestBudgetOfTheRun(t *testing.T) {
	var rec, inner *loop.StopRecord
	var made atomic.Int64
	s := newStage(t, loopOf(t, "outer", 0, into(&rec), loopOf(t, "inner", 2, into(&inner), spends(t, "a", 1, &made)), says(t, "b", "x")), false)
	s.cfg.Budget = &budget.Limits{Calls: 5}
	if _, err := s.send(t, t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	check(t, "calls", made.Load(), int64(5))
	check(t, "reasons", []loop.StopReason{rec.Reason, inner.Reason}, []loop.StopReason{loop.ReasonBudget, loop.ReasonBudget})
	check(t, "result", rec.Result, loop.Result{Source: loop.FromLast, Iteration: 2})
}

// LOOP 23: a cost that is unknown is not zero: with a limit of cost the call is
// not made, which is an error that no other attempt mends.
func TestUnknownPriceIsAnError(t *testing.T) {
	var rec *loop.StopRecord
	var made atomic.Int64
	runs := 0
	asks := spends(t, "a", 1, &made)
	_, err := play(t, loopOf(t, "l", 3, func(c *loopagent.Config) {
		again(&rec, "count", 3)(c)
		c.Rules.Budget = &loop.Budget{Cost: new(1.0)}
	}, does(t, "count", func(ctx agent.InvocationContext, say say) error {
		runs++
		for _, err := range asks.Run(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	})))
	if _, ok := errors.AsType[*budget.UnknownPriceError](err); !ok {
		t.Errorf("error %v", err)
	}
	check(t, "calls", made.Load(), int64(0))
	check(t, "runs", runs, 1)
	check(t, "reason", rec.Reason, loop.ReasonError)
}

// A call that the budget refuses is not tried again.
func TestRefusedCallIsNotTriedAgain(t *testing.T) {
	var rec *loop.StopRecord
	var made atomic.Int64
	mustPlay(t, loopOf(t, "l", 0, func(c *loopagent.Config) {
		again(&rec, "a", 3)(c)
		c.Rules.Budget = &loop.Budget{Calls: 1}
	}, spends(t, "a", 2, &made)))
	check(t, "calls", made.Load(), int64(1))
	check(t, "retries", rec.Retries, 0)
	check(t, "reason", rec.Reason, loop.ReasonBudget)
}

// The guard against runs without end is a failure, whatever the policy: a loop
// that went on would never end. It still hands back what it has.
func TestTooManyModelCallsIsAnError(t *testing.T) {
	for _, policy := range []loop.ErrorPolicy{loop.StopOnError, loop.SkipStep, loop.NextIteration} {
		var rec, outer *loop.StopRecord
		runs := 0
		s := newStage(t, loopOf(t, "outer", 0, func(c *loopagent.Config) {
			into(&outer)(c)
			c.Rules.OnError, c.OutputKey = policy, "result"
		}, loopOf(t, "l", 2, func(c *loopagent.Config) {
			again(&rec, "a", 3)(c)
			c.Rules.OnError = policy
		}, does(t, "a", func(ctx agent.InvocationContext, say say) error {
			runs++
			if err := drive.At(ctx).CountModelCall(); err != nil {
				return err
			}
			say(words("asked"))
			return nil
		}))), false)
		s.cfg.MaxLLMCalls = 5
		_, err := s.send(t, t.Context(), "go")
		if !errors.Is(err, agent.ErrTooManyModelCalls) {
			t.Errorf("%s: error %v", policy, err)
		}
		check(t, "runs", runs, 6)
		check(t, "reasons", []loop.StopReason{rec.Reason, outer.Reason}, []loop.StopReason{loop.ReasonError, loop.ReasonError})
		check(t, "result", s.state(t, "result"), any("asked"))
	}
}

// A finalizer that finds no room in the budget around its loop, or meets the
// guard, ends the loop around too: that would come back to it without end.
func TestFinalizerThatMayNotAsk(t *testing.T) {
	for _, guard := range []bool{false, true} {
		var rec, inner *loop.StopRecord
		var made atomic.Int64
		s := newStage(t, loopOf(t, "outer", 0, func(c *loopagent.Config) {
			limited(&rec, loop.Budget{Calls: 3})(c)
			c.Rules.OnError = loop.SkipStep
		}, loopOf(t, "inner", 1, func(c *loopagent.Config) {
			into(&inner)(c)
			finalizeWith(c, "final")
		}, says(t, "a", "x"), does(t, "final", func(ctx agent.InvocationContext, _ say) error {
			if guard {
				return drive.At(ctx).CountModelCall()
			}
			for range 2 {
				room, err := drive.At(ctx).Budget().Reserve(budget.Request{Model: "m"})
				if err != nil {
					return err
				}
				made.Add(1)
				room.Commit(budget.Usage{})
			}
			return nil
		}))), false)
		s.cfg.MaxLLMCalls = 3
		_, err := s.send(t, t.Context(), "go")
		check(t, "inner reason", inner.Reason, loop.ReasonMaxIterations)
		check(t, "inner source", inner.Result.Source, loop.FromLast)
		if guard {
			if !errors.Is(err, agent.ErrTooManyModelCalls) {
				t.Errorf("error %v", err)
			}
			check(t, "reason", rec.Reason, loop.ReasonError)
		} else {
			if err != nil {
				t.Errorf("error %v", err)
			}
			check(t, "calls", made.Load(), int64(3))
			check(t, "reason", rec.Reason, loop.ReasonBudget)
		}
	}
}

// F10: real agents, with a model that says what it has used.
func TestBudgetOfModelSteps(t *testing.T) {
	m, err := scripted.New(scripted.Script{Answers: []scripted.Answer{{Text: "more", Repeat: true, Usage: &scripted.Usage{Prompt: 300, Output: 20}}}})
	if err != nil {
		t.Fatal(err)
	}
	model := func(name string) agent.Agent {
		return must(t)(llmagent.New(llmagent.Config{Name: name, Model: m.Fresh(), Instruction: "Go on."}))
	}
	for _, tt := range []struct {
		budget loop.Budget
		calls  int64
	}{
		{loop.Budget{Calls: 7}, 7},
		{loop.Budget{Tokens: 5000}, 0},
	} {
		var rec *loop.StopRecord
		s := newStage(t, loopOf(t, "l", 0, func(c *loopagent.Config) {
			limited(&rec, tt.budget)(c)
			finalizeWith(c, "final")
		}, model("critic"), repeat(t, "inner", 1, model("editor")), model("final")), true)
		evs, err := s.send(t, t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		check(t, "reason", rec.Reason, loop.ReasonBudget)
		check(t, "source", rec.Result.Source, loop.FromFinalizer)
		if tt.calls > 0 {
			check(t, "calls", rec.Usage.Calls, tt.calls)
		}
		tokens := rec.Usage.InputTokens + rec.Usage.OutputTokens
		if tt.budget.Tokens > 0 && tokens > tt.budget.Tokens {
			t.Errorf("%d of %d tokens", tokens, tt.budget.Tokens)
		}
		check(t, "tokens", tokens, rec.Usage.Calls*320)
		balanced(t, evs)
	}
}
