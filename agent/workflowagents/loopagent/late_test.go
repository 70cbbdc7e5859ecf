// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// LOOP 22: from the moment of its timeout a step changes nothing: what it yields within
// the grace is dropped, its words, its changes and its request to leave. The step has
// timed out, and the loop goes on.
func TestLateEventsAreDropped(t *testing.T) {
	for _, durable := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			var rec *loop.StopRecord
			var heard []bool
			step := does(t, "inner", func(_ agent.InvocationContext, say say) error {
				heard = append(heard, say(sets("in time", "early", "set")))
				time.Sleep(1500 * time.Millisecond)
				late := exits("late")
				late.Actions.StateDelta = map[string]any{"late": "set"}
				heard = append(heard, say(late))
				return nil
			})
			root := loopOf(t, "l", 1, within(&rec, "slow", time.Second), sequence(t, "slow", step), says(t, "next", "x"))
			s := newStage(t, root, durable)
			if _, err := s.send(t, t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, ev := range s.log(t) {
				if ev.Mark == nil {
					said = append(said, ev.Text())
				}
			}
			check(t, "said", said, []string{"in time", "x"})
			check(t, "heard", heard, []bool{true, false})
			check(t, "early", s.state(t, "early"), any("set"))
			check(t, "late", s.state(t, "late"), any(nil))
			check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
			check(t, "timeouts", rec.Timeouts, 1)
			check(t, "failures", rec.Failures, 1)
		})
	}
}

// An exit in time stands, whatever the step does until its timeout (LOOP 4).
func TestExitInTimeStands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var rec *loop.StopRecord
		root := loopOf(t, "l", 3, within(&rec, "slow", time.Second), does(t, "slow", func(ctx agent.InvocationContext, say say) error {
			say(exits("done"))
			<-ctx.Done()
			return nil
		}))
		mustPlay(t, root)
		check(t, "reason", rec.Reason, loop.ReasonExit)
	})
}

// LOOP 22: a step that does not heed its context does not hold up a run that is
// canceled, whether or not it has a timeout.
func TestCanceledRunDoesNotWaitForADeafStep(t *testing.T) {
	for _, durable := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			var rec, outer *loop.StopRecord
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(errEnough) })
			start := time.Now()
			inner := loopOf(t, "inner", 2, into(&rec), deaf(t, "deaf", func(_ agent.InvocationContext, say say) { say(words("late")) }, time.Hour))
			s := newStage(t, loopOf(t, "outer", 2, into(&outer), sequence(t, "line", inner)), durable)
			evs, err := s.send(t, ctx, "go")
			if !errors.Is(err, errEnough) {
				t.Errorf("error %v", err)
			}
			if took := time.Since(start); took > 3*time.Second+100*time.Millisecond {
				t.Errorf("it took %s", took)
			}
			balanced(t, evs)
			for name, rec := range map[string]*loop.StopRecord{"inner": rec, "outer": outer} {
				if rec == nil || rec.Reason != loop.ReasonCanceled || rec.Detail != errEnough.Error() {
					t.Errorf("durable %v: %s stopped by %+v", durable, name, rec)
				}
			}
		})
	}
}

// LOOP 22: a callback that does not heed its context is left behind as a step is: it
// holds up the loop no longer than the grace, and what it does later has no effect.
func TestDeafIterationCallback(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		for _, cancels := range []bool{false, true} {
			name := fmt.Sprintf("%s, canceled %v", when, cancels)
			bubble(t, func(t *testing.T) {
				var rec *loop.StopRecord
				late := make(chan error, 9)
				callback := func(ctx agent.Context) error {
					if err := ctx.State().Set("early", 1); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Hour)
					late <- ctx.State().Set("late", 1)
					late <- ctx.Session().State().Set("late", 1)
					ctx.Actions().Escalate = true
					return errors.New("too late")
				}
				root := loopOf(t, "l", 3, func(c *loopagent.Config) {
					into(&rec)(c)
					if c.Rules.Timeout = loop.Duration(50 * time.Millisecond); cancels {
						c.Rules.Timeout = loop.Duration(time.Hour)
					}
					if when == "before" {
						c.BeforeIteration = []loopagent.BeforeIterationCallback{func(ctx agent.Context, _ int) error { return callback(ctx) }}
					} else {
						c.AfterIteration = []loopagent.AfterIterationCallback{func(ctx agent.Context, _ loop.IterationRecord) error { return callback(ctx) }}
					}
				}, says(t, "step", "x"))
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if cancels {
					time.AfterFunc(50*time.Millisecond, func() { cancel(errEnough) })
				}
				start := time.Now()
				s := newStage(t, root, true)
				_, err := s.send(t, ctx, "go")
				if took := time.Since(start); took > 2050*time.Millisecond {
					t.Errorf("%s: it took %s", name, took)
				}
				want := loop.ReasonTimeout
				if cancels {
					want = loop.ReasonCanceled
				}
				if cancels != errors.Is(err, errEnough) || !cancels && err != nil || rec == nil || rec.Reason != want {
					t.Errorf("%s: error %v, stopped by %+v", name, err, rec)
				}
				for range 2 {
					if err := <-late; err == nil {
						t.Errorf("%s: a late write has no error", name)
					}
				}
				check(t, name+": late", s.state(t, "late"), any(nil))
			})
		}
	}
}

// A panic in a callback, or in OnStop, fails the loop; the record and the result stay.
func TestPanicInACallbackKeepsTheRecord(t *testing.T) {
	for _, when := range []string{"before", "after", "stop"} {
		for _, plain := range []bool{true, false} {
			name := fmt.Sprintf("%s, plain %v", when, plain)
			var rec *loop.StopRecord
			root := loopOf(t, "l", 2, func(c *loopagent.Config) {
				if !plain {
					c.OutputKey = "result"
				}
				switch into(&rec)(c); when {
				case "before":
					c.BeforeIteration = []loopagent.BeforeIterationCallback{func(_ agent.Context, n int) error {
						if n == 2 {
							panic("boom")
						}
						return nil
					}}
				case "after":
					c.AfterIteration = []loopagent.AfterIterationCallback{func(agent.Context, loop.IterationRecord) error { panic("boom") }}
				default:
					c.OnStop = func(_ agent.InvocationContext, r *loop.StopRecord) {
						rec = r
						panic("boom")
					}
				}
			}, says(t, "step", "x"))
			s := newStage(t, root, true)
			_, err := s.send(t, t.Context(), "go")
			if p, ok := errors.AsType[*agent.PanicError](err); !ok || p.Value != "boom" {
				t.Errorf("%s: error %v", name, err)
			}
			check(t, name+": loop_stopped marks", count(s.log(t), mark.KindLoopStopped), 1)
			if !plain {
				check(t, name+": result", s.state(t, "result"), any("x"))
			}
			want := loop.ReasonError
			if when == "stop" {
				want = loop.ReasonMaxIterations
			}
			if rec == nil || rec.Reason != want {
				t.Errorf("%s: stopped by %+v", name, rec)
			}
		}
	}
}
