// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// talker is an agent that hands the conversation on and back, as those do that
// ask models.
type talker struct {
	agent.Agent
	subs []agent.Agent
	back bool
}

func (t talker) SubAgents() []agent.Agent           { return t.subs }
func (t *talker) Traits(bool) drive.Traits          { return drive.Traits{TransfersToParent: t.back} }
func (t *talker) FindAgent(name string) agent.Agent { return agent.Find(t, name) }

func talks(t testing.TB, name string, back bool, subs ...agent.Agent) *talker {
	return &talker{Agent: speaker(t, name, "I am "+name), subs: subs, back: back}
}

// said stores what somebody has said, in the session of ask.
func said(t testing.TB, svc session.Service, evs ...*session.Event) {
	t.Helper()
	s := get(t, svc)
	for _, ev := range evs {
		if err := svc.AppendEvent(t.Context(), s, ev); err != nil {
			t.Fatal(err)
		}
	}
}

func by(author, text string) *session.Event {
	ev := says(text)
	ev.Author = author
	return ev
}

func newSession(t testing.TB) session.Service {
	t.Helper()
	svc := session.InMemoryService()
	if _, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"}); err != nil {
		t.Fatal(err)
	}
	return svc
}

// A message is for the agent that spoke last, as long as it and all above it
// hand the conversation on and back; or else for the root.
func TestWhoTheMessageIsFor(t *testing.T) {
	desk := talks(t, "desk", true,
		talks(t, "billing", true, talks(t, "refunds", true)),
		talks(t, "travel", false, talks(t, "hotels", true)),
		sequence(t, "line", talks(t, "first", true)))
	quiet, finished := by("desk", ""), by("desk", "")
	quiet.Content, finished.Content, finished.Mark = nil, nil, &mark.Mark{Kind: mark.KindStepFinished}
	for _, tt := range []struct {
		name string
		root agent.Agent
		said []*session.Event
		want string
	}{
		{"nothing said", desk, nil, "desk"},
		{"by the root", desk, []*session.Event{by("billing", "x"), by("desk", "y")}, "desk"},
		{"by another", desk, []*session.Event{by("desk", "x"), by("billing", "y")}, "billing"},
		{"deeper down", desk, []*session.Event{by("refunds", "y")}, "refunds"},
		{"before the user", desk, []*session.Event{by("billing", "y"), by("user", "z")}, "billing"},
		{"by one that is gone", desk, []*session.Event{by("billing", "x"), by("stranger", "y")}, "billing"},
		{"what says nothing", desk, []*session.Event{by("billing", "x"), quiet, finished}, "billing"},
		{"by one that does not hand back", desk, []*session.Event{by("desk", "x"), by("travel", "y")}, "desk"},
		{"below one that does not", desk, []*session.Event{by("hotels", "y")}, "desk"},
		{"in a workflow", desk, []*session.Event{by("desk", "x"), by("first", "y")}, "desk"},
		{"below a root that does not", talks(t, "desk", false, talks(t, "billing", true)), []*session.Event{by("billing", "y")}, "desk"},
		{"below a workflow", sequence(t, "line", talks(t, "first", true), talks(t, "second", true)), []*session.Event{by("second", "y")}, "first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			svc := newSession(t)
			said(t, svc, tt.said...)
			got, err := collect(t, ask(t.Context(), newRunner(t, runner.Config{Agent: tt.root, SessionService: svc}), "hello"))
			if err != nil || len(got) == 0 || got[0] != tt.want+": I am "+tt.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// LOOP 32: the answer to a function call is for the agent that made it,
// wherever it is; that one runs alone.
func TestAnswerIsForWhoMadeTheCall(t *testing.T) {
	line := sequence(t, "line", speaker(t, "first", "one"), speaker(t, "second", "two"))
	asks := func(author, id, name string, long bool) *session.Event {
		ev := by(author, "")
		ev.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{ID: id, Name: name}}}}
		if long {
			ev.LongRunningToolIDs = []string{id}
		}
		return ev
	}
	const question = toolconfirmation.FunctionCallName
	yes := map[string]any{"confirmed": true}
	for _, tt := range []struct {
		name     string
		said     []*session.Event
		id, call string
		response map[string]any
		want     []string
		err      string
	}{
		{"a tool that answers later", []*session.Event{asks("second", "c1", "build", true)}, "c1", "build", nil, []string{"second: two"}, ""},
		{"the newest of two of one ID", []*session.Event{asks("second", "c1", "build", true), asks("first", "c1", "build", true)}, "c1", "build", nil, []string{"first: one"}, ""},
		{"a call that is not there", nil, "c1", "build", nil, []string{"first: one", "second: two"}, ""},
		{"by one that is gone", []*session.Event{asks("gone", "c1", "build", true)}, "c1", "build", nil, []string{"first: one", "second: two"}, ""},
		{"a question", []*session.Event{asks("second", "q1", question, true)}, "q1", question, yes, []string{"second: two"}, ""},
		{"a question that a model made up", []*session.Event{asks("second", "q1", question, false)}, "q1", question, yes, []string{}, `no agent asked for "q1"`},
		{"a question by one that is gone", []*session.Event{asks("gone", "q1", question, true)}, "q1", question, yes, []string{}, `the agent "gone" that asked is no longer among ["first" "line" "second"]`},
		{"a question of another name", []*session.Event{asks("second", "q1", "build", true)}, "q1", question, yes, []string{}, `no agent asked for "q1"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			svc := newSession(t)
			said(t, svc, tt.said...)
			said(t, svc, sets("k", 1)) // without a word
			msg := &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: tt.id, Name: tt.call,
				Response: tt.response}}}}
			r := newRunner(t, runner.Config{Agent: line, SessionService: svc})
			got, err := collect(t, r.Run(t.Context(), "ana", "s1", msg, agent.RunConfig{}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v", err)
			}
			if strings.HasPrefix(tt.err, "nobody") && !errors.Is(err, runner.ErrNotOpen) {
				t.Errorf("%v is no ErrNotOpen", err)
			}
			if n := get(t, svc).Events().Len(); tt.err != "" && n != len(tt.said)+1 {
				t.Errorf("%d events are stored", n-len(tt.said)-1)
			}
		})
	}
}

// An answer to a confirmation that was asked for with two different calls makes neither: the person has seen one
// of them, and nobody knows which.
func TestConfirmationAskedForWithTwoCalls(t *testing.T) {
	ask := func(file string) *session.Event {
		ev := &session.Event{LongRunningToolIDs: []string{"q"}}
		ev.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: toolconfirmation.Question("q",
			&genai.FunctionCall{ID: "call-" + file, Name: "delete", Args: map[string]any{"file": file}}, toolconfirmation.ToolConfirmation{})}}}
		return ev
	}
	for _, tt := range []struct {
		second string
		want   error
	}{{"a", nil}, {"b", runner.ErrNotOpen}} {
		svc := session.InMemoryService()
		asks := 0
		a := custom(t, "root", func(_ agent.InvocationContext, yield yield) {
			if asks++; asks == 1 && yield(ask("a"), nil) && yield(says("let me think"), nil) {
				yield(ask(tt.second), nil)
			}
		})
		r := newRunner(t, runner.Config{Agent: a, SessionService: svc, AutoCreateSession: true})
		send := func(p *genai.Part) error {
			_, err := collect(t, r.Run(t.Context(), "ana", "s1", &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{p}}, agent.RunConfig{}))
			return err
		}
		if err := send(genai.NewPartFromText("go")); err != nil {
			t.Fatal(err)
		}
		before := get(t, svc).Events().Len()
		err := send(&genai.Part{FunctionResponse: &genai.FunctionResponse{ID: "q", Name: toolconfirmation.FunctionCallName,
			Response: map[string]any{"confirmed": true}}})
		if !errors.Is(err, tt.want) {
			t.Errorf("second call about %s: got error %v, want %v", tt.second, err, tt.want)
		}
		if now := get(t, svc).Events().Len(); tt.want != nil && (now != before || asks != 1) {
			t.Errorf("the refused answer is in the log: %d events, %d before", now, before)
		}
	}
}
