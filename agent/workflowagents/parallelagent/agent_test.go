// SPDX-License-Identifier: Apache-2.0

package parallelagent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/agenttest"
	"github.com/refrain-dev/refrain/agent/drive"
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
	return drive.NewInvocation(ctx, drive.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{})})
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
		{"no name", agent.Config{}, "agent has no name; give it one"},
		{"a sub-agent that is nil", agent.Config{Name: "p", SubAgents: []agent.Agent{nil}}, `agent "p": sub-agent 1 is nil; remove it`},
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
						now := running.Add(1)
						for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
						}
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
				if v, err := ctx.Session().State().Get(key); err != nil || v != float64(n) {
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

func TestNothingInIt(t *testing.T) {
	if said, errs := outcome(parallel(t, "p").Run(invocation(t.Context()))); len(said) != 0 || errs != nil {
		t.Errorf("got %q, %v", said, errs)
	}
}
