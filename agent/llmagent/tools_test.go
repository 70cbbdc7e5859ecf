// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/telemetry/observe"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// A turn is what the model said, then what its tools answered.
func TestATurnsEvents(t *testing.T) {
	rec := record(script(t, scripted.Answer{Text: "let me look", Calls: []scripted.Call{{Name: "look"}}}, says("a cat")))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: []tool.Tool{answering(t, "look", "fur")}}))
	want := []string{"a: let me look | call look", "a: answer look map[text:fur]", "a: a cat"}
	if diff := cmp.Diff(want, th.must("go")); diff != "" {
		t.Error(diff)
	}
	heard := []string{"user: go", "model: let me look | call look", "user: answer look map[text:fur]"}
	if diff := cmp.Diff(heard, rec.heard(1)); diff != "" {
		t.Error(diff)
	}
	if len(rec.heard(0)) != 1 {
		t.Errorf("a later turn changed what was asked in an earlier one: %q", rec.heard(0))
	}
}

// The calls of one turn run side by side; their answers come in the order of
// the calls, and what they do is done together.
func TestCallsOfATurnRunTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(name string, d time.Duration) tool.Tool {
			return function(t, name, func(ctx tool.Context) (map[string]any, error) {
				time.Sleep(d)
				return map[string]any{"by": ctx.FunctionCallID()}, ctx.State().Set("by_"+name, name)
			})
		}
		a := newAgent(t, llmagent.Config{
			Name: "a", Model: script(t, calls("x", "y", "z"), says("done")),
			Tools: []tool.Tool{slow("x", 3*time.Second), slow("y", 2*time.Second), slow("z", time.Second)},
		})
		th := newThread(t, a)
		began := time.Now()
		got := th.must("go")
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
		want := "a: answer x map[by:call_a_1_1] | answer y map[by:call_a_1_2] | answer z map[by:call_a_1_3]"
		if len(got) != 3 || got[1] != want {
			t.Errorf("got %q", got)
		}
		for _, name := range []string{"x", "y", "z"} {
			if th.state("by_"+name) != name {
				t.Errorf("what %s set is lost", name)
			}
		}
	})
}

// clumsy is an observer that panics when a tool is called.
type clumsy struct{ observe.Observer }

func (clumsy) Run(ctx context.Context, _ *observe.Run) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func (clumsy) Step(ctx context.Context, _ *observe.Step) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func (clumsy) ModelCall(ctx context.Context, _ *observe.ModelCall) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func (clumsy) ToolCall(context.Context, *observe.ToolCall) (context.Context, func(error)) {
	panic("overboard")
}

// An observer that panics beside tools that run together fails their agent, as beside one.
func TestPanicOfAnObserverOfTools(t *testing.T) {
	for _, names := range [][]string{{"x"}, {"x", "y"}} {
		var tools []tool.Tool
		for _, name := range names {
			tools = append(tools, answering(t, name, "fur"))
		}
		a := newAgent(t, llmagent.Config{Name: "a", Model: script(t, calls(names...), says("done")), Tools: tools})
		r, err := runner.NewInMemory("app", a)
		if err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range r.Run(t.Context(), "ana", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{Observer: clumsy{}}) {
			last = err
		}
		failed, _ := errors.AsType[*agent.StepError](last)
		crash, ok := errors.AsType[*agent.PanicError](last)
		if !ok || failed == nil || failed.Address != "a" || !strings.Contains(string(crash.Stack), "ToolCall") {
			t.Errorf("%d calls: the run ends with %v", len(names), last)
		}
	}
}

// Whatever goes wrong with a call is the answer to it.
func TestFailedCallsAreAnswers(t *testing.T) {
	tools := []tool.Tool{
		function(t, "fail", func(tool.Context) (map[string]any, error) { return nil, errors.New("no wind") }),
		function(t, "panic", func(tool.Context) (map[string]any, error) { panic("overboard") }),
	}
	for name, want := range map[string]string{
		"fail":  `no wind`,
		"panic": `tool "panic": panic: overboard`,
		"sail":  `there is no tool "sail"; the tools are: fail, panic`,
	} {
		for _, names := range [][]string{{name}, {name, name}} { // alone, and in a goroutine
			rec := record(script(t, calls(names...), says("I see")))
			th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: tools}))
			th.must("go")
			answers := rec.requests[1].Contents[2].Parts
			if len(answers) != len(names) {
				t.Fatalf("%s: %d answers to %d calls", name, len(answers), len(names))
			}
			got, _ := answers[0].FunctionResponse.Response["error"].(string)
			if got != want || strings.Contains(got, "goroutine") {
				t.Errorf("%s: the model is told %q, want %q", name, got, want)
			}
		}
	}
}

func TestToolsets(t *testing.T) {
	rec := record(script(t, calls("look"), says("done")))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Toolsets: []tool.Toolset{set{tools: []tool.Tool{answering(t, "look", "x")}}}}))
	if got := th.must("go"); len(got) != 3 || got[1] != "a: answer look map[text:x]" {
		t.Errorf("got %q", got)
	}
	if decls := rec.requests[0].Config.Tools; len(decls) != 1 || decls[0].FunctionDeclarations[0].Name != "look" {
		t.Errorf("declared %v", decls)
	}
	broken := newAgent(t, llmagent.Config{Name: "a", Model: script(t, says("x")), Toolsets: []tool.Toolset{set{err: errors.New("away")}}})
	if _, err := newThread(t, broken).ask(t.Context(), "go"); err == nil || !strings.Contains(err.Error(), `toolset "set": away`) {
		t.Errorf("got %v", err)
	}
}

type set struct {
	tools []tool.Tool
	err   error
}

func (set) Name() string                                       { return "set" }
func (s set) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return s.tools, s.err }
func longRunning(t *testing.T, result map[string]any) tool.Tool {
	made, err := functiontool.New(functiontool.Config{Name: "build", IsLongRunning: true},
		func(tool.Context, struct{}) (map[string]any, error) { return result, nil })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// A tool that answers later ends the turn; what it answers is then found at its
// call.
func TestLongRunningTool(t *testing.T) {
	rec := record(script(t, calls("build", "look"), says("built")))
	a := newAgent(t, llmagent.Config{
		Name: "a", Model: rec, Tools: []tool.Tool{answering(t, "look", "x")},
		Toolsets: []tool.Toolset{set{tools: []tool.Tool{longRunning(t, nil)}}},
	})
	th := newThread(t, a)
	evs, err := th.ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a: call build | call look", "a: answer look map[text:x]"}, lines(evs)); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]string{"call_a_1_1"}, evs[0].LongRunningToolIDs); diff != "" {
		t.Error(diff)
	}
	later := genai.NewContentFromFunctionResponse("build", map[string]any{"ok": true}, genai.RoleUser)
	later.Parts[0].FunctionResponse.ID = "call_a_1_1"
	for _, err := range th.runner.Run(t.Context(), "ana", "s1", later, th.cfg) {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"user: go", "model: call build | call look", "user: answer look map[text:x] | answer build map[ok:true]"}
	if diff := cmp.Diff(want, rec.heard(1)); diff != "" {
		t.Error(diff)
	}
}

// One that has something to say at once is heard at once.
func TestLongRunningToolThatAnswersAtOnce(t *testing.T) {
	a := newAgent(t, llmagent.Config{Name: "a", Model: script(t, calls("build"), says("it runs")),
		Tools: []tool.Tool{longRunning(t, map[string]any{"ticket": "7"})}})
	want := []string{"a: call build", "a: answer build map[ticket:7]", "a: it runs"}
	if diff := cmp.Diff(want, newThread(t, a).must("go")); diff != "" {
		t.Error(diff)
	}
	alone := newAgent(t, llmagent.Config{Name: "a", Model: script(t, calls("build")), Tools: []tool.Tool{longRunning(t, nil)}})
	if diff := cmp.Diff([]string{"a: call build"}, newThread(t, alone).must("go")); diff != "" {
		t.Error(diff)
	}
}

// F10: what a tool has spent is in the log although its answer comes later.
func TestTokensOfAToolThatAnswersLater(t *testing.T) {
	build, err := functiontool.New(functiontool.Config{Name: "build", IsLongRunning: true}, func(ctx tool.Context, _ struct{}) (map[string]any, error) {
		tool.AddUsage(ctx, &genai.GenerateContentResponseUsageMetadata{TotalTokenCount: 7})
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	evs, err := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: script(t, calls("build")), Tools: []tool.Tool{build}})).ask(t.Context(), "go")
	if err != nil || len(evs) != 2 || evs[1].Content != nil || evs[1].UsageMetadata.TotalTokenCount != 7 {
		t.Errorf("got %q, %v", lines(evs), err)
	}
}

// A consumer that leaves is not disturbed again.
func TestLeavingAfterACall(t *testing.T) {
	ran := false
	look := function(t, "look", func(tool.Context) (map[string]any, error) { ran = true; return nil, nil })
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: script(t, calls("look")), Tools: []tool.Tool{look}}))
	for range th.runner.Run(context.Background(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), th.cfg) {
		break
	}
	if ran {
		t.Error("the tool ran")
	}
}

// A model that makes up a tool is told which there are, or that there is none.
func TestCallOfAToolByAnAgentWithout(t *testing.T) {
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: script(t, calls("x"), says("done"))}))
	want := []string{"a: call x", `a: answer x map[error:there is no tool "x", and this agent has none]`, "a: done"}
	if diff := cmp.Diff(want, th.must("go")); diff != "" {
		t.Error(diff)
	}
}

// preparing is a toolset that adds to each request.
type preparing struct {
	tool.Toolset
	err error
}

func (p preparing) ProcessRequest(_ tool.Context, req *model.LLMRequest) error {
	req.Config.Labels = map[string]string{"set": p.Name()}
	return p.err
}

// As in ADK, a toolset may prepare requests as a tool may, also behind a filter and
// a confirmation.
func TestToolsetPreparesRequests(t *testing.T) {
	broken := errors.New("broken")
	for name, wrap := range map[string]func(tool.Toolset) tool.Toolset{
		"plain":     func(s tool.Toolset) tool.Toolset { return s },
		"filtered":  func(s tool.Toolset) tool.Toolset { return tool.FilterToolset(s, tool.StringPredicate(nil)) },
		"confirmed": func(s tool.Toolset) tool.Toolset { return tool.WithConfirmation(s, true, nil) },
	} {
		for _, cause := range []error{nil, broken} {
			rec := record(script(t, says("x")))
			set := wrap(preparing{Toolset: guarded(t, "delete"), err: cause})
			_, err := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Toolsets: []tool.Toolset{set}})).ask(t.Context(), "go")
			if !errors.Is(err, cause) {
				t.Errorf("%s: got %v, want %v", name, err, cause)
			}
			if cause == nil && rec.requests[0].Config.Labels["set"] != set.Name() {
				t.Errorf("%s: the request was not prepared", name)
			}
		}
	}
}
