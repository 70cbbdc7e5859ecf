// SPDX-License-Identifier: Apache-2.0

package agenttool_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/agenttool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

type yield = func(*session.Event, error) bool

// custom is an agent that does what run does.
func custom(t *testing.T, name string, run func(agent.InvocationContext, yield)) agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Config{Name: name, Description: "Does " + name + ".",
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(y func(*session.Event, error) bool) { run(ctx, y) }
		}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func says(text string) *session.Event {
	ev := &session.Event{}
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	return ev
}

// function is the tool of an agent.
func function(t *testing.T, a agent.Agent, cfg *agenttool.Config) tool.Function {
	t.Helper()
	f, ok := agenttool.New(a, cfg).(tool.Function)
	if !ok {
		t.Fatal("an agent tool can be called")
	}
	return f
}

// call is what a caller's turn of tool calls left.
type call struct {
	res map[string]any
	err error
	ev  *session.Event
}

// callers is an agent that calls a tool each time that it runs.
func callers(t *testing.T, f tool.Function, calls *[]call) agent.Agent {
	t.Helper()
	return custom(t, "caller", func(ctx agent.InvocationContext, y yield) {
		c := call{ev: session.NewEvent(ctx, ctx.InvocationID())}
		c.res, c.err = tool.Call(agent.NewToolContext(ctx, "call-1", &c.ev.Actions, nil), f, map[string]any{"request": "count to three"})
		answer := c.res
		if c.err != nil {
			answer = map[string]any{"error": c.err.Error()}
		}
		c.ev.Content = genai.NewContentFromFunctionResponse(f.Name(), answer, genai.RoleUser)
		*calls = append(*calls, c)
		y(c.ev, nil)
	})
}

// run runs a tree in a session, with artifacts and marks, and returns what is in
// the session in the end.
func run(t *testing.T, root agent.Agent, state map[string]any) session.Session {
	t.Helper()
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: svc, ArtifactService: artifact.InMemoryService(), AutoCreateSession: true, Durable: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("Hello", genai.RoleUser), agent.RunConfig{},
		runner.WithStateDelta(state)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := svc.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	return got.Session
}

// once calls a tool once, in a run.
func once(t *testing.T, a agent.Agent, cfg *agenttool.Config) (call, session.Session) {
	t.Helper()
	var calls []call
	s := run(t, callers(t, function(t, a, cfg), &calls), map[string]any{"topic": "tides"})
	if len(calls) != 1 {
		t.Fatalf("got %d calls", len(calls))
	}
	return calls[0], s
}

func TestDeclaration(t *testing.T) {
	f := agenttool.New(custom(t, "helper", nil), nil)
	req := &model.LLMRequest{}
	if err := tool.Process(nil, req, f); err != nil {
		t.Fatal(err)
	}
	d := req.Config.Tools[0].FunctionDeclarations[0]
	if d.Name != "helper" || d.Description != "Does helper." || d.ParametersJsonSchema == nil || f.IsLongRunning() {
		t.Errorf("got %+v", d)
	}
}

// A12: an agent as a tool. It sees its request and nothing else that was said.
func TestAgentAnswersItsRequest(t *testing.T) {
	helper := custom(t, "helper", func(ctx agent.InvocationContext, y yield) {
		first := &session.Event{}
		first.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
			genai.NewPartFromText("I will look it up."), genai.NewPartFromFunctionCall("look", nil),
		}}
		partial := says("partial")
		partial.Partial = true
		for _, ev := range []*session.Event{first, partial} {
			if !y(ev, nil) {
				return
			}
		}
		history := []string{}
		for ev := range ctx.Session().Events().All() {
			if ev.Mark == nil {
				history = append(history, ev.Author+": "+ev.Text())
			}
		}
		last := &session.Event{}
		last.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
			{Text: "let me think", Thought: true}, {Text: strings.Join(history, " | ")}, {Text: " | asked " + ctx.UserContent().Parts[0].Text},
		}}
		if y(last, nil) {
			y(&session.Event{}, nil) // nothing more to say
		}
	})
	got, s := once(t, helper, nil)
	want := "user: count to three | helper: I will look it up. | asked count to three"
	if got.err != nil || got.res["result"] != want {
		t.Errorf("got %v, %v", got.res, got.err)
	}
	if got.ev.Actions.SkipSummarization {
		t.Error("the caller's turn goes on")
	}
	for ev := range s.Events().All() {
		if ev.Author == "helper" || ev.Address.Agent() == "helper" {
			t.Errorf("what the agent says is not in the log: %q %v", ev.Text(), ev.Mark)
		}
	}
	silent := custom(t, "silent", func(agent.InvocationContext, yield) {})
	if got, _ := once(t, silent, nil); got.err != nil || got.res["result"] != "" {
		t.Errorf("an agent that says nothing answers %v, %v", got.res, got.err)
	}
	if got, _ := once(t, helper, &agenttool.Config{SkipSummarization: true}); !got.ev.Actions.SkipSummarization {
		t.Error("the answer ends the caller's turn if so configured")
	}
}

func TestAgentThatOnlyThinksAloudIsQuoted(t *testing.T) {
	got, _ := once(t, custom(t, "helper", func(_ agent.InvocationContext, y yield) {
		ev := says("I approve.")
		ev.Content.Parts = append(ev.Content.Parts, genai.NewPartFromFunctionCall("exit_loop", nil))
		y(ev, nil)
	}), nil)
	if got.res["result"] != "I approve." {
		t.Errorf("got %v", got.res)
	}
	if got, _ = once(t, custom(t, "helper", func(agent.InvocationContext, yield) {}), nil); got.err != nil || got.res["result"] != "" {
		t.Errorf("got %v, %v", got.res, got.err)
	}
}

// State and artifacts flow through, unlike ADK's.
func TestStateAndArtifactsFlowThrough(t *testing.T) {
	helper := custom(t, "helper", func(ctx agent.InvocationContext, y yield) {
		topic, err := drive.At(ctx).State().Get("topic")
		if err != nil {
			y(nil, err)
			return
		}
		ev := says("done")
		call := agent.NewToolContext(ctx, "inner", &ev.Actions, nil)
		if _, err := call.Artifacts().Save(ctx, "notes.txt", genai.NewPartFromText("high at noon")); err != nil {
			y(nil, err)
			return
		}
		if err := errors.Join(call.State().Set("found", fmt.Sprint("about ", topic)), call.State().Set("topic", nil),
			call.State().Set("temp:draft", 1)); err != nil {
			y(nil, err)
			return
		}
		if !y(ev, nil) {
			return
		}
		again := says("done")
		again.Actions.StateDelta = map[string]any{"by_event": true}
		y(again, nil)
	})
	got, s := once(t, helper, nil)
	if got.err != nil {
		t.Fatal(got.err)
	}
	want := map[string]any{"found": "about tides", "topic": nil, "temp:draft": 1.0, "by_event": true}
	if diff := cmp.Diff(want, got.ev.Actions.StateDelta); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{"notes.txt": 1}, got.ev.Actions.ArtifactDelta); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"found": "about tides", "by_event": true}, maps.Collect(s.State().All())); diff != "" {
		t.Errorf("after the run: %s", diff)
	}
}

// iteration: keys are those of the caller's loop, and a loop inside keeps its
// own.
func TestIterationKeysStayInTheirLoop(t *testing.T) {
	step := custom(t, "step", func(_ agent.InvocationContext, y yield) {
		ev := says("step")
		ev.Actions.StateDelta = map[string]any{"iteration:own": 1}
		y(ev, nil)
	})
	inner, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "inner", SubAgents: []agent.Agent{step}}, MaxIterations: 2})
	if err != nil {
		t.Fatal(err)
	}
	helper := custom(t, "helper", func(ctx agent.InvocationContext, y yield) {
		if v, err := drive.At(ctx).State().Get("iteration:outer"); err != nil || v != "seen" {
			y(nil, fmt.Errorf("the caller's key: %v, %v", v, err))
			return
		}
		for ev, err := range drive.Run(ctx, inner) {
			if !y(ev, err) || err != nil {
				return
			}
		}
		ev := says("helped")
		ev.Actions.StateDelta = map[string]any{"iteration:outer": "changed"}
		y(ev, nil)
	})
	var calls []call
	caller := callers(t, function(t, helper, nil), &calls)
	first := custom(t, "first", func(_ agent.InvocationContext, y yield) {
		ev := says("first")
		ev.Actions.StateDelta = map[string]any{"iteration:outer": "seen"}
		y(ev, nil)
	})
	outer, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "outer", SubAgents: []agent.Agent{first, caller}},
		MaxIterations: 1})
	if err != nil {
		t.Fatal(err)
	}
	run(t, outer, nil)
	if calls[0].err != nil {
		t.Fatal(calls[0].err)
	}
	if diff := cmp.Diff(map[string]any{"iteration:outer": "changed"}, calls[0].ev.Actions.StateDelta); diff != "" {
		t.Error(diff)
	}
}

// exits is an agent that asks to leave a loop; a nil Exit only escalates.
func exits(t *testing.T, x *session.Exit) agent.Agent {
	return custom(t, "judge", func(_ agent.InvocationContext, y yield) {
		ev := says("enough")
		ev.Actions.Escalate, ev.Actions.Exit = true, x
		y(ev, nil)
	})
}

// LOOP 6, C20: an exit that no loop inside has handled is the caller's.
func TestExitReachesTheCallersLoop(t *testing.T) {
	inLoop := func(a agent.Agent) agent.Agent {
		l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "inner", SubAgents: []agent.Agent{a}}, MaxIterations: 3})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, tt := range []struct {
		name  string
		agent agent.Agent
		calls int
		want  *session.Exit
	}{
		{"an exit", exits(t, &session.Exit{By: "judge", Reason: "perfect", Score: new(9.0)}), 1,
			&session.Exit{By: "caller", Reason: "perfect", Score: new(9.0), HandledBy: "refine"}},
		{"a mere escalation", exits(t, nil), 1, &session.Exit{By: "caller", Plain: true, HandledBy: "refine"}},
		{"handled inside", inLoop(exits(t, &session.Exit{})), 2, nil},
		{"handled inside, and further", inLoop(exits(t, &session.Exit{Scope: "refine"})), 1,
			&session.Exit{By: "caller", Scope: "refine", HandledBy: "refine"}},
		{"refused inside", exits(t, &session.Exit{Refused: "no"}), 2, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls []call
			l, err := loopagent.New(loopagent.Config{
				AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{callers(t, function(t, tt.agent, nil), &calls)}},
				MaxIterations: 2, Rules: loop.Plan{CanExit: []string{"caller"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			run(t, l, nil)
			if len(calls) != tt.calls || calls[0].res["result"] != "enough" {
				t.Fatalf("got %d calls, %v", len(calls), calls[0])
			}
			a := calls[0].ev.Actions
			if diff := cmp.Diff(tt.want, a.Exit); diff != "" || a.Escalate != (tt.want != nil) || a.SkipSummarization != a.Escalate {
				t.Errorf("got %+v\n%s", a, diff)
			}
		})
	}
}

func TestFailureOfTheAgentIsTheTools(t *testing.T) {
	broken := errors.New("broken")
	got, _ := once(t, custom(t, "helper", func(_ agent.InvocationContext, y yield) { y(nil, broken) }), nil)
	if want := `agent "helper" (caller/helper): broken`; !errors.Is(got.err, broken) || got.err.Error() != want {
		t.Errorf("got %v, want %s", got.err, want)
	}
	got, _ = once(t, custom(t, "helper", func(agent.InvocationContext, yield) { panic("boom") }), nil)
	if want := `agent "helper" (caller/helper): panic: boom`; got.err == nil || got.err.Error() != want {
		t.Errorf("got %v, want %s", got.err, want)
	}
	got, _ = once(t, custom(t, "helper", func(ctx agent.InvocationContext, y yield) {
		ev := says("may I?")
		if err := agent.NewToolContext(ctx, "inner", &ev.Actions, nil).RequestConfirmation("delete?", nil); err != nil {
			y(nil, err)
			return
		}
		y(ev, nil)
	}), nil)
	if got.err == nil || !strings.Contains(got.err.Error(), `agent "helper" needs a person's consent`) {
		t.Errorf("got %v", got.err)
	}
	if _, err := function(t, custom(t, "helper", nil), nil).Run(agent.NewToolContext(drive.NewInvocation(t.Context(), drive.Invocation{}), "c",
		nil, nil), nil); !errors.Is(err, functiontool.ErrInvalidArgument) {
		t.Errorf("got %v", err)
	}
}

func TestCancellationReachesTheAgent(t *testing.T) {
	cause := errors.New("enough of this")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	helper := custom(t, "helper", func(ctx agent.InvocationContext, y yield) {
		cancel(cause)
		<-ctx.Done()
		y(nil, ctx.Err())
	})
	ictx := drive.NewInvocation(ctx, drive.Invocation{Session: session.NewView(session.ViewConfig{})})
	if _, err := function(t, helper, nil).Run(agent.NewToolContext(ictx, "call-1", nil, nil),
		map[string]any{"request": "x"}); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// Calls of one turn run side by side, and so may the steps of the agent.
func TestConcurrentCalls(t *testing.T) {
	saver := func(name string) agent.Agent {
		return custom(t, name, func(ctx agent.InvocationContext, y yield) {
			ev := says(name)
			call := agent.NewToolContext(ctx, "inner", &ev.Actions, nil)
			if _, err := call.Artifacts().Save(ctx, name, genai.NewPartFromText(name)); err != nil {
				y(nil, err)
				return
			}
			if err := call.State().Set(name, 1); err != nil {
				y(nil, err)
				return
			}
			y(ev, nil)
		})
	}
	both, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "both", SubAgents: []agent.Agent{saver("a"),
		saver("b")}}})
	if err != nil {
		t.Fatal(err)
	}
	f := function(t, both, nil)
	root := custom(t, "root", func(ctx agent.InvocationContext, y yield) {
		evs := make([]*session.Event, 4)
		var wg sync.WaitGroup
		for i := range evs {
			evs[i] = says("called")
			wg.Go(func() {
				if _, err := f.Run(agent.NewToolContext(ctx, fmt.Sprint(i), &evs[i].Actions, nil), map[string]any{"request": "go"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, ev := range evs {
			if diff := cmp.Diff(map[string]any{"a": 1.0, "b": 1.0}, ev.Actions.StateDelta); diff != "" || len(ev.Actions.ArtifactDelta) != 2 {
				t.Error(diff, ev.Actions.ArtifactDelta)
			}
			if !y(ev, nil) {
				return
			}
		}
	})
	run(t, root, nil)
}

func TestNewPanicsWithoutAnAgent(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no agent is a mistake in the program")
		}
	}()
	agenttool.New(nil, nil)
}
