// SPDX-License-Identifier: Apache-2.0

package parallelagent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/agenttest"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

type yield = func(*session.Event, error) bool

func custom(t *testing.T, name string, run func(agent.InvocationContext, yield)) agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) { run(ctx, yield) }
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func speaker(t *testing.T, name string, words ...string) agent.Agent {
	t.Helper()
	return custom(t, name, func(_ agent.InvocationContext, yield yield) {
		for _, word := range words {
			if !yield(says(word), nil) {
				return
			}
		}
	})
}

func says(text string) *session.Event {
	ev := &session.Event{}
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	return ev
}

func parallel(t *testing.T, name string, subs ...agent.Agent) agent.Agent {
	t.Helper()
	return limited(t, name, 0, subs...)
}

func limited(t *testing.T, name string, limit uint, subs ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}, MaxConcurrency: limit})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func invocation(ctx context.Context) agent.InvocationContext {
	return agent.NewInvocation(ctx, agent.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{})})
}

// outcome takes a whole run; what was said comes sorted.
func outcome(seq iter.Seq2[*session.Event, error]) (said []string, errs []error) {
	said = []string{}
	for ev, err := range seq {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		said = append(said, ev.Author+": "+ev.Text())
	}
	slices.Sort(said)
	return said, errs
}

// A12, A29, E1, E2, E3
func TestAgent(t *testing.T) {
	three := func(t *testing.T) []agent.Agent {
		return []agent.Agent{speaker(t, "a", "one"), speaker(t, "b"), speaker(t, "c", "two", "three")}
	}
	for name, newAgent := range map[string]func(*testing.T) agent.Agent{
		"of one":        func(t *testing.T) agent.Agent { return parallel(t, "p", speaker(t, "a", "one")) },
		"of three":      func(t *testing.T) agent.Agent { return parallel(t, "p", three(t)...) },
		"one at a time": func(t *testing.T) agent.Agent { return limited(t, "p", 1, three(t)...) },
		"nested": func(t *testing.T) agent.Agent {
			return parallel(t, "p", parallel(t, "i", three(t)...), speaker(t, "d", "four"))
		},
	} {
		t.Run(name, func(t *testing.T) { agenttest.TestAgent(t, newAgent) })
	}
}

// A9, A10
func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  agent.Config
		want string
	}{
		{"a Run of one's own", agent.Config{Name: "p", Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] { return nil }}, "ParallelAgent doesn't allow custom Run implementations"},
		{"no name", agent.Config{}, "agent needs a name"},
		{"a sub-agent that is nil", agent.Config{Name: "p", SubAgents: []agent.Agent{nil}}, `agent "p": sub-agent 1 is nil`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parallelagent.New(parallelagent.Config{AgentConfig: tt.cfg}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// A11
func TestTypeAndConfigAreKept(t *testing.T) {
	a := limited(t, "p", 3, speaker(t, "a"))
	if got := agent.TypeOf(a); got != agent.TypeParallel {
		t.Errorf("got type %q", got)
	}
	if cfg := a.(*parallelagent.Agent).Config(); cfg.AgentConfig.Name != "p" || cfg.MaxConcurrency != 3 {
		t.Errorf("got config %+v", cfg)
	}
	if a.FindAgent("p") != a {
		t.Error("the agent does not find itself")
	}
}

// A13: branches are ADK's, so that siblings do not see each other's events.
func TestBranchesAndAddresses(t *testing.T) {
	tell := func(name string) agent.Agent {
		return custom(t, name, func(ctx agent.InvocationContext, yield yield) { yield(says(ctx.Branch()), nil) })
	}
	got := map[string]string{}
	for ev, err := range parallel(t, "p", tell("a"), parallel(t, "i", tell("b"), tell("c"))).Run(invocation(t.Context())) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Text() != ev.Branch {
			t.Errorf("the event of branch %q was said in branch %q", ev.Branch, ev.Text())
		}
		got[string(ev.Address)] = ev.Branch
	}
	want := map[string]string{"p/a": "p.a", "p/i/b": "p.i.i.b", "p/i/c": "p.i.i.c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("branches by address (-want +got):\n%s", diff)
	}
}

// E2: all are at work before any has ended.
func TestSubAgentsRunAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(name string) agent.Agent {
			return custom(t, name, func(_ agent.InvocationContext, yield yield) {
				time.Sleep(time.Second)
				yield(says("done"), nil)
			})
		}
		start := time.Now()
		said, errs := outcome(parallel(t, "p", slow("a"), slow("b"), slow("c")).Run(invocation(t.Context())))
		if len(said) != 3 || errs != nil {
			t.Errorf("got %q, %v", said, errs)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("three agents of one second took %v", took)
		}
	})
}

func TestConcurrencyIsLimited(t *testing.T) {
	for _, tt := range []struct {
		limit uint
		most  int64
		took  time.Duration
	}{{0, 6, time.Second}, {1, 1, 6 * time.Second}, {2, 2, 3 * time.Second}, {4, 4, 2 * time.Second}, {6, 6, time.Second}, {99, 6, time.Second}} {
		t.Run(fmt.Sprint(tt.limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running, most atomic.Int64
				var subs []agent.Agent
				for i := range 6 {
					subs = append(subs, custom(t, fmt.Sprint("a", i), func(_ agent.InvocationContext, yield yield) {
						most.Store(max(most.Load(), running.Add(1)))
						time.Sleep(time.Second)
						running.Add(-1)
						yield(says("done"), nil)
					}))
				}
				start := time.Now()
				said, errs := outcome(limited(t, "p", tt.limit, subs...).Run(invocation(t.Context())))
				if len(said) != 6 || errs != nil {
					t.Errorf("got %q, %v", said, errs)
				}
				if most.Load() != tt.most || time.Since(start) != tt.took {
					t.Errorf("%d ran at once for %v, want %d for %v", most.Load(), time.Since(start), tt.most, tt.took)
				}
			})
		})
	}
}

// E4, E5: a sub-agent goes on when its event is stored, and then sees it.
func TestSubAgentSeesItsOwnDeltaAfterItWasTaken(t *testing.T) {
	var subs []agent.Agent
	for i := range 4 {
		key := fmt.Sprint("k", i)
		subs = append(subs, custom(t, fmt.Sprint("a", i), func(ctx agent.InvocationContext, yield yield) {
			for n := range 20 {
				ev := says("")
				ev.Actions.StateDelta = map[string]any{key: n}
				if !yield(ev, nil) {
					return
				}
				if ev.Seq == 0 {
					yield(nil, errors.New("the event was not stored"))
					return
				}
				if v, err := ctx.Session().State().Get(key); err != nil || v != n {
					yield(nil, fmt.Errorf("%s is %v (%w), want %d", key, v, err, n))
					return
				}
			}
		}))
	}
	r, err := runner.NewInMemory("app", parallel(t, "p", subs...))
	if err != nil {
		t.Fatal(err)
	}
	if said, errs := outcome(r.Run(t.Context(), "ana", "s1", nil, agent.RunConfig{})); errs != nil || len(said) != 80 {
		t.Errorf("got %d events, %v", len(said), errs)
	}
}

// E2: a consumer that takes its time holds the sub-agent back.
func TestSubAgentWaitsUntilItsEventIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var goneOn time.Time
		a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
			yield(says("one"), nil)
			goneOn = time.Now()
		})
		start := time.Now()
		for range parallel(t, "p", a).Run(invocation(t.Context())) {
			time.Sleep(time.Minute)
		}
		if waited := goneOn.Sub(start); waited != time.Minute {
			t.Errorf("the sub-agent went on after %v", waited)
		}
	})
}

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
		case ev.Mark.Kind == session.MarkStepStarted:
			open = append(open, ev.Address)
		case ev.Mark.Kind == session.MarkStepFinished:
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
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), `agent "leaver" left its goroutine`) || cleaned.Load() != 1 {
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

func TestNothingInIt(t *testing.T) {
	if said, errs := outcome(parallel(t, "p").Run(invocation(t.Context()))); len(said) != 0 || errs != nil {
		t.Errorf("got %q, %v", said, errs)
	}
}

// T19: outside a bubble, with real goroutines and in every place.
func TestNoGoroutineIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
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
