// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"encoding/json"
	"errors"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// house is one session in which a definition runs, in one process after the other.
type house struct {
	*testing.T
	def    *definition.Definition
	cfg    definition.BuildConfig
	svc    session.Service
	id     string           // the run's
	events []*session.Event // what the last process has said
	after  func(*session.Event) bool
	pause  *agent.Pause // of the next process; nil for one of its own
	resume []runner.ResumeOption
}

func newHouse(t *testing.T, text string, cfg definition.BuildConfig) *house {
	t.Helper()
	return &house{T: t, def: parse(t, text), cfg: cfg, svc: session.InMemoryService()}
}

// run runs the definition in a new process, which goes on where the last one was
// cut off. It dies at the event after which after says so.
func (h *house) run() error {
	h.Helper()
	root, err := h.def.Build(h.Context(), h.cfg)
	if err != nil {
		h.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: h.svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		h.Fatal(err)
	}
	cfg := agent.RunConfig{Pause: h.pause}
	if cfg.Pause == nil {
		cfg.Pause = new(agent.Pause)
	}
	seq := r.Resume(h.Context(), "ana", "s1", h.id, cfg, h.resume...)
	if h.id == "" {
		state, err := h.def.InitialState(nil)
		if err != nil {
			h.Fatal(err)
		}
		seq = r.Run(h.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), cfg, runner.WithStateDelta(state))
	}
	h.events = nil
	for ev, err := range seq {
		if err != nil {
			return err
		}
		h.id = ev.InvocationID
		if h.events = append(h.events, ev); h.after != nil && h.after(ev) {
			return errDied
		}
	}
	return nil
}

var errDied = errors.New("the process died")

func (h *house) state(key string) any {
	h.Helper()
	v, err := h.view().State().Get(key)
	if err != nil && !errors.Is(err, session.ErrStateKeyNotExist) {
		h.Fatal(err)
	}
	return v
}

func (h *house) view() session.Session {
	h.Helper()
	got, err := h.svc.Get(h.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		h.Fatal(err)
	}
	return got.Session
}

// asked runs up to a question.
func (h *house) asked() mark.Question {
	h.Helper()
	err := h.run()
	w, ok := errors.AsType[*agent.WaitingError](err)
	if !ok {
		h.Fatalf("the run does not wait: %v", err)
	}
	return w.Question
}

func (h *house) answer(q mark.Question, value string) {
	h.Helper()
	a := mark.Answer{ID: q.ID, Value: json.RawMessage(value), Reason: "because", By: "ana"}
	m, err := mark.New(mark.KindAnswered, a)
	if err == nil {
		err = q.Check(&a)
	}
	if err == nil {
		err = h.svc.AppendEvent(h.Context(), h.view(), &session.Event{InvocationID: h.id, Author: "user", Mark: m})
	}
	if err != nil {
		h.Fatal(err)
	}
}
