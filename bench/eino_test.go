// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"runtime/metrics"
	"strings"
	"sync/atomic"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"
	"github.com/refrain-dev/refrain/bench/ours"
)

// memoryLimit is the memory in bytes at which a run of the peer is given up.
const memoryLimit = 5 << 30

// einoAgent says one event and sets one session value, which is what Eino has
// for state.
type einoAgent struct {
	name  string
	guard *guard
}

func (a *einoAgent) Name(context.Context) string        { return a.name }
func (a *einoAgent) Description(context.Context) string { return a.name }

func (a *einoAgent) Run(ctx context.Context, _ *adk.AgentInput, _ ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	events, out := adk.NewAsyncIteratorPair[*adk.AgentEvent]()
	defer out.Close()
	if err := a.guard.check(); err != nil {
		out.Send(&adk.AgentEvent{Err: err})
		return events
	}
	msg := schema.AssistantMessage(strings.Clone(text), nil)
	adk.AddSessionValue(ctx, key, msg.Content)
	out.Send(adk.EventFromMessage(msg, nil, schema.Assistant, ""))
	return events
}

func einoLoop(iterations int) (adk.Agent, error) {
	var subs []adk.Agent
	g := new(guard)
	for _, name := range ours.Names {
		subs = append(subs, &einoAgent{name: name, guard: g})
	}
	return adk.NewLoopAgent(context.Background(), &adk.LoopAgentConfig{
		Name: "refine", Description: "refine", SubAgents: subs, MaxIterations: iterations,
	})
}

func einoDirect(iterations int) (op, error) {
	loop, err := einoLoop(iterations)
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		return countEino(loop.Run(context.Background(), &adk.AgentInput{Messages: []adk.Message{schema.UserMessage("Go")}}))
	}, nil
}

func einoRunner(iterations int) (op, error) {
	loop, err := einoLoop(iterations)
	if err != nil {
		return nil, err
	}
	r := adk.NewRunner(context.Background(), adk.RunnerConfig{Agent: loop})
	return func() (int, error) { return countEino(r.Query(context.Background(), "Go")) }, nil
}

func countEino(events *adk.AsyncIterator[*adk.AgentEvent]) (n int, err error) {
	for {
		ev, ok := events.Next()
		if !ok {
			return n, err
		}
		if ev.Err != nil {
			err = ev.Err
			continue
		}
		n++
	}
}

// guard gives up when the process uses too much memory. It asks on every 256th call.
type guard struct{ calls atomic.Int64 }

func (g *guard) check() error {
	if g.calls.Add(1)%256 != 0 {
		return nil
	}
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	if used := s[0].Value.Uint64() - s[1].Value.Uint64(); used > memoryLimit {
		return fmt.Errorf("given up: %d MB of memory in use", used>>20)
	}
	return nil
}
