// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

var errEnough = errors.New("enough")

// T20, C1: a cancelled run ends with one error, the cause, between any two
// events, and the loop says why it stopped.
func TestCancelBetweenAnyTwoEvents(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for _, durable := range []bool{false, true} {
			ctx, cancel := context.WithCancelCause(t.Context())
			var rec, outer *loop.StopRecord
			root := loopOf(t, "outer", 0, into(&outer),
				says(t, "first", "a"),
				loopOf(t, "inner", 2, into(&rec), says(t, "second", "b", "c"), sequence(t, "seq", says(t, "third", "d"))))
			s := newStage(t, root, durable)
			seen := 0
			var err error
			for ev, e := range s.Run(ctx, "ana", "s1", nil, agent.RunConfig{}) {
				if err != nil {
					t.Fatalf("after the error came %v, %v", ev, e)
				}
				if err = e; e != nil || ev.Mark != nil {
					continue
				}
				if seen++; seen == n {
					cancel(errEnough)
				} else if seen > n {
					t.Errorf("after the cancellation came %q by %s", ev.Text(), ev.Author)
				}
			}
			if err != errEnough {
				t.Errorf("cancelled at event %d: error %v", n, err)
			}
			if outer == nil || outer.Reason != loop.ReasonCanceled || outer.Detail != "enough" {
				t.Errorf("cancelled at event %d: outer loop stopped by %+v", n, outer)
			}
			cancel(nil)
		}
	}
}

// T20: a step that looks at its context and reports its end.
func TestCancelDuringAStep(t *testing.T) {
	var rec *loop.StopRecord
	ctx, cancel := context.WithCancelCause(t.Context())
	root := loopOf(t, "poll", 0, into(&rec),
		says(t, "log", "x"),
		does(t, "wait", func(ctx agent.InvocationContext, _ say) error {
			cancel(errEnough)
			<-ctx.Done()
			return ctx.Err()
		}))
	evs, err := newStage(t, root, false).send(t, ctx, "go")
	check(t, "events", lines(evs), []string{"log: x"})
	if err != errEnough {
		t.Errorf("error %v", err)
	}
	check(t, "reason", rec.Reason, loop.ReasonCanceled)
	check(t, "result", rec.Result, loop.Result{Source: loop.FromPartial, Iteration: 1})
}

// C1: a loop whose steps say nothing still looks at its context.
func TestSilentInfiniteLoopEndsSoonAfterCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		root := repeat(t, "poll", 0, does(t, "look", func(agent.InvocationContext, say) error {
			time.Sleep(30 * time.Millisecond)
			return nil
		}))
		start := time.Now()
		_, err := newStage(t, root, false).send(t, ctx, "go")
		if err != context.DeadlineExceeded {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took > 1100*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
	// And one that never waits.
	ctx, cancel := context.WithCancelCause(t.Context())
	n := 0
	root := repeat(t, "spin", 0, does(t, "nothing", func(agent.InvocationContext, say) error {
		if n++; n == 100 {
			cancel(errEnough)
		}
		return nil
	}))
	if _, err := newStage(t, root, false).send(t, ctx, "go"); err != errEnough || n != 100 {
		t.Errorf("error %v after %d steps", err, n)
	}
}

// A step that ends without a word because of the cancellation, in the last
// iteration, does not make the run a success.
func TestCancelDuringTheLastStep(t *testing.T) {
	for _, more := range []func(*loopagent.Config){nil, func(c *loopagent.Config) { finalizeWith(c, "last") }} {
		ctx, cancel := context.WithCancelCause(t.Context())
		root := loopOf(t, "refine", 1, more, says(t, "editor", "x"), does(t, "last", func(agent.InvocationContext, say) error {
			cancel(errEnough)
			return nil
		}))
		evs, err := newStage(t, root, false).send(t, ctx, "go")
		check(t, "events", lines(evs), []string{"editor: x"})
		if err != errEnough {
			t.Errorf("error %v", err)
		}
	}
}

// LOOP 17: the finalizer does not run for a cancelled loop.
func TestNoFinalizerAfterCancellation(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	root := loopOf(t, "refine", 3, func(c *loopagent.Config) { finalizeWith(c, "final") },
		does(t, "editor", func(ctx agent.InvocationContext, _ say) error {
			cancel(errEnough)
			return ctx.Err()
		}), says(t, "final", "never"))
	evs, err := newStage(t, root, false).send(t, ctx, "go")
	check(t, "events", lines(evs), nil)
	if err != errEnough {
		t.Errorf("error %v", err)
	}
}

// A context that is done before the run begins runs nothing.
func TestCancelledBeforeItBegins(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	root := repeat(t, "refine", 3, says(t, "editor", "never"))
	n := 0
	for _, err := range root.Run(drive.NewInvocation(ctx, drive.Invocation{ID: "e", Session: session.NewView(session.ViewConfig{})})) {
		if err != errEnough {
			t.Errorf("error %v", err)
		}
		n++
	}
	check(t, "pairs", n, 1)
}

// A cancellation while an iteration callback is at work is no failure.
func TestCancelDuringACallback(t *testing.T) {
	var rec *loop.StopRecord
	ctx, cancel := context.WithCancelCause(t.Context())
	root := loopOf(t, "refine", 3, func(c *loopagent.Config) {
		c.AfterIteration = []loopagent.AfterIterationCallback{func(ctx agent.Context, _ loop.IterationRecord) error {
			cancel(errEnough)
			return ctx.Err()
		}}
		into(&rec)(c)
	}, says(t, "editor", "x"))
	_, err := newStage(t, root, false).send(t, ctx, "go")
	if err != errEnough {
		t.Errorf("error %v", err)
	}
	check(t, "reason", rec.Reason, loop.ReasonCanceled)
}

// A panic is worse news than a cancellation.
func TestPanicUnderACancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	root := repeat(t, "outer", 2, repeat(t, "inner", 2, does(t, "editor", func(agent.InvocationContext, say) error {
		cancel(errEnough)
		panic("oh")
	})))
	_, err := newStage(t, root, false).send(t, ctx, "go")
	if p, ok := errors.AsType[*agent.PanicError](err); !ok || p.Value != "oh" {
		t.Errorf("error %v", err)
	}
}

// A consumer that breaks ends the run; whoever is told about stops hears of it
// only if the context is over too.
func TestBreakIsNotAStop(t *testing.T) {
	var rec *loop.StopRecord
	s := newStage(t, loopOf(t, "refine", 3, into(&rec), says(t, "editor", "x")), false)
	for range s.Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		break
	}
	if rec != nil {
		t.Errorf("stopped by %+v", rec)
	}
}

// A cancelled durable run has the loops' marks in its log.
func TestCancelledLoopLeavesItsMark(t *testing.T) {
	for _, when := range []string{"between two events", "during a step"} {
		t.Run(when, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			root := repeat(t, "outer", 0, repeat(t, "refine", 0, does(t, "editor", func(_ agent.InvocationContext, say say) error {
				if when == "during a step" {
					cancel(errEnough)
					return context.Canceled
				}
				say(words("x"))
				return nil
			})))
			s := newStage(t, root, true)
			for ev, err := range s.Run(ctx, "ana", "s1", nil, agent.RunConfig{}) {
				if err == nil && ev.Mark == nil {
					cancel(errEnough)
				}
			}
			var got []string
			for _, ev := range s.log(t) {
				if ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped {
					var rec loop.StopRecord
					if err := ev.Mark.Decode(&rec); err != nil {
						t.Fatal(err)
					}
					got = append(got, rec.Loop+" "+string(rec.Reason))
				}
			}
			check(t, "stops", got, []string{"refine canceled", "outer canceled"})
		})
	}
}
