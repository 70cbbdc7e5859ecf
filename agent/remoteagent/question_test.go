// SPDX-License-Identifier: Apache-2.0

package remoteagent_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/remoteagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// asks is an agent that needs something from a person first.
func asks(state a2a.TaskState, question string) work {
	return func(_ context.Context, x *a2asrv.ExecutorContext, yield yield) {
		if !begins(x, yield) {
			return
		}
		if x.StoredTask == nil {
			ends(x, yield, state, says(question))
			return
		}
		said := x.Message.Parts[0]
		if said.Data() != nil {
			said = text("data")
		}
		if yield(a2a.NewArtifactEvent(x, text("booked: "), said), nil) {
			ends(x, yield, a2a.TaskStateCompleted, nil)
		}
	}
}

// questionIn is the question that a run has asked.
func questionIn(t *testing.T, got *ran) (*genai.FunctionCall, *session.Event) {
	t.Helper()
	for _, ev := range got.events {
		if len(ev.LongRunningToolIDs) > 0 {
			return ev.Content.Parts[0].FunctionCall, ev
		}
	}
	t.Fatalf("nobody was asked: %v, %v", got.words(), got.err)
	return nil, nil
}

func answerTo(q *genai.FunctionCall, response map[string]any) *genai.Content {
	return &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
		{FunctionResponse: &genai.FunctionResponse{ID: q.ID, Name: toolconfirmation.FunctionCallName, Response: response}},
	}}
}

// LOOP 32: what a task needs from a person is a question. The loop around stops as
// blocked, and the answer goes on with the same task.
func TestQuestionToAPerson(t *testing.T) {
	for _, kind := range kinds {
		for _, tt := range []struct {
			name     string
			response map[string]any
			want     string
		}{
			{"words", map[string]any{"confirmed": true, "payload": "Lisbon"}, "booked: Lisbon"},
			{"data", map[string]any{"confirmed": true, "payload": map[string]any{"city": "Lisbon"}}, "booked: data"},
			{"a number", map[string]any{"confirmed": true, "payload": 7}, "booked: 7"},
			{"yes", map[string]any{"confirmed": true}, "booked: yes"},
			{"no", map[string]any{"confirmed": false}, "booked: no"},
		} {
			t.Run(kind.name+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				r := serve(t, kind, asks(a2a.TaskStateInputRequired, "Which city?"))
				var rec *loop.StopRecord
				l := newLoop(t, loopagent.Config{
					AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{made(t, r)}}, MaxIterations: 5,
					OnStop: func(_ agent.InvocationContext, s *loop.StopRecord) { rec = s },
				})
				tk := newTalk(t, l, nil)
				got := tk.say(t.Context(), "Book a trip.")
				if got.err != nil {
					t.Fatal(got.err)
				}
				if rec == nil || rec.Reason != loop.ReasonBlocked {
					t.Errorf("the loop stopped with %v", rec)
				}
				q, ev := questionIn(t, got)
				confirmation := q.Args["toolConfirmation"].(toolconfirmation.ToolConfirmation)
				if hint := confirmation.Hint; !strings.HasSuffix(hint, ": Which city?") {
					t.Errorf("the person is asked %q", hint)
				}
				if original, err := toolconfirmation.OriginalCallFrom(q); err != nil || original.Name != "far" {
					t.Errorf("got %v, %v", original, err)
				}
				if n := len(r.said()); n != 1 || r.cancels() != 0 || ev.Iteration != 1 {
					t.Errorf("%d messages, %d cancels, in iteration %d", n, r.cancels(), ev.Iteration)
				}
				got = tk.send(t.Context(), answerTo(q, tt.response))
				if got.err != nil {
					t.Fatal(got.err)
				}
				equal(t, "words", []string{tt.want}, got.words())
				equal(t, "output", any(tt.want), got.state["out"])
				if len(r.said()) != 2 {
					t.Fatalf("got %q", r.said())
				}
				if first, second := r.message(0), r.message(1); second.TaskID == "" || second.ContextID == "" || first.ID == second.ID {
					t.Errorf("the answer does not belong to the task: %+v", second)
				}
			})
		}
	}
}

// A task that goes on by itself once somebody has signed in is followed.
func TestSignedIn(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			signedIn := make(chan struct{})
			r := serve(t, kind, func(_ context.Context, x *a2asrv.ExecutorContext, yield yield) {
				if !begins(x, yield) || !yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateAuthRequired, says("Sign in")), nil) {
					return
				}
				<-signedIn
				if yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateWorking, nil), nil) && yield(a2a.NewArtifactEvent(x, text("your mail")), nil) {
					ends(x, yield, a2a.TaskStateCompleted, nil)
				}
			})
			// The task goes on when its server has refused to be told.
			var messages atomic.Int64
			r.intercept(func(w http.ResponseWriter, req *http.Request) bool {
				if !contains(req, `"messageId"`) {
					return false
				}
				n := messages.Add(1)
				r.serve.ServeHTTP(w, req)
				if n == 2 {
					close(signedIn)
				}
				return true
			})
			tk := newTalk(t, made(t, r), nil)
			q, _ := questionIn(t, tk.say(t.Context(), "Read my mail."))
			got := tk.send(t.Context(), answerTo(q, map[string]any{"confirmed": true}))
			if got.err != nil {
				t.Fatal(got.err)
			}
			equal(t, "words", []string{"your mail"}, got.words())
			if n := len(r.said()); n != 1 || r.cancels() != 0 {
				t.Errorf("%d messages, %d cancels", n, r.cancels())
			}
		})
	}
}

// Where nobody signs in, the task is of no use any more.
func TestNobodySignsIn(t *testing.T) {
	r := serve(t, kinds[0], asks(a2a.TaskStateAuthRequired, "Sign in at https://example.org"))
	tk := newTalk(t, made(t, r), nil)
	q, _ := questionIn(t, tk.say(t.Context(), "Book a trip."))
	got := tk.send(t.Context(), answerTo(q, map[string]any{"confirmed": false}))
	if failed, ok := errors.AsType[*remoteagent.TaskError](got.err); !ok || failed.State != "canceled" || !strings.Contains(failed.Message, "a person refused") {
		t.Errorf("got %v", got.err)
	}
	if r.cancels() != 1 || len(r.said()) != 1 {
		t.Errorf("%d cancels, %q", r.cancels(), r.said())
	}
}

// A person who talks to the agent itself answers in plain words.
func TestPlainWordsAreAnAnswer(t *testing.T) {
	r := serve(t, kinds[0], asks(a2a.TaskStateInputRequired, "Which city?"))
	tk := newTalk(t, made(t, r), nil)
	questionIn(t, tk.say(t.Context(), "Book a trip."))
	got := tk.say(t.Context(), "Porto")
	equal(t, "words", []string{"booked: Porto"}, got.words())
	questionIn(t, tk.say(t.Context(), "Another one."))
	if m := r.message(2); m.TaskID != "" || m.ContextID == "" {
		t.Errorf("the next message begins no new task in the same conversation: %+v", m)
	}
}

// A question can lead to another one.
func TestQuestionAfterQuestion(t *testing.T) {
	r := serve(t, kinds[0], func(_ context.Context, x *a2asrv.ExecutorContext, yield yield) {
		if !begins(x, yield) {
			return
		}
		if said := x.Message.Parts[0].Text(); said != "done" {
			ends(x, yield, a2a.TaskStateInputRequired, says("more than "+said+"?"))
			return
		}
		ends(x, yield, a2a.TaskStateCompleted, says("good"))
	})
	tk := newTalk(t, made(t, r, func(c *remoteagent.A2AConfig) { c.Payload = "start" }), nil)
	q, _ := questionIn(t, tk.say(t.Context(), "Hi"))
	again, _ := questionIn(t, tk.send(t.Context(), answerTo(q, map[string]any{"confirmed": true, "payload": "a"})))
	got := tk.send(t.Context(), answerTo(again, map[string]any{"confirmed": true, "payload": "done"}))
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "words", []string{"good"}, got.words())
	equal(t, "the remote agent was told", []string{"start", "a", "done"}, r.said())
	if r.message(0).ContextID != "" || r.message(1).TaskID != r.message(2).TaskID {
		t.Error("it was not one task")
	}
}
