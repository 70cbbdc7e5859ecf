// SPDX-License-Identifier: Apache-2.0

// Package ours is the work that is measured, as this project does it: a loop of three agents that say
// one event each.
//
//	n, err := ours.ManyRuns(session.InMemoryService(), true, 1000, 20)
package ours

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// What every event says: 40 bytes of text and one key.
const (
	Text = "The critic says: shorten the last line.\n"
	Key  = "draft"
)

var _ = [1]int{}[len(Text)-40] // it is 40 bytes

// Names are those of the agents.
var Names = []string{"writer", "critic", "editor"}

// App and User are those of all sessions.
const App, User = "bench", "ana"

// NewEvent makes what an agent says: an event with a text and a state delta of its own.
func NewEvent(ctx context.Context, invocationID string) *session.Event {
	said := strings.Clone(Text)
	ev := session.NewEvent(ctx, invocationID)
	ev.Content = genai.NewContentFromText(said, genai.RoleModel)
	ev.Actions.StateDelta[Key] = said
	return ev
}

// Loop returns the loop.
func Loop(iterations int) (agent.Agent, error) { return TimedLoop(iterations, 0) }

// TimedLoop returns a loop whose steps have a timeout; 0 is none.
func TimedLoop(iterations int, timeout time.Duration) (agent.Agent, error) {
	var subs []agent.Agent
	var steps []loop.Step
	for _, name := range Names {
		sub, err := agent.New(agent.Config{
			Name: name,
			Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
				return func(yield func(*session.Event, error) bool) {
					yield(NewEvent(ctx, ctx.InvocationID()), nil)
				}
			},
		})
		if err != nil {
			return nil, err
		}
		subs = append(subs, sub)
		if timeout > 0 {
			steps = append(steps, loop.Step{Name: name, Timeout: loop.Duration(timeout)})
		}
	}
	return loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "refine", SubAgents: subs},
		MaxIterations: uint(iterations), Rules: loop.Plan{Steps: steps},
	})
}

// NewRunner returns a runner that makes the sessions that it needs.
func NewRunner(a agent.Agent, service session.Service, durable bool) (*runner.Runner, error) {
	return runner.New(runner.Config{
		AppName: App, Agent: a, SessionService: service, AutoCreateSession: true, Durable: durable,
	})
}

// Run runs the agent of a runner in a session.
func Run(r *runner.Runner, id string) iter.Seq2[*session.Event, error] {
	msg := genai.NewContentFromText("Go", genai.RoleUser)
	return r.Run(context.Background(), User, id, msg, agent.RunConfig{MaxLLMCalls: -1})
}

// Said drains a run and counts what agents said: all events but marks.
func Said(events iter.Seq2[*session.Event, error]) (n int, err error) {
	for ev, err := range events {
		if err != nil {
			return n, err
		}
		if ev.Mark == nil {
			n++
		}
	}
	return n, nil
}

// ManyRuns runs a loop in a number of sessions at once, through one runner. It returns the number of
// events that agents said.
func ManyRuns(service session.Service, durable bool, sessions, iterations int) (int, error) {
	loop, err := Loop(iterations)
	if err != nil {
		return 0, err
	}
	r, err := NewRunner(loop, service, durable)
	if err != nil {
		return 0, err
	}
	return AtOnce(sessions, func(id string) (int, error) { return Said(Run(r, id)) })
}

// AtOnce runs a number of sessions, each in a goroutine of its own. It returns the sum of what run
// returns, and the first error.
func AtOnce(sessions int, run func(id string) (int, error)) (int, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		total int
		first error
	)
	for i := range sessions {
		wg.Go(func() {
			n, err := run("s" + strconv.Itoa(i))
			mu.Lock()
			defer mu.Unlock()
			total += n
			if first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	return total, first
}
