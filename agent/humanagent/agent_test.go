// SPDX-License-Identifier: Apache-2.0

package humanagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/humanagent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

func Example() {
	review, err := humanagent.New(humanagent.Config{Name: "review", Text: "Publish this?\n{{draft}}", ExitIfApproved: true})
	if err != nil {
		log.Fatal(err)
	}
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "app", Agent: review, SessionService: svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		log.Fatal(err)
	}
	cfg := agent.RunConfig{Pause: new(agent.Pause)}
	for _, err := range r.Run(context.Background(), "ana", "s1", nil, cfg, runner.WithStateDelta(map[string]any{"draft": "It was a cat."})) {
		if w, ok := errors.AsType[*agent.WaitingError](err); ok {
			fmt.Println(w.Question.Kind, w.Question.Text)
		}
	}
	// Output:
	// approve Publish this?
	// It was a cat.
}

// house is one session, in which a tree runs in one process after the other.
type house struct {
	*testing.T
	svc  session.Service
	root func() agent.Agent
	id   string
}

func (h *house) run() error {
	h.Helper()
	r, err := runner.New(runner.Config{AppName: "app", Agent: h.root(), SessionService: h.svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		h.Fatal(err)
	}
	cfg := agent.RunConfig{Pause: new(agent.Pause)}
	seq := r.Resume(h.Context(), "ana", "s1", h.id, cfg)
	if h.id == "" {
		seq = r.Run(h.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), cfg)
	}
	for ev, err := range seq {
		if err != nil {
			return err
		}
		h.id = ev.InvocationID
	}
	return nil
}

func (h *house) view() session.Session {
	h.Helper()
	got, err := h.svc.Get(h.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		h.Fatal(err)
	}
	return got.Session
}

// tell runs, and answers the question that comes up.
func (h *house) tell(value, reason string) mark.Question {
	h.Helper()
	w, ok := errors.AsType[*agent.WaitingError](h.run())
	if !ok {
		h.Fatal("the run does not wait")
	}
	m, err := mark.New(mark.KindAnswered, mark.Answer{ID: w.Question.ID, Value: json.RawMessage(value), Reason: reason})
	if err == nil {
		err = h.svc.AppendEvent(h.Context(), h.view(), &session.Event{InvocationID: h.id, Author: "user", Mark: m})
	}
	if err != nil {
		h.Fatal(err)
	}
	return w.Question
}

func newLoop(t *testing.T, cfg loopagent.Config, human humanagent.Config) *house {
	h := &house{T: t, svc: session.InMemoryService()}
	h.root = func() agent.Agent {
		write, err := taskagent.NewText(taskagent.TextConfig{Config: taskagent.Config{Name: "write", OutputKey: "draft"}, Text: "draft {{iteration}}"})
		if err != nil {
			t.Fatal(err)
		}
		asks, err := humanagent.New(human)
		if err != nil {
			t.Fatal(err)
		}
		cfg.AgentConfig = agent.Config{Name: "refine", SubAgents: []agent.Agent{write, asks}}
		root, err := loopagent.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return root
	}
	return h
}

// LOOP 32, needs 17: a person looks at each iteration, and ends the loop.
func TestApprovalEndsTheLoop(t *testing.T) {
	var stop *loop.StopRecord
	h := newLoop(t, loopagent.Config{MaxIterations: 5, OnStop: func(_ agent.InvocationContext, rec *loop.StopRecord) { stop = rec }},
		humanagent.Config{Name: "review", Text: "Good? {{draft}}", OutputKey: "review", ExitIfApproved: true})
	for i, want := range []string{"Good? draft 1", "Good? draft 2"} {
		q := h.tell([]string{"false", "true"}[i], []string{"too short", "fine"}[i])
		if q.Text != want || q.Kind != mark.AskApproval {
			t.Errorf("asked %q (%s), want %q", q.Text, q.Kind, want)
		}
		stop = nil // of the run that waited
	}
	if err := h.run(); err != nil {
		t.Fatal(err)
	}
	if stop == nil || stop.Reason != loop.ReasonExit || stop.Iteration != 2 || !strings.Contains(stop.String(), "approved: fine") {
		t.Errorf("the loop stopped so: %v", stop)
	}
	review, _ := h.view().State().Get("review")
	if got := fmt.Sprint(review); got != "map[approved:true reason:fine]" {
		t.Errorf("the state has %s", got)
	}
}

// LOOP 32: the person answers in words, or edits the state.
func TestAnswersAndEdits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		human  humanagent.Config
		answer string
		key    string
		want   any
	}{
		{"text", humanagent.Config{Kind: mark.AskText, Text: "Which title?", OutputKey: "title"}, `"The cat"`, "title", "The cat"},
		{"option", humanagent.Config{Kind: mark.AskText, Text: "Which?", Options: []string{"a", "b"}, OutputKey: "title"}, `"b"`, "title", "b"},
		{"edit", humanagent.Config{Kind: mark.AskEdit, Text: "Fix it", Keys: []string{"draft"}}, `{"draft": "mine"}`, "draft", "mine"},
		{"removal", humanagent.Config{Kind: mark.AskEdit, Text: "Fix it", Keys: []string{"draft"}}, `{"draft": null}`, "draft", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.human.Name = "person"
			h := newLoop(t, loopagent.Config{MaxIterations: 1}, tt.human)
			q := h.tell(tt.answer, "")
			if tt.human.Kind == mark.AskEdit && q.Keys["draft"] != "draft 1" {
				t.Errorf("the question shows %v", q.Keys)
			}
			if err := h.run(); err != nil {
				t.Fatal(err)
			}
			if got, _ := h.view().State().Get(tt.key); got != tt.want {
				t.Errorf("%s is %v, want %v", tt.key, got, tt.want)
			}
		})
	}
}

// LOOP 32: after the deadline the default counts, and without one the step fails.
func TestDeadlines(t *testing.T) {
	for name, value := range map[string]json.RawMessage{"default": json.RawMessage("false"), "none": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newLoop(t, loopagent.Config{MaxIterations: 1}, humanagent.Config{Name: "review", Text: "Good?", OutputKey: "review",
					Timeout: time.Minute, Default: value})
				if err := h.run(); !errors.Is(err, agent.ErrWaiting) {
					t.Fatalf("got error %v", err)
				}
				time.Sleep(2 * time.Minute)
				err := h.run()
				if value == nil {
					if !errors.Is(err, humanagent.ErrNoAnswer) {
						t.Errorf("got error %v, want %v", err, humanagent.ErrNoAnswer)
					}
					return
				}
				if review, _ := h.view().State().Get("review"); err != nil || fmt.Sprint(review) != "map[approved:false reason:]" {
					t.Errorf("got %v, %v", review, err)
				}
			})
		})
	}
}

// A run that nobody can answer says so, and what would help.
func TestCannotAsk(t *testing.T) {
	review, err := humanagent.New(humanagent.Config{Name: "review", Text: "Good?"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("app", review)
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range r.Run(t.Context(), "ana", "s1", nil, agent.RunConfig{}) {
	}
	if !errors.Is(err, agent.ErrCannotAsk) || !strings.Contains(err.Error(), "it asks: Good?") {
		t.Errorf("got error %v", err)
	}
}

// Everything that is wrong with a config is said at once.
func TestConfigIsChecked(t *testing.T) {
	_, err := humanagent.New(humanagent.Config{
		Name: "a", Kind: "guess", Options: []string{"x"}, Keys: []string{"k"}, ExitIfApproved: true, Timeout: -1, Default: json.RawMessage("1"),
	})
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, want := range []string{"Text is empty", `not "guess"`, "Keys are for", "Options are for", "ExitIfApproved is for", "negative", "Default"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q says nothing of %q", err, want)
		}
	}
	if _, err := humanagent.New(humanagent.Config{Name: "a", Text: "Good?", Timeout: time.Hour,
		Default: json.RawMessage(`"yes"`)}); err == nil || !strings.Contains(err.Error(), "true or false") {
		t.Errorf("a default that is no answer: %v", err)
	}
}
