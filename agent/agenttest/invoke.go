// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"iter"

	"github.com/google/uuid"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// invocation is one call of the agent in a session of its own.
type invocation struct {
	ctx   agent.InvocationContext
	svc   session.Service
	view  session.Session
	after func(said int) // called after each event that was stored
}

// invoke prepares an invocation as a runner does.
func (s *suite) invoke(ctx context.Context, name string) *invocation {
	s.Helper()
	in := &invocation{svc: session.InMemoryService()}
	made, err := in.svc.Create(s.Context(), &session.CreateRequest{AppName: "agenttest", UserID: "tester"})
	if err != nil {
		s.Fatal(err)
	}
	in.view = made.Session
	id := name + "-" + uuid.NewString()
	hello := genai.NewContentFromText("Hello", genai.RoleUser)
	asked := &session.Event{InvocationID: id, Author: "user"}
	asked.Content = hello
	if err := in.svc.AppendEvent(s.Context(), in.view, asked); err != nil {
		s.Fatal(err)
	}
	in.ctx = drive.NewInvocation(ctx, drive.Invocation{ID: id, Session: in.view, UserContent: hello})
	return in
}

// outcome is what came out of a run.
type outcome struct {
	events []*session.Event
	err    error
}

// take consumes a run as a runner does and checks each pair. It leaves after
// so many events; a negative number never leaves.
func (s *suite) take(in *invocation, seq iter.Seq2[*session.Event, error], leave int) *outcome {
	s.Helper()
	got, over := &outcome{}, false
	seq(func(ev *session.Event, err error) bool {
		switch {
		case over:
			s.Error("nothing is yielded after an error, or after yield has returned false")
			return false
		case ev == nil && err == nil:
			s.Error("a pair holds an event or an error, got neither")
			return true
		case ev != nil && err != nil:
			s.Errorf("a pair holds an event or an error, got both: %q and %v", ev.Text(), err)
		}
		if err != nil {
			got.err, over = err, true
			return true // if it wants to go on, that shows
		}
		if !ev.Partial {
			// What was said is stored even if the run is canceled meanwhile.
			if err := in.svc.AppendEvent(context.WithoutCancel(in.ctx), in.view, ev); err != nil {
				s.Errorf("store event %d: %v", len(got.events)+1, err)
			}
		}
		got.events = append(got.events, ev)
		if in.after != nil {
			in.after(len(got.events))
		}
		over = len(got.events) == leave
		return !over
	})
	return got
}

// mustRun consumes a whole run that must succeed and say something.
func (s *suite) mustRun(in *invocation) *outcome {
	s.Helper()
	got := s.take(in, drive.Run(in.ctx, s.agent), -1)
	if got.err != nil {
		s.Fatalf("a run of the agent succeeds: %v", got.err)
	}
	if len(got.events) == 0 {
		s.Fatal("a run of the agent says something, got no event")
	}
	return got
}
