// SPDX-License-Identifier: Apache-2.0

package parallelagent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// waiter is an agent that waits to be canceled, then takes a second to clean up
// and does what answer does.
func waiter(t *testing.T, name string, cleaned *atomic.Int64, answer func(agent.InvocationContext, yield)) agent.Agent {
	return custom(t, name, func(ctx agent.InvocationContext, yield yield) {
		defer func() {
			time.Sleep(time.Second)
			cleaned.Add(1)
		}()
		<-ctx.Done()
		if answer != nil {
			answer(ctx, yield)
		}
	})
}

var errBoom = errors.New("boom")

// T18, G2
func TestFirstErrorCancelsTheOthersAndIsYielded(t *testing.T) {
	failing := func(run func(yield)) func(*testing.T) agent.Agent {
		return func(t *testing.T) agent.Agent {
			return custom(t, "failing", func(_ agent.InvocationContext, yield yield) {
				time.Sleep(time.Second)
				run(yield)
			})
		}
	}
	for _, tt := range []struct {
		name   string
		answer func(agent.InvocationContext, yield) // of a sibling to the cancellation
		fail   func(*testing.T) agent.Agent
		panics bool
	}{
		{name: "siblings say nothing", fail: failing(func(yield yield) { yield(nil, errBoom) })},
		{
			name: "siblings fail of the cancellation", fail: failing(func(yield yield) { yield(nil, errBoom) }),
			answer: func(ctx agent.InvocationContext, yield yield) { yield(nil, ctx.Err()) },
		},
		{
			name: "siblings fail otherwise afterwards", fail: failing(func(yield yield) { yield(nil, errBoom) }),
			answer: func(_ agent.InvocationContext, yield yield) { yield(nil, errors.New("signal: killed")) },
		},
		{
			name: "siblings go on talking", fail: failing(func(yield yield) { yield(nil, errBoom) }),
			answer: func(_ agent.InvocationContext, yield yield) {
				for yield(says("..."), nil) {
				}
			},
		},
		{name: "it is a panic", fail: failing(func(yield) { panic(errBoom) }), panics: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cleaned atomic.Int64
				inner := parallel(t, "i", waiter(t, "b", &cleaned, tt.answer), tt.fail(t))
				_, errs := outcome(parallel(t, "p", waiter(t, "a", &cleaned, tt.answer), inner).Run(invocation(t.Context())))
				if len(errs) != 1 {
					t.Fatalf("got errors %v, want one", errs)
				}
				step, ok := errs[0].(*agent.StepError)
				if !ok || step.Address != "p/i/failing" || !errors.Is(step, errBoom) {
					t.Errorf("got %v, want the first error with its address", errs[0])
				}
				if _, ok := errors.AsType[*agent.PanicError](errs[0]); ok != tt.panics {
					t.Errorf("got %v", errs[0])
				}
				if cleaned.Load() != 2 {
					t.Errorf("%d of 2 siblings had cleaned up when the run was over", cleaned.Load())
				}
			})
		})
	}
}

// T20
func TestCanceledFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var cleaned atomic.Int64
		fail := func(ctx agent.InvocationContext, yield yield) { yield(nil, errors.New("because of that")) }
		time.AfterFunc(time.Second, func() { cancel(errBoom) })
		_, errs := outcome(parallel(t, "p", waiter(t, "a", &cleaned, nil), waiter(t, "b", &cleaned, fail)).Run(invocation(ctx)))
		if len(errs) != 1 || errs[0] != errBoom {
			t.Errorf("got %v, want only context.Cause", errs)
		}
		if cleaned.Load() != 2 {
			t.Errorf("%d of 2 had cleaned up when the run was over", cleaned.Load())
		}
	})
}

// G9, T20: in a durable run every step that began has its end in the log,
// however the run ended.
func TestEveryStepThatBeganHasItsEndInTheLog(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(cancel context.CancelCauseFunc, yield yield)
	}{
		{"canceled", func(cancel context.CancelCauseFunc, _ yield) { cancel(errBoom) }},
		{"failed", func(_ context.CancelCauseFunc, yield yield) { yield(nil, errBoom) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 50 { // many interleavings
				svc := session.InMemoryService()
				ctx, cancel := context.WithCancelCause(t.Context())
				ender := custom(t, "ender", func(_ agent.InvocationContext, yield yield) {
					if yield(says("one"), nil) {
						tt.end(cancel, yield)
					}
				})
				endless := func(name string) agent.Agent {
					return custom(t, name, func(_ agent.InvocationContext, yield yield) {
						for yield(says("..."), nil) {
						}
					})
				}
				r, err := runner.New(runner.Config{
					AppName: "app", Agent: parallel(t, "p", ender, endless("a"), parallel(t, "i", endless("b"), endless("c"))),
					SessionService: svc, AutoCreateSession: true, Durable: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, errs := outcome(r.Run(ctx, "ana", "s1", nil, agent.RunConfig{})); len(errs) != 1 || !errors.Is(errs[0], errBoom) {
					t.Errorf("got errors %v", errs)
				}
				cancel(nil)
				if open := openSteps(t, svc); len(open) > 0 {
					t.Fatalf("steps without an end: %q", open)
				}
			}
		})
	}
}

// openSteps lists the steps that began and did not end.
func openSteps(t *testing.T, svc session.Service) []session.Address {
	t.Helper()
	resp, err := svc.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	var open []session.Address
	for ev := range resp.Session.Events().All() {
		switch {
		case ev.Mark == nil:
		case ev.Mark.Kind == mark.KindStepStarted:
			open = append(open, ev.Address)
		case ev.Mark.Kind == mark.KindStepFinished:
			open = slices.DeleteFunc(open, func(a session.Address) bool { return a == ev.Address })
		}
	}
	return open
}

// T19
func TestLeavingAwaitsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cleaned atomic.Int64
		told := true
		a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
			time.Sleep(time.Second) // until the others are at work
			told = yield(says("one"), nil)
		})
		for range parallel(t, "p", a, waiter(t, "b", &cleaned, nil), parallel(t, "i", waiter(t, "c", &cleaned, nil))).Run(invocation(t.Context())) {
			break
		}
		if told {
			t.Error("the agent whose event it was is not told")
		}
		if cleaned.Load() != 2 {
			t.Errorf("%d of 2 had cleaned up when the run was over", cleaned.Load())
		}
	})
}

// T19: nobody waits for them any more.
func TestSubAgentsThatHaveNotBegunAreNotStarted(t *testing.T) {
	var began atomic.Int64
	var subs []agent.Agent
	for i := range 5 {
		subs = append(subs, custom(t, fmt.Sprint("a", i), func(_ agent.InvocationContext, yield yield) {
			began.Add(1)
			yield(says("one"), nil)
		}))
	}
	for range limited(t, "p", 1, subs...).Run(invocation(t.Context())) {
		break
	}
	if began.Load() != 1 {
		t.Errorf("%d of 5 began, and the consumer had stopped at the first event", began.Load())
	}
}

// T19: the same when the consumer does not leave in peace.
func TestPanicOfTheConsumerAwaitsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cleaned atomic.Int64
		a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
			time.Sleep(time.Second) // until the other is at work
			yield(says("one"), nil)
		})
		func() {
			defer func() {
				if r := recover(); r != "mine" {
					t.Errorf("got panic %v", r)
				}
			}()
			for range parallel(t, "p", parallel(t, "i", a), waiter(t, "b", &cleaned, nil)).Run(invocation(t.Context())) {
				panic("mine")
			}
		}()
		if cleaned.Load() != 1 {
			t.Error("the sibling had not cleaned up when the run was over")
		}
	})
}

// An agent in a test that calls t.Fatal must not hang its siblings.
func TestAgentThatLeavesItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cleaned atomic.Int64
		leaver := custom(t, "leaver", func(agent.InvocationContext, yield) {
			time.Sleep(time.Second)
			runtime.Goexit()
		})
		_, errs := outcome(parallel(t, "p", leaver, waiter(t, "b", &cleaned, nil)).Run(invocation(t.Context())))
		const left = `agent "leaver" (p/leaver): the agent ended its goroutine by runtime.Goexit; it must return instead`
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), left) || cleaned.Load() != 1 {
			t.Errorf("got %v; %d cleaned up", errs, cleaned.Load())
		}
	})
}

// T3, C20: a request to leave a loop around lets the siblings finish.
func TestExitLetsTheOthersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaver := custom(t, "leaver", func(_ agent.InvocationContext, yield yield) {
			ev := says("enough")
			ev.Actions.Escalate = true
			yield(ev, nil)
		})
		slow := custom(t, "slow", func(_ agent.InvocationContext, yield yield) {
			time.Sleep(time.Minute)
			yield(says("done"), nil)
		})
		said, errs := outcome(parallel(t, "p", leaver, slow).Run(invocation(t.Context())))
		if diff := cmp.Diff([]string{"leaver: enough", "slow: done"}, said); diff != "" || errs != nil {
			t.Errorf("(-want +got):\n%s%v", diff, errs)
		}
	})
}

// T19: outside a bubble, with real goroutines and in every place.
func TestNoGoroutineIsLeft(t *testing.T) {
	running := goleak.IgnoreCurrent()
	defer func() {
		if err := leaktest.Find(running); err != nil {
			t.Error(err)
		}
	}()
	var subs []agent.Agent
	for i := range 8 {
		subs = append(subs, speaker(t, fmt.Sprint("a", i), "one", "two", "three"))
	}
	p := limited(t, "p", 3, subs...)
	for n := range 24 {
		for range p.Run(invocation(t.Context())) {
			if n--; n < 0 {
				break
			}
		}
	}
}
