// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/bench/ours"
	"github.com/refrain-dev/refrain/session"
)

func oursDirect(iterations int) (op, error) { return timedDirect(iterations, 0) }

func timedDirect(iterations int, timeout time.Duration) (op, error) {
	loop, err := ours.TimedLoop(iterations, timeout)
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		ctx := drive.NewInvocation(context.Background(), drive.Invocation{
			ID: "run-1", Session: session.NewView(session.ViewConfig{AppName: app, UserID: user, SessionID: "s"}),
		})
		return ours.Said(loop.Run(ctx))
	}, nil
}

func oursRunner(durable bool) func(iterations int) (op, error) {
	return func(iterations int) (op, error) {
		loop, err := ours.Loop(iterations)
		if err != nil {
			return nil, err
		}
		return inSession(loop, durable)
	}
}

// inSession runs an agent through a runner, in a new session in memory each time.
func inSession(a agent.Agent, durable bool) (op, error) {
	service := session.InMemoryService()
	r, err := ours.NewRunner(a, service, durable)
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		n, err := ours.Said(ours.Run(r, "s"))
		if err != nil {
			return n, err
		}
		return n, service.Delete(context.Background(), &session.DeleteRequest{AppName: app, UserID: user, SessionID: "s"})
	}, nil
}

func oursConcurrent(durable bool) func(sessions, iterations int) (op, error) {
	return func(sessions, iterations int) (op, error) {
		return func() (int, error) { return ours.ManyRuns(session.InMemoryService(), durable, sessions, iterations) }, nil
	}
}
