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

// What content=shared shares.
var (
	sharedContent = genai.NewContentFromText(text, genai.RoleModel)
	sharedDelta   = map[string]any{key: text}
)

// newEvent is what our agents, and those of floorevent, say.
func newEvent(ctx context.Context, invocationID string, c content) *session.Event {
	if c == shared {
		ev := &session.Event{InvocationID: invocationID}
		ev.Content = sharedContent
		ev.Actions.StateDelta = sharedDelta
		return ev
	}
	said := strings.Clone(text)
	ev := session.NewEvent(ctx, invocationID)
	ev.Content = genai.NewContentFromText(said, genai.RoleModel)
	ev.Actions.StateDelta[key] = said
	return ev
}

func oursLoop(iterations int, c content) (agent.Agent, error) {
	var subs []agent.Agent
	for _, name := range names {
		sub, err := agent.New(agent.Config{
			Name: name,
			Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
				return func(yield func(*session.Event, error) bool) {
					yield(newEvent(ctx, ctx.InvocationID(), c), nil)
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

func oursDirect(iterations int, c content) (op, error) {
	loop, err := oursLoop(iterations, c)
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		ctx := drive.NewInvocation(context.Background(), drive.Invocation{
			ID: "run-1", Session: session.NewView(session.ViewConfig{AppName: "bench", UserID: "ana", SessionID: "s"}),
		})
		return count(loop.Run(ctx))
	}, nil
}

func oursRunner(iterations int, c content) (op, error) {
	loop, err := oursLoop(iterations, c)
	if err != nil {
		return nil, err
	}
	ctx, service := context.Background(), session.InMemoryService()
	r, err := newRunner(loop, service)
	if err != nil {
		return nil, err
	}
	msg := genai.NewContentFromText("Go", genai.RoleUser)
	return func() (int, error) {
		n, err := count(r.Run(ctx, "ana", "s", msg, agent.RunConfig{}))
		if err != nil {
			return n, err
		}
		return n, service.Delete(ctx, &session.DeleteRequest{AppName: "bench", UserID: "ana", SessionID: "s"})
	}, nil
}

func oursConcurrent(sessions, iterations int, c content) (op, error) {
	loop, err := oursLoop(iterations, c)
	if err != nil {
		return nil, err
	}
	msg := genai.NewContentFromText("Go", genai.RoleUser)
	return func() (int, error) {
		r, err := newRunner(loop, session.InMemoryService())
		if err != nil {
			return 0, err
		}
		return atOnce(sessions, func(id string) (int, error) {
			return count(r.Run(context.Background(), "ana", id, msg, agent.RunConfig{}))
		})
	}, nil
}

func newRunner(a agent.Agent, service session.Service) (*runner.Runner, error) {
	return runner.New(runner.Config{AppName: "bench", Agent: a, SessionService: service, AutoCreateSession: true})
}

// count drains a run.
func count[E any](events iter.Seq2[E, error]) (n int, err error) {
	for _, err := range events {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// atOnce runs so many sessions, each in a goroutine of its own.
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
