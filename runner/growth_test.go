// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/testkit/heaptest"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
)

// An event costs the same however long the run is, with marks too. The tests here read no
// clock; bench/ does.
func TestGrowth(t *testing.T) {
	longtest.WithoutRace(t)
	const most = 1.15
	for _, marks := range []bool{false, true} {
		many := uint(10_000)
		if marks {
			many = longtest.N(uint(1000), 10_000)
		}
		short, long := memoryPerEvent(t, throughRunner(t, 100, marks)), memoryPerEvent(t, throughRunner(t, many, marks))
		if long.bytes > most*short.bytes || long.allocs > most*short.allocs {
			t.Errorf("marks %t: an event of %d iterations takes %v, one of 100 takes %v: more than %v times as much",
				marks, many, long, short, most)
		}
	}
}

// What an event costs in bytes beyond the making of it, the marks around it included. The limits are about ten times what
// is measured: they find a cost that grows with the run or a copy of the state in every event. Package bench compares the time
// with ADK's.
func TestCostPerEvent(t *testing.T) {
	longtest.WithoutRace(t)
	made := memoryPerEvent(t, func() int {
		const n = 3000
		for range n {
			madeEvent = fresh(t.Context(), "e-1")
		}
		return n
	})
	for _, tt := range []struct {
		name string
		run  func() int
		most float64 // bytes
	}{
		{"loop alone", direct(t, 1000), 1000},
		{"through the runner", throughRunner(t, 1000, false), 1000},
		{"through the runner, with marks", throughRunner(t, 1000, true), 30_000},
	} {
		got := memoryPerEvent(t, tt.run)
		t.Logf("%s: %v, of which the event itself is %v", tt.name, got, made)
		if own := got.bytes - made.bytes; own > tt.most {
			t.Errorf("%s: an event takes %.0f bytes beyond itself, at most %.0f are allowed", tt.name, own, tt.most)
		}
	}
}

// madeEvent keeps the compiler from leaving out the event.
var madeEvent *session.Event

// What a run with marks keeps of itself in memory, for each event that an agent said: the
// event and the marks around it.
func TestKeptPerEvent(t *testing.T) {
	longtest.WithoutRace(t)
	const iterations = 1000
	held := heaptest.Held(func() any {
		svc := session.InMemoryService()
		drain(t, ask(t.Context(), newRunner(t, durable(threeSteps(t, iterations), svc)), "Go"))
		return svc
	})
	each := float64(held) / (3 * iterations)
	t.Logf("%.0f bytes an event", each)
	if most := 2500.0; each > most {
		t.Errorf("a run keeps %.0f bytes for each event that an agent said, at most %.0f are allowed", each, most)
	}
}

// memory is what one event allocates.
type memory struct{ bytes, allocs float64 }

func (m memory) String() string {
	return fmt.Sprintf("%.0f bytes in %.2f allocations", m.bytes, m.allocs)
}

// memoryPerEvent measures a run that says how many events it had: the cheapest
// of three, since the runtime may be at work too.
func memoryPerEvent(t *testing.T, run func() (events int)) memory {
	t.Helper()
	var least memory
	for i := range 4 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := float64(run())
		runtime.ReadMemStats(&after)
		m := memory{float64(after.TotalAlloc-before.TotalAlloc) / n, float64(after.Mallocs-before.Mallocs) / n}
		switch i {
		case 0: // warms up
		case 1:
			least = m
		default:
			least = memory{min(least.bytes, m.bytes), min(least.allocs, m.allocs)}
		}
	}
	return least
}

func direct(t *testing.T, iterations uint) func() int {
	loop := threeSteps(t, iterations)
	return func() int {
		ctx := drive.NewInvocation(t.Context(), drive.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{})})
		return drain(t, loop.Run(ctx))
	}
}

func throughRunner(t *testing.T, iterations uint, marks bool) func() int {
	loop := threeSteps(t, iterations)
	return func() int {
		cfg := durable(loop, session.InMemoryService())
		cfg.Durable = marks
		return drain(t, ask(t.Context(), newRunner(t, cfg), "Go"))
	}
}

// fresh makes an event whose text and delta are its own, as those of all agents are.
func fresh(ctx context.Context, invocationID string) *session.Event {
	text := strings.Clone("The critic says: shorten the last line.\n")
	ev := session.NewEvent(ctx, invocationID)
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	ev.Actions.StateDelta["draft"] = text
	return ev
}

// threeSteps is a loop of agents that say one event each.
func threeSteps(t *testing.T, iterations uint) agent.Agent {
	t.Helper()
	cfg := loopagent.Config{AgentConfig: agent.Config{Name: "refine"}, MaxIterations: iterations}
	for _, name := range []string{"writer", "critic", "editor"} {
		a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				yield(fresh(ctx, ctx.InvocationID()), nil)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		cfg.AgentConfig.SubAgents = append(cfg.AgentConfig.SubAgents, a)
	}
	loop, err := loopagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return loop
}

// drain counts what agents say.
func drain(t *testing.T, events iter.Seq2[*session.Event, error]) (n int) {
	t.Helper()
	for ev, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Mark == nil {
			n++
		}
	}
	return n
}
