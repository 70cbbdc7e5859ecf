// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// guarded are tools that a person has to allow, and that say how they were
// called.
func guarded(t testing.TB, names ...string) tool.Toolset {
	var tools []tool.Tool
	for _, name := range names {
		made, err := functiontool.New(functiontool.Config{Name: name}, func(ctx tool.Context, in map[string]any) (map[string]any, error) {
			c := ctx.ToolConfirmation()
			return map[string]any{"call": ctx.FunctionCallID(), "args": in, "payload": c.Payload}, ctx.State().Set("did_"+name, true)
		})
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, made)
	}
	return tool.WithConfirmation(set{tools: tools}, true, nil)
}

// questions are the calls by which events ask a person.
func questions(evs []*session.Event) []*genai.FunctionCall {
	var all []*genai.FunctionCall
	for _, ev := range evs {
		if ev.Content == nil {
			continue
		}
		for _, p := range ev.Content.Parts {
			if p.FunctionCall != nil && p.FunctionCall.Name == toolconfirmation.FunctionCallName {
				all = append(all, p.FunctionCall)
			}
		}
	}
	return all
}

// responds is a person's answer to a question.
func responds(q *genai.FunctionCall, response map[string]any) *genai.Part {
	return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: q.ID, Name: toolconfirmation.FunctionCallName, Response: response}}
}

func yes(q *genai.FunctionCall) *genai.Part { return responds(q, map[string]any{"confirmed": true}) }

// send is ask with a message of parts.
func (th *thread) send(parts ...*genai.Part) (evs []*session.Event, err error) {
	th.Helper()
	for ev, e := range th.runner.Run(th.Context(), "ana", "s1", &genai.Content{Role: genai.RoleUser, Parts: parts}, th.cfg) {
		if e != nil {
			err = e
			continue
		}
		evs = append(evs, ev)
	}
	return evs, err
}

// asked runs the agent and demands n questions.
func (th *thread) asked(n int) []*genai.FunctionCall {
	th.Helper()
	evs, err := th.ask(th.Context(), "go")
	if err != nil {
		th.Fatal(err)
	}
	qs := questions(evs)
	if len(qs) != n {
		th.Fatalf("%d questions in %q", len(qs), lines(evs))
	}
	return qs
}

func call(name string, args map[string]any) scripted.Answer {
	return scripted.Answer{Calls: []scripted.Call{{Name: name, Args: args}}}
}

const rejected = `answer delete map[error:error tool "delete" call is rejected]`

// LOOP 32: a call that a person has to allow ends the turn. The answer runs it,
// under the same ID, and the model is asked on.
func TestConfirmation(t *testing.T) {
	ran := "answer delete map[args:map[file:a.txt] call:call_a_1_1 payload:%s]"
	for _, tt := range []struct {
		name   string
		answer map[string]any
		want   string
	}{
		{"yes", map[string]any{"confirmed": true}, fmt.Sprintf(ran, "<nil>")},
		{"yes, and more", map[string]any{"confirmed": true, "payload": map[string]any{"days": 3}}, fmt.Sprintf(ran, "map[days:3]")},
		{"yes, as ADK's web page says it", map[string]any{"response": `{"confirmed":true,"payload":"all"}`}, fmt.Sprintf(ran, "all")},
		{"no", map[string]any{"confirmed": false}, rejected},
		{"no, as ADK's web page says it", map[string]any{"response": `{"confirmed":false}`}, rejected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := record(script(t, call("delete", map[string]any{"file": "a.txt"}), says("done")))
			th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Toolsets: []tool.Toolset{guarded(t, "delete")}, OutputKey: "out"}))
			evs, err := th.ask(t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			pending := `a: answer delete map[error:error tool "delete" requires confirmation, please approve or reject]`
			if diff := cmp.Diff([]string{"a: call delete", pending, "a: call adk_request_confirmation"}, lines(evs)); diff != "" {
				t.Fatal(diff)
			}
			if _, ok := evs[1].Actions.RequestedToolConfirmations["call_a_1_1"]; !ok {
				t.Errorf("the tool's answer does not say that it waits: %+v", evs[1].Actions)
			}
			q := questions(evs)[0]
			if diff := cmp.Diff([]string{q.ID}, evs[2].LongRunningToolIDs); diff != "" || evs[2].Actions.Escalate || !evs[2].IsFinalResponse() {
				t.Errorf("the question: %+v %s", evs[2], diff)
			}
			wantArgs := `{"originalFunctionCall":{"id":"call_a_1_1","args":{"file":"a.txt"},"name":"delete"},"toolConfirmation":{"hint":"Please approve or reject the tool call delete() by responding with a FunctionResponse with an expected ToolConfirmation payload.","confirmed":false,"payload":null}}`
			if got, err := json.Marshal(q.Args); err != nil || string(got) != wantArgs {
				t.Errorf("the question is %s", got)
			}
			evs, err = th.send(responds(q, tt.answer))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"a: " + tt.want, "a: done"}, lines(evs)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"user: go", "model: call delete", "user: " + tt.want}, rec.heard(1)); diff != "" {
				t.Errorf("what the model hears: %s", diff)
			}
			if did := th.state("did_delete"); (did == true) != (tt.want != rejected) || th.state("out") != "done" {
				t.Errorf("did %v, out %v", did, th.state("out"))
			}
		})
	}
}

// What needs no consent is done at once. A person may answer one question after
// another: the model is asked when none is left, or when the person says
// something else.
func TestSeveralConfirmations(t *testing.T) {
	start := func(t *testing.T) (*recorder, *thread, []*genai.FunctionCall) {
		rec := record(script(t, calls("delete", "look", "send"), says("done"), says("sent")))
		th := newThread(t, newAgent(t, llmagent.Config{
			Name: "a", Model: rec, Tools: []tool.Tool{answering(t, "look", "x")}, Toolsets: []tool.Toolset{guarded(t, "delete", "send")},
		}))
		return rec, th, th.asked(2)
	}
	did := func(name string, n int) string {
		return fmt.Sprintf("answer %s map[args:map[] call:call_a_1_%d payload:<nil>]", name, n)
	}
	t.Run("one after another", func(t *testing.T) {
		rec, th, qs := start(t)
		if th.state("did_look") != nil || th.state("did_delete") != nil {
			t.Error("a tool did not wait")
		}
		evs, err := th.send(yes(qs[1]))
		if diff := cmp.Diff([]string{"a: " + did("send", 3)}, lines(evs)); diff != "" || err != nil || len(rec.requests) != 1 {
			t.Fatalf("%s, %v, asked %d times", diff, err, len(rec.requests))
		}
		evs, err = th.send(responds(qs[0], map[string]any{"confirmed": false}))
		if diff := cmp.Diff([]string{"a: " + rejected, "a: done"}, lines(evs)); diff != "" || err != nil {
			t.Fatal(diff, err)
		}
		want := []string{"user: go", "model: call delete | call look | call send", "user: " + rejected + " | answer look map[text:x] | " + did("send", 3)}
		if diff := cmp.Diff(want, rec.heard(1)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("both in one message", func(t *testing.T) {
		rec, th, qs := start(t)
		evs, err := th.send(yes(qs[1]), yes(qs[0]))
		want := []string{"a: " + did("delete", 1) + " | " + did("send", 3), "a: done"}
		if diff := cmp.Diff(want, lines(evs)); diff != "" || err != nil || len(rec.requests) != 2 {
			t.Fatal(diff, err)
		}
	})
	t.Run("with words", func(t *testing.T) {
		rec, th, qs := start(t)
		if _, err := th.send(yes(qs[0]), genai.NewPartFromText("do not send it")); err != nil {
			t.Fatal(err)
		}
		if len(rec.requests) != 2 {
			t.Fatalf("asked %d times", len(rec.requests))
		}
		heard := rec.heard(1)
		if !strings.Contains(heard[2], did("delete", 1)) || !strings.Contains(heard[2], "requires confirmation") || heard[3] != "user: do not send it" {
			t.Errorf("got %q", heard)
		}
		if evs, err := th.send(yes(qs[1])); err != nil || len(evs) != 2 {
			t.Errorf("the other question stays open: %q, %v", lines(evs), err)
		}
	})
}

// Calls of two turns, confirmed at once, are answered each in its place.
func TestConfirmationsOfTwoTurns(t *testing.T) {
	rec := record(script(t, calls("delete"), calls("send"), says("done")))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Toolsets: []tool.Toolset{guarded(t, "delete", "send")}}))
	qs := append(th.asked(1), th.asked(1)...)
	evs, err := th.send(yes(qs[1]), yes(qs[0]))
	if err != nil || !strings.HasPrefix(lines(evs)[0], "a: answer delete ") {
		t.Fatalf("%q, %v: they run in the order of the calls", lines(evs), err)
	}
	want := []string{
		"user: go", "model: call delete", "user: answer delete map[args:map[] call:call_a_1_1 payload:<nil>]",
		"user: go", "model: call send", "user: answer send map[args:map[] call:call_a_2_1 payload:<nil>]",
	}
	if diff := cmp.Diff(want, rec.heard(2)); diff != "" {
		t.Error(diff)
	}
}

// A tool may ask by itself, for more than a yes, and more than once.
func TestToolAsksByItself(t *testing.T) {
	book := function(t, "book", func(ctx tool.Context) (map[string]any, error) {
		switch c := ctx.ToolConfirmation(); {
		case c == nil:
			return map[string]any{"status": "asked"}, ctx.RequestConfirmation("How many nights?", map[string]any{"nights": 1})
		case !c.Confirmed:
			return map[string]any{"status": "dropped"}, nil
		case c.Payload == "sure":
			return map[string]any{"status": "booked"}, nil
		default:
			return map[string]any{"status": "asked"}, ctx.RequestConfirmation(fmt.Sprintf("Really %v?", c.Payload), nil)
		}
	})
	rec := record(script(t, calls("book"), says("enjoy")))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: []tool.Tool{book}}))
	q := th.asked(1)[0]
	if hint := q.Args["toolConfirmation"].(toolconfirmation.ToolConfirmation).Hint; hint != "How many nights?" {
		t.Errorf("hint %q", hint)
	}
	evs, err := th.send(responds(q, map[string]any{"confirmed": true, "payload": 3}))
	if err != nil {
		t.Fatal(err)
	}
	again := questions(evs)
	if len(again) != 1 || again[0].ID == q.ID || again[0].Args["toolConfirmation"].(toolconfirmation.ToolConfirmation).Hint != "Really 3?" {
		t.Fatalf("got %q", lines(evs))
	}
	evs, err = th.send(responds(again[0], map[string]any{"confirmed": true, "payload": "sure"}))
	if diff := cmp.Diff([]string{"a: answer book map[status:booked]", "a: enjoy"}, lines(evs)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// The log may have been stored in between: what the question says is plain JSON.
func TestConfirmationOfAStoredSession(t *testing.T) {
	a := newAgent(t, llmagent.Config{Name: "a", Model: script(t, call("delete", map[string]any{"file": "a.txt"}), says("done")),
		Toolsets: []tool.Toolset{guarded(t, "delete")}})
	th := newThread(t, a)
	q := th.asked(1)[0]
	stored, err := json.Marshal(collect(th.session().Events()))
	if err != nil {
		t.Fatal(err)
	}
	var evs []*session.Event
	if err := json.Unmarshal(stored, &evs); err != nil {
		t.Fatal(err)
	}
	later := newThread(t, a)
	made, err := later.svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range evs {
		ev.Seq = 0
		if err := later.svc.AppendEvent(t.Context(), made.Session, ev); err != nil {
			t.Fatal(err)
		}
	}
	got, err := later.send(yes(q))
	want := []string{"a: answer delete map[args:map[file:a.txt] call:call_a_1_1 payload:<nil>]", "a: done"}
	if diff := cmp.Diff(want, lines(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func collect(evs session.Events) []*session.Event {
	var all []*session.Event
	for ev := range evs.All() {
		all = append(all, ev)
	}
	return all
}

// With context none the model still sees the call whose answer it gets.
func TestConfirmationWithContextNone(t *testing.T) {
	rec := record(script(t, calls("delete"), says("done")))
	th := newThread(t, newAgent(t, llmagent.Config{
		Name: "a", Model: rec, Toolsets: []tool.Toolset{guarded(t, "delete")}, Context: llmagent.ContextConfig{Policy: llmagent.ContextNone},
	}))
	q := th.asked(1)[0]
	if _, err := th.send(yes(q), genai.NewPartFromText("and hurry")); err != nil {
		t.Fatal(err)
	}
	want := []string{"user: go", "model: call delete", "user: answer delete map[args:map[] call:call_a_1_1 payload:<nil>]", "user: and hurry"}
	if diff := cmp.Diff(want, rec.heard(1)); diff != "" {
		t.Error(diff)
	}
}

// A tool that is gone when the answer comes is an answer to the model.
func TestConfirmedToolIsGone(t *testing.T) {
	there := true
	sets := some(func() ([]tool.Tool, error) {
		if !there {
			return nil, nil
		}
		return guarded(t, "delete").Tools(nil)
	})
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: script(t, calls("delete"), says("done")), Toolsets: []tool.Toolset{sets}}))
	q := th.asked(1)[0]
	there = false
	evs, err := th.send(yes(q))
	if err != nil || len(evs) != 2 || !strings.Contains(lines(evs)[0], `there is no tool "delete"`) {
		t.Errorf("got %q, %v", lines(evs), err)
	}
}

// some is a toolset that is asked each time.
type some func() ([]tool.Tool, error)

func (some) Name() string                                       { return "some" }
func (s some) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return s() }
