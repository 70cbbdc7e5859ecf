// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/agenttest"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// takes is an agent that needs so long, one after another, each time it runs, and
// then says "done". It heeds its context.
func takes(t testing.TB, name string, times ...time.Duration) agent.Agent {
	return does(t, name, func(ctx agent.InvocationContext, say say) error {
		var d time.Duration
		if len(times) > 0 {
			d, times = times[0], times[1:]
		}
		select {
		case <-time.After(d):
			say(words("done"))
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// within gives a step so much time, and keeps the stop record.
func within(rec **loop.StopRecord, step string, d time.Duration) func(*loopagent.Config) {
	return func(c *loopagent.Config) {
		into(rec)(c)
		c.Rules.Steps = []loop.Step{{Name: step, Timeout: loop.Duration(d)}}
	}
}

func timeoutOf(t testing.TB, err error) *loopagent.TimeoutError {
	t.Helper()
	late, ok := errors.AsType[*loopagent.TimeoutError](err)
	if !ok {
		t.Fatalf("error %v, want a *TimeoutError", err)
	}
	return late
}

// F4, F5, C13, LOOP 21: a step that takes too long fails over to the next one.
func TestStepTimeoutFailsOverToTheNextStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec *loop.StopRecord
		start := time.Now()
		root := loopOf(t, "l", 2, within(&rec, "slow", 3*time.Second), takes(t, "slow", time.Hour, time.Second), says(t, "next", "x"))
		check(t, "events", mustPlay(t, root), []string{"next: x", "slow: done", "next: x"})
		check(t, "took", time.Since(start), 4*time.Second)
		check(t, "timeouts", rec.Timeouts, 1)
		check(t, "failures", rec.Failures, 1)
		check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
	})
}

// C13, LOOP 20: with on_error stop the loop ends with an error that says which
// step it was, and how long it might have taken.
func TestStepTimeoutCanEndTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec *loop.StopRecord
		root := sequence(t, "story", loopOf(t, "l", 2, func(c *loopagent.Config) {
			within(&rec, "slow", 3*time.Second)(c)
			c.Rules.OnError = loop.StopOnError
		}, says(t, "first", "x"), takes(t, "slow", time.Hour)))
		evs, err := play(t, root)
		check(t, "events", lines(evs), []string{"first: x"})
		step, ok := err.(*agent.StepError)
		if !ok || step.Address != "story/l[1]/slow" {
			t.Fatalf("error %#v, want a *StepError of story/l[1]/slow", err)
		}
		check(t, "timeout", *timeoutOf(t, step.Err), loopagent.TimeoutError{Kind: loop.Timeout, Step: "slow", After: 3 * time.Second})
		check(t, "error", err.Error(), `agent "slow" (story/l[1]/slow): slow took longer than 3s`)
		check(t, "reason", rec.Reason, loop.ReasonError)
		if late, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err); !ok || !late.Timeout() {
			t.Errorf("%v does not say that it is a timeout", err)
		}
	})
}

// F3, LOOP 21: when the iteration's time is over, the rest of it is skipped.
func TestIterationTimeoutGoesOnWithTheNextIteration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec *loop.StopRecord
		var its []loop.IterationRecord
		start := time.Now()
		root := loopOf(t, "l", 2, func(c *loopagent.Config) {
			into(&rec)(c)
			c.Rules.IterationTimeout = loop.Duration(10 * time.Second)
			c.AfterIteration = []loopagent.AfterIterationCallback{func(_ agent.Context, it loop.IterationRecord) error {
				its = append(its, it)
				return nil
			}}
		}, takes(t, "a", 4*time.Second, time.Second), takes(t, "b", time.Hour, time.Second), says(t, "c", "x"))
		check(t, "events", mustPlay(t, root), []string{"a: done", "a: done", "b: done", "c: x"})
		check(t, "took", time.Since(start), 12*time.Second)
		check(t, "iterations", its, []loop.IterationRecord{{Number: 1, Failures: 1}, {Number: 2, Complete: true}})
		check(t, "timeouts", rec.Timeouts, 1)
		check(t, "complete", rec.Iterations, 1)
	})
}

// A21: a delay counts. What it leaves no time for is not begun.
func TestDelayCanUseUpTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := loopOf(t, "l", 1, func(c *loopagent.Config) {
			c.Rules.IterationTimeout, c.Rules.OnError = loop.Duration(5*time.Second), loop.StopOnError
			c.Rules.Steps = []loop.Step{{Name: "b", DelayBefore: loop.Duration(time.Minute)}}
		}, takes(t, "a", time.Second), says(t, "b", "never"))
		start := time.Now()
		evs, err := play(t, root)
		check(t, "events", lines(evs), []string{"a: done"})
		check(t, "timeout", *timeoutOf(t, err), loopagent.TimeoutError{Kind: loop.IterationTimeout, Step: "b"})
		check(t, "error", err.Error(), `agent "b" (l[1]/b): the iteration's time was over before b began`)
		check(t, "took", time.Since(start), 5*time.Second)
	})
}

// T13, F1, F2, F6, C27, T30: the total time stops the loop, with a reason, a
// result and no error.
func TestTotalTimeoutStopsWithAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec *loop.StopRecord
		start := time.Now()
		root := loopOf(t, "l", 0, func(c *loopagent.Config) {
			into(&rec)(c)
			c.Rules.Timeout, c.OutputKey = loop.Duration(25*time.Second), "result"
		}, takes(t, "a", 10*time.Second, 10*time.Second, 10*time.Second), says(t, "b", "x"))
		s := newStage(t, root, false)
		evs, err := s.send(t, t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		check(t, "took", time.Since(start), 25*time.Second)
		check(t, "reason", rec.Reason, loop.ReasonTimeout)
		check(t, "detail", rec.Detail, `agent "a" (l[3]/a): the loop's time was over 5s into a`)
		check(t, "result", rec.Result, loop.Result{Source: loop.FromLast, Iteration: 2})
		check(t, "complete", rec.Iterations, 2)
		check(t, "output", s.state(t, "result"), any("x"))
		check(t, "events", lines(evs), []string{"a: done", "b: x", "a: done", "b: x", "l: "})
	})
}

// LOOP 17: the finalizer has a share of the time for itself, whatever the others
// have used, and may not take more.
func TestFinalizerHasTimeLeft(t *testing.T) {
	for _, tt := range []struct {
		name    string
		reserve float64
		final   time.Duration
		took    time.Duration
		source  loop.Source
	}{
		{"a tenth", 0, 5 * time.Second, 95 * time.Second, loop.FromFinalizer},
		{"more", 0.5, 40 * time.Second, 90 * time.Second, loop.FromFinalizer},
		{"not enough", 0, time.Hour, 100 * time.Second, loop.FromLast},
	} {
		synctest.Test(t, func(t *testing.T) {
			var rec *loop.StopRecord
			start := time.Now()
			root := loopOf(t, "l", 0, func(c *loopagent.Config) {
				into(&rec)(c)
				finalizeWith(c, "final")
				c.Rules.Timeout, c.Rules.FinalizerReserve = loop.Duration(100*time.Second), tt.reserve
			}, takes(t, "a", 30*time.Second, time.Hour), takes(t, "final", tt.final))
			mustPlay(t, root)
			check(t, tt.name+": took", time.Since(start), tt.took)
			check(t, tt.name+": reason", rec.Reason, loop.ReasonTimeout)
			check(t, tt.name+": source", rec.Result.Source, tt.source)
			if failed := rec.FinalizerFailure != ""; failed != (tt.source != loop.FromFinalizer) {
				t.Errorf("%s: finalizer failure %q", tt.name, rec.FinalizerFailure)
			}
		})
	}
}

// F8, O5, LOOP 21: a step's time is made from its own history, within bounds.
func TestAdaptiveTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec *loop.StopRecord
		var slowest time.Duration
		runs := 0
		step := does(t, "probe", func(ctx agent.InvocationContext, say say) error {
			runs++
			began := time.Now()
			d := time.Duration(runs) * 100 * time.Millisecond
			if runs > 5 {
				d = time.Hour
			}
			select {
			case <-time.After(d):
			case <-ctx.Done():
				slowest = max(slowest, time.Since(began))
			}
			return ctx.Err()
		})
		mustPlay(t, loopOf(t, "l", 6, func(c *loopagent.Config) {
			into(&rec)(c)
			c.Rules.Steps = []loop.Step{{Name: "probe", AdaptiveTimeout: &loop.AdaptiveTimeout{Factor: 4, Min: time500, Max: loop.Duration(time.Minute)}}}
		}, step))
		check(t, "slowest", slowest, 2*time.Second) // four times the longest of five
		check(t, "timeouts", rec.Timeouts, 1)
	})
}

const time500 = loop.Duration(500 * time.Millisecond)

// Of several limits the shortest counts, and it is named.
func TestShortestTimeoutCounts(t *testing.T) {
	for _, tt := range []struct {
		step, iteration, total time.Duration
		kind                   string
		reason                 loop.StopReason
	}{
		{1, 2, 3, loop.Timeout, loop.ReasonError},
		{2, 1, 3, loop.IterationTimeout, loop.ReasonError},
		{3, 2, 2, loop.IterationTimeout, loop.ReasonError}, // the nearer one of two that are alike
		{2, 0, 1, loop.TotalTimeout, loop.ReasonTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			var rec *loop.StopRecord
			start := time.Now()
			root := loopOf(t, "l", 1, func(c *loopagent.Config) {
				within(&rec, "slow", tt.step*time.Second)(c)
				c.Rules.OnError, c.Rules.IterationTimeout, c.Rules.Timeout = loop.StopOnError, loop.Duration(tt.iteration*time.Second), loop.Duration(tt.total*time.Second)
			}, takes(t, "slow", time.Hour))
			_, err := play(t, root)
			check(t, "reason", rec.Reason, tt.reason)
			if tt.reason == loop.ReasonError {
				check(t, "kind", timeoutOf(t, err).Kind, tt.kind)
			} else if err != nil {
				t.Errorf("error %v", err)
			}
			limits := []time.Duration{tt.step, tt.iteration, tt.total}
			least := tt.step
			for _, l := range limits {
				if l > 0 {
					least = min(least, l)
				}
			}
			check(t, "took", time.Since(start), least*time.Second)
		})
	}
}

// A nested loop, and a parallel agent, under a limit of the loop around them:
// they end when it says so, and the loop goes on.
func TestTimedStepsOfManySteps(t *testing.T) {
	for name, slow := range map[string]func(t *testing.T) agent.Agent{
		"loop": func(t *testing.T) agent.Agent {
			return repeat(t, "slow", 0, takes(t, "a", time.Second, time.Second, time.Hour))
		},
		"timed loop": func(t *testing.T) agent.Agent {
			var rec *loop.StopRecord
			return loopOf(t, "slow", 0, within(&rec, "a", time.Minute), takes(t, "a", time.Second, time.Second, time.Hour))
		},
		"parallel": func(t *testing.T) agent.Agent {
			return parallel(t, "slow", takes(t, "a", time.Second), takes(t, "b", time.Hour), sequence(t, "s", takes(t, "c", 2*time.Second), takes(t, "d", time.Hour)))
		},
	} {
		for _, durable := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var rec *loop.StopRecord
				start := time.Now()
				root := loopOf(t, "l", 1, within(&rec, "slow", 5*time.Second), slow(t), says(t, "next", "x"))
				s := newStage(t, root, durable)
				evs, err := s.send(t, t.Context(), "go")
				if err != nil {
					t.Fatal(err)
				}
				check(t, name+" took", time.Since(start), 5*time.Second)
				var said []string
				for _, ev := range evs {
					if ev.Mark == nil {
						said = append(said, ev.Author+": "+ev.Text())
					}
				}
				check(t, name+" said", len(said), 3)
				check(t, name+" last", said[2], "next: x")
				check(t, "timeouts", rec.Timeouts, 1)
				balanced(t, evs)
			})
		}
	}
}

// balanced checks that every step that has begun has finished.
func balanced(t testing.TB, evs []*session.Event) {
	t.Helper()
	var open []string
	for _, ev := range evs {
		switch {
		case ev.Mark == nil:
		case ev.Mark.Kind == mark.KindStepStarted:
			open = append(open, string(ev.Address))
		case ev.Mark.Kind == mark.KindStepFinished:
			i := len(open) - 1
			for i >= 0 && open[i] != string(ev.Address) {
				i--
			}
			if i < 0 {
				t.Errorf("%s finished without having begun", ev.Address)
				continue
			}
			open = append(open[:i], open[i+1:]...)
		}
	}
	if len(open) > 0 {
		t.Errorf("begun and never finished: %q", open)
	}
}

// T19, T20: a cancellation from outside is one, whether a step has a limit or not.
func TestCancelDuringATimedStep(t *testing.T) {
	for _, durable := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var rec *loop.StopRecord
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(errEnough) })
			start := time.Now()
			s := newStage(t, loopOf(t, "l", 2, within(&rec, "slow", time.Minute), takes(t, "slow", time.Hour)), durable)
			evs, err := s.send(t, ctx, "go")
			if err != errEnough {
				t.Errorf("error %v", err)
			}
			check(t, "took", time.Since(start), time.Second)
			check(t, "reason", rec.Reason, loop.ReasonCanceled)
			balanced(t, evs)
			if durable {
				check(t, "stops", count(s.log(t), mark.KindLoopStopped), 1)
			}
		})
	}
}

// A loop with limits keeps the promises of every agent: it ends when its
// consumer leaves, panics or cancels, and leaves nothing running.
func TestTimedAgent(t *testing.T) {
	agenttest.TestAgent(t, func(t *testing.T) agent.Agent {
		return loopOf(t, "l", 2, func(c *loopagent.Config) {
			c.Rules.Timeout, c.Rules.IterationTimeout = loop.Duration(time.Hour), loop.Duration(time.Hour)
			c.Rules.Steps = []loop.Step{{Name: "a", Timeout: loop.Duration(time.Minute), Retry: &loop.Retry{Attempts: 2}}}
			finalizeWith(c, "final")
		}, says(t, "a", "x", "y"), parallel(t, "p", says(t, "b", "x"), repeat(t, "inner", 2, says(t, "c", "z"))), says(t, "final", "the end"))
	})
}

// A panic of a timed step is an error of the step, as without a limit.
func TestPanicOfATimedStep(t *testing.T) {
	var rec *loop.StopRecord
	_, err := play(t, loopOf(t, "l", 2, within(&rec, "a", time.Minute), does(t, "a", func(agent.InvocationContext, say) error { panic("oh") })))
	if p, ok := errors.AsType[*agent.PanicError](err); !ok || p.Value != "oh" {
		t.Errorf("error %v", err)
	}
	check(t, "reason", rec.Reason, loop.ReasonError)
}
