// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Callbacks watch each iteration, in order, inside those of the agent.
func TestIterationCallbacksRunInOrder(t *testing.T) {
	var got []string
	note := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	before := func(name string) loopagent.BeforeIterationCallback {
		return func(ctx agent.Context, n int) error { note("%s %d of %s", name, n, ctx.AgentName()); return nil }
	}
	after := func(name string) loopagent.AfterIterationCallback {
		return func(_ agent.Context, it loop.IterationRecord) error {
			note("%s %d complete %v", name, it.Number, it.Complete)
			return nil
		}
	}
	root := loopOf(t, "refine", 3, func(c *loopagent.Config) {
		c.AgentConfig.BeforeAgentCallbacks = []agent.BeforeAgentCallback{func(agent.Context) (*genai.Content, error) { note("begin"); return nil, nil }}
		c.AgentConfig.AfterAgentCallbacks = []agent.AfterAgentCallback{func(agent.Context) (*genai.Content, error) { note("end"); return nil, nil }}
		c.BeforeIteration = []loopagent.BeforeIterationCallback{before("b1"), before("b2")}
		c.AfterIteration = []loopagent.AfterIterationCallback{after("a1"), after("a2")}
		c.OnStop = func(_ agent.InvocationContext, r *loop.StopRecord) { note("stop %s", r.Reason) }
	}, does(t, "step", func(_ agent.InvocationContext, say say) error {
		note("step")
		if len(got) > 8 {
			say(exits("enough"))
		}
		return nil
	}), says(t, "last", "x"))
	mustPlay(t, root)
	check(t, "order", got, []string{
		"begin",
		"b1 1 of refine", "b2 1 of refine", "step", "a1 1 complete true", "a2 1 complete true",
		"b1 2 of refine", "b2 2 of refine", "step", "a1 2 complete false", "a2 2 complete false",
		"stop exit_loop", "end",
	})
}

// What they change of the state becomes an event of the loop.
func TestIterationCallbacksChangeState(t *testing.T) {
	root := loopOf(t, "refine", 2, func(c *loopagent.Config) {
		c.KeepStates = true
		c.BeforeIteration = []loopagent.BeforeIterationCallback{func(ctx agent.Context, n int) error {
			return ctx.State().Set("topic", n)
		}}
		c.AfterIteration = []loopagent.AfterIterationCallback{func(ctx agent.Context, it loop.IterationRecord) error {
			return ctx.State().Set("done", it.Number)
		}}
	}, looks(t, "look", "topic", "done", "prev.topic", "prev.done"))
	s := newStage(t, root, false)
	evs, err := s.send(t, t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", addressed(evs), []string{
		"refine: ", "refine[1]/look: topic=1", "refine: ",
		"refine: ", "refine[2]/look: topic=2 done=1 prev.topic=1 prev.done=1", "refine: ",
	})
	check(t, "delta", evs[0].Actions.StateDelta, map[string]any{"topic": 1.0})
	check(t, "author", evs[0].Author, "refine")
	check(t, "state", s.state(t, "done"), any(2.0))
}

// An error of theirs ends the loop, which says so as for any other error.
func TestIterationCallbackErrorEndsTheLoop(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for _, when := range []string{"before", "after"} {
			for _, n := range []int{1, 2} {
				var rec *loop.StopRecord
				fail := func(at int) error {
					if at == n {
						return errBroken
					}
					return nil
				}
				root := loopOf(t, "refine", 2, func(c *loopagent.Config) {
					into(&rec)(c)
					if when == "before" {
						c.BeforeIteration = []loopagent.BeforeIterationCallback{func(_ agent.Context, at int) error { return fail(at) }}
					} else {
						c.AfterIteration = []loopagent.AfterIterationCallback{func(_ agent.Context, it loop.IterationRecord) error { return fail(it.Number) }}
					}
				}, says(t, "step", "x"))
				s := newStage(t, root, durable)
				_, err := s.send(t, t.Context(), "go")
				const want = `agent "refine" (refine): iteration callback: broken`
				if !errors.Is(err, errBroken) || err.Error() != want {
					t.Errorf("%s %d: error %v", when, n, err)
				}
				if rec == nil || rec.Reason != loop.ReasonError || rec.Detail != "iteration callback: broken" {
					t.Fatalf("%s %d: stopped by %+v", when, n, rec)
				}
				complete := n
				if when == "before" {
					complete--
				}
				check(t, "complete iterations", rec.Iterations, complete)
				check(t, "loop_stopped marks", count(s.log(t), mark.KindLoopStopped), map[bool]int{true: 1}[durable])
			}
		}
	}
}

func count(evs []*session.Event, kind mark.Kind) int {
	n := 0
	for _, ev := range evs {
		if ev.Mark != nil && ev.Mark.Kind == kind {
			n++
		}
	}
	return n
}

// A first callback's error keeps the second from running.
func TestSecondCallbackDoesNotRunAfterAnError(t *testing.T) {
	root := loopOf(t, "refine", 2, func(c *loopagent.Config) {
		c.BeforeIteration = []loopagent.BeforeIterationCallback{
			func(agent.Context, int) error { return errBroken },
			func(agent.Context, int) error { t.Error("ran"); return nil },
		}
	}, says(t, "step", "never"))
	evs, err := play(t, root)
	check(t, "events", len(evs), 0)
	if !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}

// OnStop is told before the loop's last words, and can see the state.
func TestOnStopComesBeforeTheLastWords(t *testing.T) {
	var seen int
	var draft any
	root := loopOf(t, "refine", 3, func(c *loopagent.Config) {
		c.Rules.Score = &loop.Score{Key: "score"}
		c.OnStop = func(ctx agent.InvocationContext, _ *loop.StopRecord) {
			seen = ctx.Session().Events().Len()
			draft, _ = ctx.Session().State().Get("score")
		}
	}, drafts(t, "w", "score", 9, 8, 7))
	check(t, "events", mustPlay(t, root), []string{"w: draft 1", "w: draft 2", "w: draft 3", "refine: draft 1"})
	check(t, "events at the stop", seen, 4) // with the user's message
	check(t, "score at the stop", draft, any(7.0))
}

// F1, LOOP 21: the time of callbacks is the loop's. One that takes what is left of
// it is cut off, and the loop stops for want of time, not for an error.
func TestIterationCallbacksTakeTheLoopsTime(t *testing.T) {
	sleeps := func(ctx context.Context, d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, tt := range []struct {
		name          string
		before, after time.Duration
		took          time.Duration
		want          []string
		iterations    int
	}{
		{"in time", time.Second, 2 * time.Second, 12 * time.Second, []string{"step: done", "step: done", "step: done"}, 3},
		{"too slow before", 11 * time.Second, 0, 20 * time.Second, []string{"step: done"}, 1},
		{"too slow after", 0, time.Minute, 20 * time.Second, []string{"step: done"}, 1},
		{"too slow at once", time.Minute, 0, 20 * time.Second, nil, 0},
		{"nothing left for the step", 9500 * time.Millisecond, 0, 20 * time.Second, []string{"step: done"}, 1},
	} {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, durable %v", tt.name, durable), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var rec *loop.StopRecord
					start := time.Now()
					s := newStage(t, loopOf(t, "refine", 3, func(c *loopagent.Config) {
						into(&rec)(c)
						c.Rules.Timeout, c.Rules.IterationTimeout = loop.Duration(20*time.Second), loop.Duration(10*time.Second)
						c.BeforeIteration = []loopagent.BeforeIterationCallback{func(ctx agent.Context, _ int) error { return sleeps(ctx, tt.before) }}
						c.AfterIteration = []loopagent.AfterIterationCallback{func(ctx agent.Context, _ loop.IterationRecord) error { return sleeps(ctx, tt.after) }}
					}, takes(t, "step", time.Second, time.Second, time.Second)), durable)
					evs, err := s.send(t, t.Context(), "go")
					if err != nil {
						t.Fatal(err)
					}
					check(t, "words", stepOutput(evs), tt.want)
					check(t, "took", time.Since(start), tt.took)
					check(t, "iterations", rec.Iterations, tt.iterations)
					reason := loop.ReasonTimeout
					if tt.iterations == 3 {
						reason = loop.ReasonMaxIterations
					}
					check(t, "reason", rec.Reason, reason)
					check(t, "elapsed", rec.Elapsed >= tt.took-tt.after, true)
				})
			})
		}
	}
}

// spoken is lines without marks.
func stepOutput(evs []*session.Event) []string {
	return lines(slices.DeleteFunc(slices.Clone(evs), func(ev *session.Event) bool { return ev.Mark != nil }))
}
