// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// An event costs the same however long the run is. The tests here read no
// clock; bench/ does.
func TestGrowth(t *testing.T) {
	const most = 1.15
	short, long := memoryPerEvent(t, throughRunner(t, 100)), memoryPerEvent(t, throughRunner(t, 10000))
	if long.bytes > most*short.bytes || long.allocs > most*short.allocs {
		t.Errorf("an event of 10000 iterations takes %v, one of 100 takes %v: more than %v times as much", long, short, most)
	}
}

// What is not configured costs nothing. The bounds leave no room for another
// value in every step, be it a map, a closure or a context. The agents' own
// share is an event, by far the largest part, and the sequence they return.
func TestCostPerEvent(t *testing.T) {
	padding := 0.0
	if raceEnabled() {
		padding = 16 // bytes, for each allocation
	}
	for _, tt := range []struct {
		name string
		run  func() int
		most memory
	}{
		{"loop alone", direct(t, 1000), memory{bytes: 420, allocs: 4}},
		{"through the runner", throughRunner(t, 1000), memory{bytes: 440, allocs: 5}},
	} {
		tt.most.bytes += padding * tt.most.allocs
		if got := memoryPerEvent(t, tt.run); got.bytes > tt.most.bytes || got.allocs > tt.most.allocs {
			t.Errorf("%s: an event takes %v, at most %v is allowed", tt.name, got, tt.most)
		}
	}
}

// raceEnabled reports whether the race detector is at work.
func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
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

func throughRunner(t *testing.T, iterations uint) func() int {
	loop := threeSteps(t, iterations)
	msg := genai.NewContentFromText("Go", genai.RoleUser)
	return func() int {
		r, err := runner.NewInMemory("app", loop)
		if err != nil {
			t.Fatal(err)
		}
		return drain(t, r.Run(context.Background(), "ana", "s", msg, agent.RunConfig{}))
	}
}

// Every event says the same, so that the agents' own share is small.
var (
	content = genai.NewContentFromText("The critic says: shorten the last line.\n", genai.RoleModel)
	delta   = map[string]any{"draft": "The critic says: shorten the last line.\n"}
)

// threeSteps is a loop of agents that say one event each.
func threeSteps(t *testing.T, iterations uint) agent.Agent {
	t.Helper()
	cfg := loopagent.Config{AgentConfig: agent.Config{Name: "refine"}, MaxIterations: iterations}
	for _, name := range []string{"writer", "critic", "editor"} {
		a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := &session.Event{InvocationID: ctx.InvocationID()}
				ev.Content, ev.Actions.StateDelta = content, delta
				yield(ev, nil)
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

func drain(t *testing.T, events iter.Seq2[*session.Event, error]) (n int) {
	t.Helper()
	for _, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
