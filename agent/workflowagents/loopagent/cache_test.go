// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// cachedBy keeps what a step says, by a name that lookup finds.
func cachedBy(rec **loop.StopRecord, step, key string) func(*loopagent.Config) {
	return func(c *loopagent.Config) {
		into(rec)(c)
		c.Caches = map[string]loopagent.Cache{step: {Key: func(lookup func(string) (any, bool)) (string, error) {
			v, ok := lookup(key)
			if !ok {
				return "", nil
			}
			return fmt.Sprint(v), nil
		}}}
	}
}

// counts is an agent that says how often it has run.
func counts(t testing.TB, name string, runs *int) agent.Agent {
	return does(t, name, func(_ agent.InvocationContext, say say) error {
		*runs++
		say(sets(fmt.Sprint("run ", *runs), "made", *runs))
		return nil
	})
}

// O1, O2, O3, LOOP 24: a step whose key is the same is not run again, and its
// events are said once more; another key runs it.
func TestCache(t *testing.T) {
	var rec *loop.StopRecord
	runs := 0
	root := loopOf(t, "l", 5, cachedBy(&rec, "check", "input"),
		turns(t, "input", sets("", "input", "a"), nil, sets("", "input", "b"), sets("", "input", "a"), sets("", "input", nil)),
		counts(t, "check", &runs), looks(t, "look", "made"))
	evs, err := play(t, root)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", addressed(evs), []string{
		"l[1]/input: ", "l[1]/check: run 1", "l[1]/look: made=1",
		"l[2]/check: run 1", "l[2]/look: made=1",
		"l[3]/input: ", "l[3]/check: run 2", "l[3]/look: made=2",
		"l[4]/input: ", "l[4]/check: run 1", "l[4]/look: made=1", // its state too
		"l[5]/input: ", "l[5]/check: run 3", "l[5]/look: made=3", // no key
	})
	check(t, "runs", runs, 3)
	check(t, "hits", rec.CacheHits, 2)
	var cached []string
	for _, ev := range evs {
		if ev.CustomMetadata["cached"] == true {
			cached = append(cached, string(ev.Address))
			if ev.InvocationID == "" || ev.Iteration == 0 || ev.Attempt != 1 || ev.Author != "check" {
				t.Errorf("event %+v", ev)
			}
		}
	}
	check(t, "cached", cached, []string{"l[2]/check", "l[4]/check"})
	if evs[1].CustomMetadata != nil || evs[1].Seq == evs[3].Seq || evs[1].ID == evs[3].ID {
		t.Errorf("the first event has become the second: %+v, %+v", evs[1], evs[3])
	}
}

// O3: an outcome is good for so long.
func TestCacheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec *loop.StopRecord
		runs := 0
		mustPlay(t, loopOf(t, "l", 6, func(c *loopagent.Config) {
			c.Rules.DelayBefore = loop.Duration(10 * time.Second)
			cachedBy(&rec, "check", "user_input")(c)
			own := c.Caches["check"]
			own.TTL = 25 * time.Second
			c.Caches["check"] = own
		}, counts(t, "check", &runs)))
		check(t, "runs", runs, 2)
		check(t, "hits", rec.CacheHits, 4)
	})
}

// A cache belongs to one run of the loop.
func TestCacheDoesNotOutliveTheRun(t *testing.T) {
	var rec *loop.StopRecord
	runs := 0
	mustPlay(t, repeat(t, "outer", 2, loopOf(t, "l", 2, cachedBy(&rec, "check", "user_input"), counts(t, "check", &runs))))
	check(t, "runs", runs, 2)
}

// LOOP 24: a failure is not kept, be it an error, a panic or a timeout; nor is a
// request to leave, followed or not; nor what a key could not be made for.
func TestWhatIsNotCached(t *testing.T) {
	for name, act := range map[string]func(ctx agent.InvocationContext, say say) error{
		"error":   func(_ agent.InvocationContext, say say) error { say(words("half")); return errBroken },
		"panic":   func(agent.InvocationContext, say) error { panic("oh") },
		"timeout": func(ctx agent.InvocationContext, _ say) error { <-ctx.Done(); return ctx.Err() },
		"refused": func(_ agent.InvocationContext, say say) error { say(exits("x")); return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var rec *loop.StopRecord
			runs := 0
			mustPlay(t, loopOf(t, "l", 3, func(c *loopagent.Config) {
				cachedBy(&rec, "check", "user_input")(c)
				c.Rules.CanExit, c.Rules.OnError = []string{"other"}, loop.SkipStep
				c.Rules.Steps = []loop.Step{{Name: "check", Timeout: loop.Duration(time.Second)}}
			}, does(t, "check", func(ctx agent.InvocationContext, say say) error {
				if runs++; runs == 1 {
					return act(ctx, say)
				}
				say(words("fine"))
				return nil
			}), says(t, "other", "x")))
			check(t, name+": runs", runs, 2)
			check(t, name+": hits", rec.CacheHits, 1)
		})
	}
	t.Run("key", func(t *testing.T) {
		runs := 0
		mustPlay(t, loopOf(t, "l", 3, func(c *loopagent.Config) {
			c.Caches = map[string]loopagent.Cache{"check": {Key: func(func(string) (any, bool)) (string, error) {
				return "x", errBroken
			}}}
		}, counts(t, "check", &runs)))
		check(t, "runs", runs, 3)
	})
}

// What is said again comes from where it came from: the steps in it keep their
// places below, and iteration: keys are those of the new iteration.
func TestCachedStepOfManySteps(t *testing.T) {
	var rec *loop.StopRecord
	evs, err := play(t, loopOf(t, "l", 2, cachedBy(&rec, "seq", "user_input"),
		sequence(t, "seq", turns(t, "a", sets("x", "iteration:note", 1)), repeat(t, "inner", 2, says(t, "b", "y"))),
		looks(t, "look", "iteration:note")))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", addressed(evs), []string{
		"l[1]/seq/a: x", "l[1]/seq/inner[1]/b: y", "l[1]/seq/inner[2]/b: y", "l[1]/look: iteration:note=1",
		"l[2]/seq/a: x", "l[2]/seq/inner[1]/b: y", "l[2]/seq/inner[2]/b: y", "l[2]/look: iteration:note=1",
	})
	var iterations []int
	for _, ev := range evs {
		iterations = append(iterations, ev.Iteration)
	}
	check(t, "iterations", iterations, []int{1, 1, 2, 1, 2, 1, 2, 2})
}

// In a durable run a cached step has its marks, as if it had run.
func TestMarksOfACachedStep(t *testing.T) {
	var rec *loop.StopRecord
	runs := 0
	s := newStage(t, loopOf(t, "l", 2, cachedBy(&rec, "check", "user_input"), counts(t, "check", &runs)), true)
	evs, err := s.send(t, t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	balanced(t, evs)
	var got []string
	for _, line := range addressed(s.log(t)) {
		if len(line) > 10 && line[:10] == "l[2]/check" {
			got = append(got, line)
		}
	}
	check(t, "log", got, []string{"l[2]/check step_started", "l[2]/check: run 1", "l[2]/check step_finished"})
}

// What was used for a cached outcome is not counted twice.
func TestCachedStepUsesNothing(t *testing.T) {
	var rec *loop.StopRecord
	var made atomic.Int64
	mustPlay(t, loopOf(t, "l", 4, func(c *loopagent.Config) {
		cachedBy(&rec, "a", "user_input")(c)
		c.Rules.Budget = &loop.Budget{Calls: 2}
	}, spends(t, "a", 1, &made)))
	check(t, "calls", made.Load(), int64(1))
	check(t, "usage", rec.Usage.Calls, int64(1))
	check(t, "hits", rec.CacheHits, 3)
	check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
}

// T19, T20: a consumer may leave or cancel while events are said again.
func TestLeavingACachedStep(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for n := 1; n <= 7; n++ {
			var rec *loop.StopRecord
			ctx, cancel := context.WithCancelCause(t.Context())
			ran := 0
			root := loopOf(t, "l", 2, cachedBy(&rec, "a", "user_input"), says(t, "a", "x", "y", "z"), does(t, "b", func(agent.InvocationContext, say) error {
				ran++
				return nil
			}))
			s := newStage(t, root, durable)
			seen := 0
			var err error
			for ev, e := range s.Run(ctx, "ana", "s1", words("go").Content, agent.RunConfig{}) {
				if err = e; e != nil || ev.Mark != nil {
					continue
				}
				if seen++; seen == n {
					cancel(errEnough)
				}
			}
			if want := errors.Is(err, errEnough); want != (n <= 6) || seen > n {
				t.Errorf("canceled at %d: error %v, %d events", n, err, seen)
			}
			balanced(t, s.log(t))
			for _, ev := range s.log(t) {
				if ev.Mark == nil || ev.Mark.Kind != mark.KindStepFinished || ev.Address != "l[2]/a" {
					continue
				}
				var f mark.StepFinished
				if err := ev.Mark.Decode(&f); err != nil {
					t.Fatal(err)
				}
				check(t, "error in the mark", f.Error != "", n <= 6)
			}
			cancel(nil)

			s, seen, ran = newStage(t, root, durable), 0, 0
			for ev := range s.Run(t.Context(), "ana", "s1", words("go").Content, agent.RunConfig{}) {
				if ev.Mark == nil {
					seen++
				}
				if seen == n {
					break
				}
			}
			check(t, "runs of the other step", ran, min(n-1, 6)/3)
		}
	}
}

// F3: an iteration can run out of time while nothing of it runs that could be
// stopped, as when the consumer is slow; then it ends between two steps.
func TestIterationTimeoutBetweenSteps(t *testing.T) {
	for _, policy := range []loop.ErrorPolicy{"", loop.StopOnError} {
		synctest.Test(t, func(t *testing.T) {
			var rec *loop.StopRecord
			root := loopOf(t, "l", 2, func(c *loopagent.Config) {
				cachedBy(&rec, "a", "user_input")(c)
				c.Rules.IterationTimeout, c.Rules.OnError = loop.Duration(5*time.Second), policy
			}, says(t, "a", "x"), says(t, "b", "y"))
			var got []string
			var err error
			for ev, e := range newStage(t, root, false).Run(t.Context(), "ana", "s1", words("go").Content, agent.RunConfig{}) {
				if err = e; e != nil {
					continue
				}
				if got = append(got, ev.Text()); ev.Iteration == 2 {
					time.Sleep(5 * time.Second)
				}
			}
			check(t, "events", got, []string{"x", "y", "x", "y"}) // the last is its result
			check(t, "timeouts", rec.Timeouts, 1)
			if policy == loop.StopOnError {
				check(t, "timeout", *timeoutOf(t, err), loopagent.TimeoutError{Kind: loop.IterationTimeout, After: 5 * time.Second})
				check(t, "error", err.Error(), `agent "l" (l): the iteration took longer than 5s`)
			} else if err != nil {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A cache needs a key.
func TestCacheNeedsAKey(t *testing.T) {
	_, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "x")}},
		Caches:      map[string]loopagent.Cache{"a": {}},
	})
	if want := `loop agent "l": the cache of "a" has no Key; set one`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
