// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// newEvent makes what our agents, and those of floorevent, say: an event with a text
// and a state delta of its own.
func newEvent(ctx context.Context, invocationID string) *session.Event {
	said := strings.Clone(text)
	ev := session.NewEvent(ctx, invocationID)
	ev.Content = genai.NewContentFromText(said, genai.RoleModel)
	ev.Actions.StateDelta[key] = said
	return ev
}

func oursLoop(iterations int) (agent.Agent, error) {
	var subs []agent.Agent
	for _, name := range names {
		sub, err := agent.New(agent.Config{
			Name: name,
			Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
				return func(yield func(*session.Event, error) bool) {
					yield(newEvent(ctx, ctx.InvocationID()), nil)
				}
			},
		})
		if err != nil {
			return nil, err
		}
		subs = append(subs, sub)
	}
	return loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "refine", SubAgents: subs},
		MaxIterations: uint(iterations),
	})
}

func oursDirect(iterations int) (op, error) {
	loop, err := oursLoop(iterations)
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		ctx := drive.NewInvocation(context.Background(), drive.Invocation{
			ID: "run-1", Session: session.NewView(session.ViewConfig{AppName: app, UserID: user, SessionID: "s"}),
		})
		return said(loop.Run(ctx))
	}, nil
}

func oursRunner(durable bool) func(iterations int) (op, error) {
	return func(iterations int) (op, error) {
		loop, err := oursLoop(iterations)
		if err != nil {
			return nil, err
		}
		return inSession(loop, durable)
	}
}

// inSession runs an agent through a runner, in a new session in memory each time.
func inSession(a agent.Agent, durable bool) (op, error) {
	service := session.InMemoryService()
	r, err := newRunner(a, service, durable)
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		n, err := said(runIn(r, "s"))
		if err != nil {
			return n, err
		}
		return n, service.Delete(context.Background(), &session.DeleteRequest{AppName: app, UserID: user, SessionID: "s"})
	}, nil
}

func oursConcurrent(durable bool) func(sessions, iterations int) (op, error) {
	return func(sessions, iterations int) (op, error) {
		return func() (int, error) { return manyRuns(session.InMemoryService(), durable, sessions, iterations) }, nil
	}
}

// manyRuns runs a loop in a number of sessions at once, through one runner.
func manyRuns(service session.Service, durable bool, sessions, iterations int) (int, error) {
	loop, err := oursLoop(iterations)
	if err != nil {
		return 0, err
	}
	r, err := newRunner(loop, service, durable)
	if err != nil {
		return 0, err
	}
	return atOnce(sessions, func(id string) (int, error) { return said(runIn(r, id)) })
}

// The application and the user of all sessions here.
const app, user = "bench", "ana"

func newRunner(a agent.Agent, service session.Service, durable bool) (*runner.Runner, error) {
	return runner.New(runner.Config{
		AppName: app, Agent: a, SessionService: service, AutoCreateSession: true, Durable: durable,
	})
}

func runIn(r *runner.Runner, id string) iter.Seq2[*session.Event, error] {
	msg := genai.NewContentFromText("Go", genai.RoleUser)
	return r.Run(context.Background(), user, id, msg, agent.RunConfig{MaxLLMCalls: -1})
}

// said drains a run and counts what agents said: all events but marks.
func said(events iter.Seq2[*session.Event, error]) (n int, err error) {
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

// atOnce runs a number of sessions, each in a goroutine of its own.
func atOnce(sessions int, run func(id string) (int, error)) (int, error) {
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
