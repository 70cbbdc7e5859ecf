// SPDX-License-Identifier: Apache-2.0

package remoteagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/remoteagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// house is one session, in which an agent runs in one process after the other.
type house struct {
	*talk
	t    *testing.T
	root func() agent.Agent
	id   string
}

func newHouse(t *testing.T, root func() agent.Agent) *house {
	return &house{talk: newTalk(t, root(), nil), t: t, root: root}
}

// run runs until the run is over or waits.
func (h *house) run() *ran {
	h.t.Helper()
	r := newRunner(h.t, h.svc, h.root())
	cfg := agent.RunConfig{Pause: new(agent.Pause)}
	seq := r.Resume(h.t.Context(), "ana", "s", h.id, cfg)
	if h.id == "" {
		seq = r.Run(h.t.Context(), "ana", "s", user("Hi"), cfg)
	}
	return h.take(func(yield func(*session.Event, error) bool) {
		for ev, err := range seq {
			if ev != nil {
				h.id = ev.InvocationID
			}
			if !yield(ev, err) {
				return
			}
		}
	})
}

// waits runs until a person is asked.
func (h *house) waits() mark.Question {
	h.t.Helper()
	got := h.run()
	w, ok := errors.AsType[*agent.WaitingError](got.err)
	if !ok {
		h.t.Fatalf("the run does not wait: %v", got.err)
	}
	return w.Question
}

func (h *house) tell(q mark.Question, value any) {
	h.t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		h.t.Fatal(err)
	}
	m, err := mark.New(mark.KindAnswered, mark.Answer{ID: q.ID, Value: text})
	if err != nil {
		h.t.Fatal(err)
	}
	got, err := h.svc.Get(h.t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s"})
	if err == nil {
		err = h.svc.AppendEvent(h.t.Context(), got.Session, &session.Event{InvocationID: h.id, Author: "user", Mark: m})
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// LOOP 32: a run that can wait for people waits, and its loop goes on with the
// answer, which goes to the same task.
func TestLoopWaitsForAPerson(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			r := serve(t, kind, func(_ context.Context, x *a2asrv.ExecutorContext, yield yield) {
				said := x.Message.Parts[0].Text()
				switch {
				case !begins(x, yield):
				case x.StoredTask == nil:
					ends(x, yield, a2a.TaskStateInputRequired, says("Which city?"))
				case said == "Lisbon":
					ends(x, yield, a2a.TaskStateInputRequired, says("Which day?"))
				case yield(a2a.NewArtifactEvent(x, text("booked for "+said)), nil):
					ends(x, yield, a2a.TaskStateCompleted, nil)
				}
			})
			h := newHouse(t, func() agent.Agent {
				return newLoop(t, loopagent.Config{
					AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{made(t, r, func(c *remoteagent.A2AConfig) { c.NewContext = true })}}, MaxIterations: 2,
				})
			})
			for iteration := range 2 {
				q := h.waits()
				if q.Kind != mark.AskText || !strings.HasSuffix(q.Text, ": Which city?") {
					t.Fatalf("iteration %d: got %+v", iteration+1, q)
				}
				if again := h.waits(); again.ID != q.ID {
					t.Errorf("asked again, the question is another one: %q, %q", again.ID, q.ID)
				}
				h.tell(q, "Lisbon")
				q = h.waits()
				if !strings.HasSuffix(q.Text, ": Which day?") {
					t.Fatalf("got %+v", q)
				}
				h.tell(q, "Monday")
			}
			got := h.run()
			if got.err != nil {
				t.Fatal(got.err)
			}
			equal(t, "output", any("booked for Monday"), got.state["out"])
			equal(t, "the remote agent was told", []string{"Hi", "Lisbon", "Monday", "Hi", "Lisbon", "Monday"}, r.said())
			ids := make(map[string]bool)
			for i := range 6 {
				ids[r.message(i).ID] = true
			}
			if a, b, c := r.message(1).TaskID, r.message(2).TaskID, r.message(4).TaskID; len(ids) != 6 || a != b || a == c || r.cancels() != 0 {
				t.Errorf("tasks %q %q %q, %d message IDs, %d cancels", a, b, c, len(ids), r.cancels())
			}
		})
	}
}

// A person who was asked to sign in says yes or no.
func TestLoopWaitsForSomebodyToSignIn(t *testing.T) {
	for _, yes := range []bool{true, false} {
		signedIn := make(chan struct{})
		r := serve(t, kinds[0], func(ctx context.Context, x *a2asrv.ExecutorContext, yield yield) {
			if !begins(x, yield) || !yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateAuthRequired, says("Sign in")), nil) {
				return
			}
			select {
			case <-signedIn:
			case <-ctx.Done():
				return
			}
			if yield(a2a.NewArtifactEvent(x, text("your mail")), nil) {
				ends(x, yield, a2a.TaskStateCompleted, nil)
			}
		})
		h := newHouse(t, func() agent.Agent { return made(t, r) })
		q := h.waits()
		if q.Kind != mark.AskApproval {
			t.Errorf("got %+v", q)
		}
		h.tell(q, yes)
		if yes {
			close(signedIn)
		}
		got := h.run()
		if yes && (got.err != nil || got.state["out"] != "your mail" || r.cancels() != 0) {
			t.Errorf("got %v, %v, %d cancels", got.err, got.state["out"], r.cancels())
		}
		if _, ok := errors.AsType[*remoteagent.TaskError](got.err); !yes && (!ok || r.cancels() != 1) {
			t.Errorf("got %v, %d cancels", got.err, r.cancels())
		}
	}
}

// An answer that was sent before the process died is not sent again.
func TestAnswerIsSentOnce(t *testing.T) {
	finish := make(chan struct{})
	r := serve(t, kinds[0], func(_ context.Context, x *a2asrv.ExecutorContext, yield yield) {
		switch {
		case !begins(x, yield):
		case x.StoredTask == nil:
			ends(x, yield, a2a.TaskStateInputRequired, says("Which city?"))
		default:
			<-finish
			if yield(a2a.NewArtifactEvent(x, text("booked")), nil) {
				ends(x, yield, a2a.TaskStateCompleted, nil)
			}
		}
	})
	h := newHouse(t, func() agent.Agent { return made(t, r) })
	h.tell(h.waits(), "Lisbon")
	r.refuseCancels()
	store := &breaking{Service: h.svc, at: func(ev *session.Event) bool { return ev.Author == "far" && ev.Content != nil && ev.Mark == nil }}
	time.AfterFunc(200*time.Millisecond, func() { close(finish) })
	for _, err := range newRunner(t, store, h.root()).Resume(t.Context(), "ana", "s", h.id, agent.RunConfig{Pause: new(agent.Pause)}) {
		if err != nil && !errors.Is(err, errGone) {
			t.Fatal(err)
		}
	}
	got := h.run()
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "output", any("booked"), got.state["out"])
	equal(t, "the remote agent was told", []string{"Hi", "Lisbon"}, r.said())
}
