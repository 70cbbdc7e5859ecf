// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/telemetry"
	"github.com/refrain-dev/refrain/telemetry/observe"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

func diff(t testing.TB, want, got string) {
	t.Helper()
	if d := gocmp.Diff(strings.TrimLeft(want, "\n"), got); d != "" {
		t.Errorf("(-want +got):\n%s\nall:\n%s", d, got)
	}
}

// A run is a tree of spans: loops with their iterations, agents side by side, requests with those that
// failed, and tools with what happens in them.
func TestSpansOfARun(t *testing.T) {
	var asked int
	look := must(functiontool.New(functiontool.Config{Name: "look", Description: "Looks it up."},
		func(ctx tool.Context, _ struct{}) (string, error) {
			if asked++; asked > 1 {
				return "", errors.New("the shelf is empty")
			}
			return "a cat", nil
		}))
	w := world{tools: []tool.Tool{look}, text: `
name: story
model: openai/some
max_iterations: 2
stop_when: "false"
score: points
sub_agents:
  - name: both
    type: parallel
    sub_agents:
      - {name: left, text: l, output_key: left}
      - {name: right, text: r, output_key: right}
  - name: writer
    tools: [look]
    request_retry: {attempts: 2, backoff: 1ms}
    instructions: Write.
    output_key: draft
  - name: tell
    max_iterations: 3
    sub_agents:
      - {name: points, set: {points: "iteration * 10"}}
`, script: scripted.Script{Answers: []scripted.Answer{
		{Turn: 1, Error: &scripted.Failure{Status: 429}},
		{Turn: 2, Calls: []scripted.Call{{Name: "look"}}, Usage: &scripted.Usage{Prompt: 10, Output: 3}},
		{Turn: 3, Text: "About a cat.", Usage: &scripted.Usage{Prompt: 20, Output: 4}},
		{Turn: 4, Calls: []scripted.Call{{Name: "look"}}},
		{Turn: 5, Text: "About nothing."},
	}}}
	l := newLab(t, telemetry.Config{})
	end := wait(t, start(t, w.supervise(t, session.InMemoryService(), l)))
	if end.Err != nil {
		t.Fatal(end.Err)
	}
	keys := []string{"refrain.address", "loop.iteration", "loop.stop_reason", "gen_ai.usage.input_tokens", "error.type"}
	diff(t, `
invoke_workflow story stop_reason=max_iterations input_tokens=30
  invoke_agent story address=story stop_reason=max_iterations input_tokens=30
    iteration story address=story[1] iteration=1 input_tokens=30 [gen_ai.evaluation.result points 30 best]
      invoke_agent both address=story[1]/both iteration=1
        invoke_agent left address=story[1]/both/left iteration=1
        invoke_agent right address=story[1]/both/right iteration=1
      invoke_agent writer address=story[1]/writer iteration=1 input_tokens=30
        chat scripted (client) type=429 ERROR "scripted: status 429"
        chat scripted (client) input_tokens=10
        execute_tool look
        chat scripted (client) input_tokens=20
      invoke_agent tell address=story[1]/tell iteration=1 stop_reason=max_iterations
        iteration tell address=story[1]/tell[1] iteration=1
          invoke_agent points address=story[1]/tell[1]/points iteration=1
        iteration tell address=story[1]/tell[2] iteration=2
          invoke_agent points address=story[1]/tell[2]/points iteration=2
        iteration tell address=story[1]/tell[3] iteration=3
          invoke_agent points address=story[1]/tell[3]/points iteration=3
    iteration story address=story[2] iteration=2 [gen_ai.evaluation.result points 30 accepted]
      invoke_agent both address=story[2]/both iteration=2
        invoke_agent left address=story[2]/both/left iteration=2
        invoke_agent right address=story[2]/both/right iteration=2
      invoke_agent writer address=story[2]/writer iteration=2
        chat scripted (client)
        execute_tool look type=_OTHER ERROR "the shelf is empty"
        chat scripted (client)
      invoke_agent tell address=story[2]/tell iteration=2 stop_reason=max_iterations
        iteration tell address=story[2]/tell[1] iteration=1
          invoke_agent points address=story[2]/tell[1]/points iteration=1
        iteration tell address=story[2]/tell[2] iteration=2
          invoke_agent points address=story[2]/tell[2]/points iteration=2
        iteration tell address=story[2]/tell[3] iteration=3
          invoke_agent points address=story[2]/tell[3]/points iteration=3
`, l.tree(keys...))
	got := l.measured(t)
	for _, want := range []struct {
		what string
		n    uint64
	}{
		{"gen_ai.workflow.duration s story", 1}, {"gen_ai.invoke_agent.duration s writer", 2},
		{"gen_ai.invoke_agent.duration s points", 6}, {"gen_ai.execute_tool.duration s look", 1},
		{"gen_ai.execute_tool.duration s _OTHER look", 1}, {"gen_ai.client.operation.duration s 429 chat scripted scripted", 1},
		{"gen_ai.client.operation.duration s chat scripted scripted scripted", 4},
		{"gen_ai.client.token.usage {token} chat scripted scripted scripted input", 2},
		{"gen_ai.client.token.usage {token} chat scripted scripted scripted output", 2},
	} {
		if got[want.what] != want.n {
			t.Errorf("%s was measured %d times, not %d; all: %v", want.what, got[want.what], want.n, got)
		}
	}
	for _, s := range l.spans.GetSpans() {
		if id, _ := attr(s, "gen_ai.conversation.id"); !strings.HasPrefix(id, "r_") {
			t.Errorf("%s does not say of which run it is", s.Name)
		}
		for _, kv := range s.Attributes {
			if strings.Contains(kv.Value.Emit(), "cat") {
				t.Errorf("%s has content: %s", s.Name, kv.Value.Emit())
			}
		}
	}
}

// What models and tools are given and answer is in spans only when somebody asks for it.
func TestContentWhenAsked(t *testing.T) {
	look := must(functiontool.New(functiontool.Config{Name: "look", Description: "Looks."},
		func(tool.Context, struct {
			Where string `json:"where"`
		}) (string, error) {
			return "a cat", nil
		}))
	w := world{tools: []tool.Tool{look}, text: `
name: writer
model: openai/some
tools: [look]
instructions: Write well.
`, script: scripted.Script{Answers: []scripted.Answer{
		{Calls: []scripted.Call{{ID: "c1", Name: "look", Args: map[string]any{"where": "here"}}}}, {Thought: "Hm.", Text: "Done."},
	}}}
	l := newLab(t, telemetry.Config{Content: true})
	if end := wait(t, start(t, w.supervise(t, session.InMemoryService(), l))); end.Err != nil {
		t.Fatal(end.Err)
	}
	diff(t, `
invoke_workflow writer
  invoke_agent writer
    chat scripted (client) messages=[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"look","arguments":{"where":"here"}}]}]
    execute_tool look arguments={"where":"here"} result={"result":"a cat"}
    chat scripted (client) messages=[{"role":"assistant","parts":[{"type":"reasoning","content":"Hm."},{"type":"text","content":"Done."}]}]
`, l.tree("gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"))
	for _, s := range l.spans.GetSpans() {
		if s.Name != "chat scripted" {
			continue
		}
		in, _ := attr(s, "gen_ai.input.messages")
		about, _ := attr(s, "gen_ai.system_instructions")
		if !strings.Contains(in, `"role":"user","parts":[{"type":"t`) || !strings.Contains(about, "Write well.") {
			t.Errorf("the model was told %s and asked %s", about, in)
		}
	}
}

// A run that waits for a person ends its spans. What goes on when the answer has come is a trace of
// its own, which names the earlier one and has nothing of it again.
func TestResumedRun(t *testing.T) {
	w := world{text: `
name: letter
max_iterations: 1
sub_agents:
  - {name: draft, text: Dear Ana, output_key: draft}
  - {name: ok, question: "Send it?", output_key: ok}
  - {name: send, text: Sent.}
`}
	store := session.InMemoryService()
	l := newLab(t, telemetry.Config{})
	sup := w.supervise(t, store, l)
	run := start(t, sup)
	if end := wait(t, run); !errors.Is(end.Err, agent.ErrWaiting) {
		t.Fatalf("got %+v", end)
	}
	keys := []string{"refrain.outcome", "refrain.resumed", "loop.stop_reason"}
	diff(t, `
invoke_workflow letter outcome=waiting
  invoke_agent letter outcome=waiting
    iteration letter outcome=waiting
      invoke_agent draft
      invoke_agent ok outcome=waiting
`, l.tree(keys...))
	earlier := l.named(t, "invoke_workflow letter")
	l.spans.Reset()

	open, err := sup.Questions(t.Context(), run.ID())
	if err != nil || len(open) != 1 {
		t.Fatalf("got %v, %v", open, err)
	}
	if _, err := sup.Answer(t.Context(), run.ID(), mark.Answer{ID: open[0].ID, Value: []byte("true")}); err != nil {
		t.Fatal(err)
	}
	again, err := sup.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if end := wait(t, again); end.Err != nil {
		t.Fatal(end.Err)
	}
	diff(t, `
invoke_workflow letter resumed=true stop_reason=max_iterations
  invoke_agent letter resumed=true stop_reason=max_iterations
    iteration letter
      invoke_agent ok resumed=true
      invoke_agent send
`, l.tree(keys...))
	later := l.named(t, "invoke_workflow letter")
	if later.SpanContext.TraceID() == earlier.SpanContext.TraceID() {
		t.Error("the two parts are one trace")
	}
	if len(later.Links) != 1 || !later.Links[0].SpanContext.Equal(earlier.SpanContext) {
		t.Errorf("the links are %v", later.Links)
	}
	one, _ := attr(earlier, "refrain.invocation.id")
	if two, _ := attr(later, "refrain.invocation.id"); one != two || one == "" {
		t.Errorf("the parts are of %q and %q", one, two)
	}
}

// Another process takes up what one has left in the middle: it has spans of what it does itself.
func TestRunOfADeadProcess(t *testing.T) {
	fail := true
	w := world{text: `
name: twice
max_iterations: 3
sub_agents:
  - {name: first, text: one}
  - {name: second, func: second}
`, agents: map[string]definition.NewAgent{"second": func(cfg agent.Config) (agent.Agent, error) {
		cfg.Run = func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				if drive.At(ctx).Loop().Iteration == 2 && fail {
					yield(nil, &os.PathError{Op: "open", Path: "x", Err: os.ErrNotExist})
				}
			}
		}
		return agent.New(cfg)
	}}}
	store := session.InMemoryService()
	l := newLab(t, telemetry.Config{})
	run := start(t, w.supervise(t, store, l))
	if end := wait(t, run); end.Err == nil {
		t.Fatalf("got %+v", end)
	}
	const said = `ERROR "agent \"second\" (twice[2]/second): open x: file does not exist"`
	diff(t, `
invoke_workflow twice type=fs.PathError stop_reason=error `+said+`
  invoke_agent twice type=fs.PathError stop_reason=error `+said+`
    iteration twice
      invoke_agent first
      invoke_agent second
    iteration twice type=fs.PathError `+said+`
      invoke_agent first
      invoke_agent second type=fs.PathError `+said+`
`, l.tree("error.type", "loop.stop_reason"))

	fail = false
	other := newLab(t, telemetry.Config{})
	again, err := w.supervise(t, store, other).Resume(t.Context(), run.ID(), supervisor.ResumeOptions{Continue: true})
	if err != nil {
		t.Fatal(err)
	}
	if end := wait(t, again); end.Err != nil {
		t.Fatal(end.Err)
	}
	diff(t, `
invoke_workflow twice resumed=true stop_reason=max_iterations
  invoke_agent twice resumed=true stop_reason=max_iterations attempt=1
    iteration twice iteration=2
      invoke_agent second iteration=2 attempt=2
    iteration twice iteration=3
      invoke_agent first iteration=3 attempt=1
      invoke_agent second iteration=3 attempt=1
`, other.tree("refrain.resumed", "loop.stop_reason", "loop.iteration", "refrain.attempt"))
}

// Work that was left behind may end a second time, at the same moment: only the first call counts. Tokens are
// counted as budgets count them.
func TestEndsOnce(t *testing.T) {
	l := newLab(t, telemetry.Config{Content: true})
	ctx, end := l.Run(t.Context(), &observe.Run{Agent: "root", SessionID: "s"})
	_, answered := l.ModelCall(ctx, &observe.ModelCall{Model: "m", Request: &model.LLMRequest{}, Response: &model.LLMResponse{
		ModelVersion: "m-1", UsageMetadata: &genai.GenerateContentResponseUsageMetadata{
			PromptTokenCount: 3, ToolUsePromptTokenCount: 4, CandidatesTokenCount: 1, TotalTokenCount: 12,
		},
	}})
	_, called := l.ToolCall(ctx, &observe.ToolCall{Tool: "look", Result: map[string]any{"a": "b"}})
	_, passed := l.Iteration(ctx, &observe.Iteration{Loop: "root", Number: 1, Score: new(1.0)})
	_, stepped := l.Step(ctx, &observe.Step{Agent: "writer"})
	for _, f := range []func(error){answered, called, passed, stepped, end} {
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { f(nil) })
		}
		all.Wait()
	}
	if got, want := l.tree("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"), `invoke_workflow root input_tokens=7 output_tokens=5
  chat m (client) input_tokens=7 output_tokens=5
  execute_tool look
  iteration root [gen_ai.evaluation.result score 1 accepted]
  invoke_agent writer
`; got != want {
		t.Errorf("got\n%s", got)
	}
	for what, n := range l.measured(t) {
		if n != 1 {
			t.Errorf("%s was measured %d times", what, n)
		}
	}
}

// An error that quotes a key does not take it to the collector.
func TestNoSecretsInErrors(t *testing.T) {
	l := newLab(t, telemetry.Config{})
	_, end := l.Step(t.Context(), &observe.Step{Agent: "writer"})
	end(errors.New("get https://ana:" + "pass" + "word9@example.org/x?api_key=" + "abcdefgh12345678: refused"))
	if s := l.named(t, "invoke_agent writer"); strings.Contains(s.Status.Description, "word9") ||
		strings.Contains(s.Status.Description, "abcdefgh") || !strings.Contains(s.Status.Description, "refused") {
		t.Errorf("the span says %q", s.Status.Description)
	}
}

// What a failed command has printed does not go to the collector, and nothing that commands a terminal.
func TestErrorsOnSpansAreClean(t *testing.T) {
	l := newLab(t, telemetry.Config{})
	_, end := l.Step(t.Context(), &observe.Step{Agent: "writer"})
	end(fmt.Errorf("agent \"a\x1b[31m\u2028b\":\n%w", &taskagent.ExitError{Command: "sh", Code: 1, State: "exit status 1", Stderr: "private"}))
	if got, want := l.named(t, "invoke_agent writer").Status.Description, `agent "a[31m b": run command "sh": exit status 1`; got != want {
		t.Errorf("the span says %q, want %q", got, want)
	}
}

// clumsy is an observer that panics.
type clumsy struct {
	*lab
	at string
}

func (c clumsy) Step(ctx context.Context, s *observe.Step) (context.Context, func(error)) {
	if c.at == s.Agent {
		panic("the observer's")
	}
	return c.lab.Step(ctx, s)
}

func (c clumsy) ModelCall(ctx context.Context, m *observe.ModelCall) (context.Context, func(error)) {
	if c.at == m.Model {
		panic("the observer's")
	}
	return c.lab.ModelCall(ctx, m)
}

// An observer that panics fails the step that the work belongs to.
func TestObserverThatPanics(t *testing.T) {
	for at, agents := range map[string]string{"story": "story", "writer": "writer", "scripted": "writer"} {
		w := world{text: "name: story\ntype: sequential\nsub_agents:\n  - {name: writer, model: openai/x, instructions: Write}\n"}
		l := newLab(t, telemetry.Config{})
		r := must(runner.New(runner.Config{AppName: "app", Agent: w.root(t), SessionService: session.InMemoryService(),
			AutoCreateSession: true, Durable: true}))
		var last error
		for _, err := range r.Run(t.Context(), "ana", "s", genai.NewContentFromText("Go", genai.RoleUser),
			agent.RunConfig{Observer: clumsy{l, at}}) {
			last = err
		}
		failed, _ := errors.AsType[*agent.StepError](last)
		if _, ok := errors.AsType[*agent.PanicError](last); !ok || failed == nil || failed.Address.Agent() != agents {
			t.Errorf("at %s the run ends with %v", at, last)
		}
	}
}
