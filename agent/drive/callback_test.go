// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// diary notes what was called, in order.
type diary struct{ lines []string }

func (d *diary) before(line string, text string, err error) agent.BeforeAgentCallback {
	return func(agent.Context) (*genai.Content, error) {
		d.lines = append(d.lines, line)
		return entries(text), err
	}
}

func (d *diary) after(line string, text string, err error) agent.AfterAgentCallback {
	return agent.AfterAgentCallback(d.before(line, text, err))
}

func (d *diary) run(end func(agent.InvocationContext, yield)) func(agent.InvocationContext, yield) {
	return func(ctx agent.InvocationContext, yield yield) {
		d.lines = append(d.lines, "body")
		end(ctx, yield)
	}
}

func entries(text string) *genai.Content {
	if text == "" {
		return nil
	}
	return genai.NewContentFromText(text, genai.RoleModel)
}

// E7, U8
func TestCallbacks(t *testing.T) {
	hello := func(_ agent.InvocationContext, yield yield) { yield(says("hello"), nil) }
	type befores = []agent.BeforeAgentCallback
	type afters = []agent.AfterAgentCallback
	for _, tt := range []struct {
		name   string
		config func(*diary) (befores, afters)
		run    func(agent.InvocationContext, yield)
		leave  int // the consumer leaves after so many events; 0 never
		calls  []string
		said   []string
		err    string
	}{
		{
			name: "run around the body in order",
			config: func(d *diary) (befores, afters) {
				return befores{d.before("b1", "", nil), d.before("b2", "", nil)}, afters{d.after("a1", "", nil), d.after("a2", "", nil)}
			},
			calls: []string{"b1", "b2", "body", "a1", "a2"}, said: []string{"a: hello"},
		},
		{
			name: "content from before takes the body's place",
			config: func(d *diary) (befores, afters) {
				return befores{d.before("b1", "instead", nil), d.before("b2", "never", nil)}, afters{d.after("a1", "", nil)}
			},
			calls: []string{"b1"}, said: []string{"a: instead"},
		},
		{
			name: "content from after is said last",
			config: func(d *diary) (befores, afters) {
				return nil, afters{d.after("a1", "goodbye", nil), d.after("a2", "never", nil)}
			},
			calls: []string{"body", "a1"}, said: []string{"a: hello", "a: goodbye"},
		},
		{
			name: "an error from before ends the agent",
			config: func(d *diary) (befores, afters) {
				return befores{d.before("b1", "", errBoom), d.before("b2", "", nil)}, afters{d.after("a1", "", nil)}
			},
			calls: []string{"b1"}, said: []string{}, err: `agent "a" (a): before agent callback: boom`,
		},
		{
			name: "an error from after ends the agent",
			config: func(d *diary) (befores, afters) {
				return nil, afters{d.after("a1", "", errBoom), d.after("a2", "", nil)}
			},
			calls: []string{"body", "a1"}, said: []string{"a: hello"}, err: `agent "a" (a): after agent callback: boom`,
		},
		{
			name:   "after is left out when the agent failed",
			config: func(d *diary) (befores, afters) { return nil, afters{d.after("a1", "", nil)} },
			run:    func(_ agent.InvocationContext, yield yield) { yield(nil, errBoom) },
			calls:  []string{"body"}, said: []string{}, err: `agent "a" (a): boom`,
		},
		{
			name:   "after is left out when the agent panicked",
			config: func(d *diary) (befores, afters) { return nil, afters{d.after("a1", "", nil)} },
			run:    func(agent.InvocationContext, yield) { panic("oh no") },
			calls:  []string{"body"}, said: []string{}, err: `agent "a" (a): panic: oh no`,
		},
		{
			name:   "after is left out when the agent ended the invocation",
			config: func(d *diary) (befores, afters) { return nil, afters{d.after("a1", "", nil)} },
			run: func(ctx agent.InvocationContext, yield yield) {
				ctx.EndInvocation()
				yield(says("hello"), nil)
			},
			calls: []string{"body"}, said: []string{"a: hello"},
		},
		{
			name:   "after is left out when the consumer left",
			config: func(d *diary) (befores, afters) { return nil, afters{d.after("a1", "", nil)} },
			leave:  1, calls: []string{"body"}, said: []string{"a: hello"},
		},
		{
			name: "after is left out when the consumer left at the answer of before",
			config: func(d *diary) (befores, afters) {
				return befores{d.before("b1", "instead", nil)}, afters{d.after("a1", "", nil)}
			},
			leave: 1, calls: []string{"b1"}, said: []string{"a: instead"},
		},
		{
			name: "a panic is an error of the agent",
			config: func(d *diary) (befores, afters) {
				return befores{func(agent.Context) (*genai.Content, error) { panic("oh no") }}, nil
			},
			said: []string{}, err: `agent "a" (a): panic: oh no`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &diary{}
			if tt.run == nil {
				tt.run = hello
			}
			b, a := tt.config(d)
			x := must(t, agent.Config{Name: "a", Run: body(d.run(tt.run)), BeforeAgentCallbacks: b, AfterAgentCallbacks: a})
			said, err := []string{}, ""
			for ev, e := range x.Run(invocation(t.Context())) {
				if e != nil {
					err = e.Error()
					break
				}
				if said = append(said, ev.Author+": "+ev.Text()); len(said) == tt.leave {
					break
				}
			}
			if diff := cmp.Diff(tt.calls, d.lines); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.said, said); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if err != tt.err {
				t.Errorf("got error %q, want %q", err, tt.err)
			}
		})
	}
}

// E7, D9: what a callback changes is in the log, content or not.
func TestCallbackChangesBecomeAnEvent(t *testing.T) {
	files := &files{}
	view := session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1"})
	ctx := drive.NewInvocation(t.Context(), drive.Invocation{ID: "e-1", Session: view, Artifacts: files})
	var seen any
	a := must(t, agent.Config{
		Name: "a",
		BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
			if err := ctx.State().Set("topic", "cats"); err != nil {
				return nil, err
			}
			_, err := ctx.Artifacts().Save(ctx, "report.md", genai.NewPartFromText("# Report"))
			return nil, err
		}},
		Run: body(func(ctx agent.InvocationContext, yield yield) {
			seen, _ = ctx.Session().State().Get("topic")
			yield(says("hello"), nil)
		}),
		AfterAgentCallbacks: []agent.AfterAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
			if v, err := ctx.ReadonlyState().Get("topic"); err != nil || v != "cats" {
				return nil, errors.New("after does not see what before set")
			}
			ctx.Actions().Escalate = true
			return entries("enough"), ctx.State().Set("done", true)
		}},
	})
	var events []*session.Event
	for ev, err := range a.Run(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		view.Apply(ev) // as a runner does
		events = append(events, ev)
	}
	if len(events) != 3 {
		t.Fatalf("got %v", events)
	}
	if seen != "cats" {
		t.Errorf("what a callback sets is in the state when its event is in the log: the agent saw %v", seen)
	}
	want := []session.EventActions{
		{StateDelta: map[string]any{"topic": "cats"}, ArtifactDelta: map[string]int64{"report.md": 7}},
		{},
		{StateDelta: map[string]any{"done": true}, Escalate: true},
	}
	for i, ev := range events {
		if diff := cmp.Diff(want[i], ev.Actions); diff != "" {
			t.Errorf("event %d (-want +got):\n%s", i+1, diff)
		}
		if ev.Author != "a" {
			t.Errorf("event %d is by %q", i+1, ev.Author)
		}
	}
	if got := texts(events); got[0] != "a: " || got[2] != "a: enough" {
		t.Errorf("got %q", got)
	}
}

// E7: an answer from before is one event with the changes made until then.
func TestAnswerAndChangesAreOneEvent(t *testing.T) {
	a := must(t, agent.Config{Name: "a", BeforeAgentCallbacks: []agent.BeforeAgentCallback{
		func(ctx agent.Context) (*genai.Content, error) { return nil, ctx.State().Set("one", 1) },
		func(ctx agent.Context) (*genai.Content, error) { return entries("hi"), ctx.State().Set("two", 2) },
	}})
	events, errs := collect(a.Run(invocation(t.Context())))
	if len(errs) > 0 || len(events) != 1 {
		t.Fatalf("got %v, %v", events, errs)
	}
	if diff := cmp.Diff(map[string]any{"one": 1.0, "two": 2.0}, events[0].Actions.StateDelta); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// E6, E7: both generations of ADK have names for what a callback may know.
func TestCallbackContextKnowsItsInvocation(t *testing.T) {
	var ctx agent.CallbackContext
	a := must(t, agent.Config{Name: "a", BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(c agent.Context) (*genai.Content, error) {
		ctx = c
		return nil, nil
	}}})
	collect(nest(t, a).Run(invocation(t.Context())))
	if ctx.AgentName() != "a" || ctx.AppName() != "app" || ctx.UserID() != "ana" || ctx.SessionID() != "s1" || ctx.InvocationID() != "e-1" {
		t.Errorf("got %q, %q, %q, %q, %q", ctx.AgentName(), ctx.AppName(), ctx.UserID(), ctx.SessionID(), ctx.InvocationID())
	}
	if ctx.Agent() != a || ctx.UserContent().Parts[0].Text != "Hello" || ctx.FunctionCallID() != "" || ctx.ToolConfirmation() != nil {
		t.Errorf("got %v, %v, %q, %v", ctx.Agent(), ctx.UserContent(), ctx.FunctionCallID(), ctx.ToolConfirmation())
	}
	if ctx.Artifacts() != nil || ctx.Memory() != nil {
		t.Errorf("without services there are none, got %v, %v", ctx.Artifacts(), ctx.Memory())
	}
	if _, err := ctx.SearchMemory(t.Context(), "cats"); err == nil {
		t.Error("a search without a memory service: want an error")
	}
	if err := ctx.RequestConfirmation("really?", nil); err == nil {
		t.Error("a request for a confirmation outside a tool call: want an error")
	}
	if drive.At(ctx).Address() != "root/middle/a" {
		t.Errorf("got address %q", drive.At(ctx).Address())
	}
}

// Tools ask for a person's consent by their context.
func TestRequestConfirmationIsPartOfTheEvent(t *testing.T) {
	answer := &toolconfirmation.ToolConfirmation{Hint: "earlier", Confirmed: true}
	var actions session.EventActions
	ctx := agent.NewToolContext(invocation(t.Context()), "call-1", &actions, answer)
	if ctx.FunctionCallID() != "call-1" || ctx.ToolConfirmation() != answer {
		t.Errorf("got %q, %v", ctx.FunctionCallID(), ctx.ToolConfirmation())
	}
	if err := ctx.RequestConfirmation("Deletes 12 files", map[string]any{"n": 12}); err != nil {
		t.Fatal(err)
	}
	want := session.EventActions{
		SkipSummarization: true,
		RequestedToolConfirmations: map[string]toolconfirmation.ToolConfirmation{
			"call-1": {Hint: "Deletes 12 files", Payload: map[string]any{"n": 12}},
		},
	}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if agent.NewToolContext(invocation(t.Context()), "", nil, nil).Actions() == nil {
		t.Error("a tool context always has actions")
	}
}

// D9: state is that of the step: removed keys, failed saves and iteration:
// keys included.
func TestStateOfACallContext(t *testing.T) {
	var actions session.EventActions
	boom := &files{err: errBoom}
	ctx := agent.NewCallbackContext(drive.NewInvocation(t.Context(), drive.Invocation{
		Session:   session.NewView(session.ViewConfig{State: map[string]any{"old": 1}}),
		Artifacts: boom,
	}), &actions)
	if err := ctx.State().Set("old", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ctx.State().Get("old"); !errors.Is(err, session.ErrStateKeyNotExist) {
		t.Errorf("got %v", err)
	}
	if v, ok := actions.StateDelta["old"]; v != nil || !ok {
		t.Errorf("a removal is part of the delta, got %v", actions.StateDelta)
	}
	if _, err := ctx.Artifacts().Save(ctx, "x", nil); !errors.Is(err, errBoom) || actions.ArtifactDelta != nil {
		t.Errorf("a save that failed is not in the delta: %v, %v", err, actions.ArtifactDelta)
	}
}

// files is a stand-in for what a runner makes of an artifact service.
type files struct {
	err error
}

func (f *files) Save(context.Context, string, *genai.Part) (*artifact.SaveResponse, error) {
	return &artifact.SaveResponse{Version: 7}, f.err
}

func (f *files) List(context.Context) (*artifact.ListResponse, error) {
	return &artifact.ListResponse{}, f.err
}

func (f *files) Load(ctx context.Context, name string) (*artifact.LoadResponse, error) {
	return f.LoadVersion(ctx, name, 0)
}

func (f *files) LoadVersion(_ context.Context, name string, _ int) (*artifact.LoadResponse, error) {
	switch name {
	case "text.md":
		return &artifact.LoadResponse{Part: genai.NewPartFromText("# Text")}, nil
	case "data.md":
		return &artifact.LoadResponse{Part: genai.NewPartFromBytes([]byte("# Data"), "text/markdown")}, nil
	case "picture.png":
		return &artifact.LoadResponse{Part: genai.NewPartFromBytes([]byte{0x89, 'P', 'N', 'G', 0xff}, "image/png")}, nil
	case "broken.md":
		return nil, errBoom
	}
	return nil, artifact.ErrNotFound
}

// LOOP 4, T2: a callback that ends the invocation, or asks to leave, keeps the agent
// from running; what it has changed counts.
func TestCallbackBeforeThatEndsTheAgent(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(agent.Context)
	}{
		{"EndInvocation", func(ctx agent.Context) { ctx.EndInvocation() }},
		{"Escalate", func(ctx agent.Context) { ctx.Actions().Escalate = true }},
		{"Exit", func(ctx agent.Context) { ctx.Actions().Exit = &session.Exit{Reason: "done"} }},
	} {
		ran := false
		a := must(t, agent.Config{
			Name: "a",
			BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
				tt.end(ctx)
				return nil, ctx.State().Set("seen", true)
			}},
			Run:                 body(func(agent.InvocationContext, yield) { ran = true }),
			AfterAgentCallbacks: []agent.AfterAgentCallback{func(agent.Context) (*genai.Content, error) { ran = true; return nil, nil }},
		})
		evs, errs := collect(drive.Run(invocation(t.Context()), a))
		if len(evs) != 1 || len(errs) != 0 || ran || evs[0].Actions.StateDelta["seen"] != true {
			t.Errorf("%s: events %v, errors %v, ran %v", tt.name, evs, errs, ran)
		}
	}
}
