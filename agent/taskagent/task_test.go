// SPDX-License-Identifier: Apache-2.0

package taskagent_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// ran is what a run left.
type ran struct {
	events []*session.Event // without the user's
	state  map[string]any
	err    error
}

func (r *ran) words() []string {
	var words []string
	for _, ev := range r.events {
		if ev.Content != nil {
			words = append(words, ev.Text())
		}
	}
	return words
}

// run runs an agent in a new session that has a state.
func run(ctx context.Context, t testing.TB, a agent.Agent, state map[string]any) *ran {
	t.Helper()
	return runAs(ctx, t, a, state, agent.RunConfig{})
}

func runAs(ctx context.Context, t testing.TB, a agent.Agent, state map[string]any, cfg agent.RunConfig) *ran {
	t.Helper()
	svc := session.InMemoryService()
	created, err := svc.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s", State: state})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: svc})
	if err != nil {
		t.Fatal(err)
	}
	var got ran
	for ev, err := range r.Run(ctx, "ana", created.Session.ID(), genai.NewContentFromText("Please.", genai.RoleUser), cfg) {
		if err != nil {
			got.err = err
			break
		}
		got.events = append(got.events, ev)
	}
	after, err := svc.Get(context.WithoutCancel(ctx), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	got.state = maps.Collect(after.Session.State().All())
	return &got
}

// must unwraps what a constructor returns.
func must[T any](a T, err error) T {
	if err != nil {
		panic(err)
	}
	return a
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// has reports an error that lacks one of some texts.
func has(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error lacks %q: %v", text, err)
		}
	}
}

// D1, D3, D5, D6, D7: a text is said and kept, with its placeholders filled.
func TestTextIsSaidAndKept(t *testing.T) {
	a := must(taskagent.NewText(taskagent.TextConfig{
		Config: taskagent.Config{Name: "ask", OutputKey: "prompt", ResultKey: "all"},
		Text:   `Write {{count}} lines about {topic} in {"json": {{as}}}. {{user_input}}{{missing}}`,
	}))
	got := run(t.Context(), t, a, map[string]any{"topic": "cats", "count": 3, "as": map[string]any{"b": 1.0, "a": "x"}})
	if got.err != nil {
		t.Fatal(got.err)
	}
	want := `Write 3 lines about cats in {"json": {"a":"x","b":1}}. Please.`
	equal(t, "words", []string{want}, got.words())
	equal(t, "prompt", any(want), got.state["prompt"])
	equal(t, "all", any(map[string]any{"text": want}), got.state["all"])
	ev := got.events[0]
	equal(t, "author", "ask", ev.Author)
	equal(t, "role", "model", ev.Content.Role)
	equal(t, "type", agent.TypeTask, agent.TypeOf(a))
}

// D1: an empty text is a result too; nobody says it.
func TestEmptyTextReplacesAnOlderOne(t *testing.T) {
	a := must(taskagent.NewText(taskagent.TextConfig{
		Config: taskagent.Config{Name: "ask", OutputKey: "prompt"},
		Text:   `{{#topic}}About {{.}}.{{/topic}}`,
	}))
	got := run(t.Context(), t, a, map[string]any{"prompt": "About dogs."})
	if got.err != nil || len(got.events) != 1 || got.events[0].Content != nil {
		t.Errorf("got %d events and error %v, want one event without words", len(got.events), got.err)
	}
	equal(t, "prompt", any(""), got.state["prompt"])
}

// T1, T8, T14, T17, T28: a task inside a loop decides that it is over, and says
// why.
func TestExitWhenEndsTheLoop(t *testing.T) {
	a := must(taskagent.NewExpression(taskagent.ExpressionConfig{
		Config: taskagent.Config{
			Name:       "count",
			ExitWhen:   "result.n >= 3 && state.n == result.n && iteration == 3",
			ExitReason: "{{result.n}} of {{max_iterations}} is enough for {{who}}; n is {{n}}",
		},
		Set: map[string]string{"n": "state.?n.orValue(0) + 1"},
	}))
	after := must(taskagent.NewText(taskagent.TextConfig{Config: taskagent.Config{Name: "say"}, Text: "{{iteration}}"}))
	l := must(loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "again", SubAgents: []agent.Agent{a, after}},
		MaxIterations: 9,
	}))
	got := run(t.Context(), t, l, map[string]any{"who": "Ana"})
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "words", []string{"1", "2"}, got.words())
	last := got.events[len(got.events)-1]
	want := &session.Exit{By: "count", Reason: "3 of 9 is enough for Ana; n is 3", HandledBy: "again"}
	equal(t, "exit", want, last.Actions.Exit)
	if !last.Actions.Escalate {
		t.Error("the last event does not escalate")
	}
}

// T8: without a reason of its own, the condition is the reason.
func TestExitReasonIsTheConditionByDefault(t *testing.T) {
	a := must(taskagent.NewExpression(taskagent.ExpressionConfig{
		Config: taskagent.Config{Name: "check", ExitWhen: "state.queue.size() == 0"},
	}))
	got := run(t.Context(), t, a, map[string]any{"queue": []any{}})
	if got.err != nil || len(got.events) != 1 {
		t.Fatalf("got %d events and error %v", len(got.events), got.err)
	}
	equal(t, "exit", &session.Exit{By: "check", Reason: "state.queue.size() == 0"}, got.events[0].Actions.Exit)

	got = run(t.Context(), t, a, map[string]any{"queue": []any{"one"}})
	if got.err != nil || len(got.events) != 0 {
		t.Errorf("got %d events and error %v, want none", len(got.events), got.err)
	}
}

// A condition that cannot be decided fails the step; the result is kept.
func TestExitWhenThatFailsKeepsTheResult(t *testing.T) {
	a := must(taskagent.NewText(taskagent.TextConfig{
		Config: taskagent.Config{Name: "ask", OutputKey: "text", ResultKey: "all", ExitWhen: "state.scroe > 3"},
		Text:   "Hello.",
	}))
	got := run(t.Context(), t, a, map[string]any{"score": 4})
	has(t, got.err, "evaluate the exit condition", "scroe")
	equal(t, "state", map[string]any{"score": 4.0, "all": map[string]any{"text": "Hello."}}, got.state)
	equal(t, "words", 0, len(got.words()))
}

// E7: callbacks run around a task.
func TestCallbacksAroundATask(t *testing.T) {
	a := must(taskagent.NewText(taskagent.TextConfig{
		Config: taskagent.Config{
			Name: "ask",
			BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
				return nil, ctx.State().Set("who", "Ana")
			}},
			AfterAgentCallbacks: []agent.AfterAgentCallback{func(agent.Context) (*genai.Content, error) {
				return genai.NewContentFromText("Done.", genai.RoleModel), nil
			}},
		},
		Text: "Hello, {{who}}.",
	}))
	got := run(t.Context(), t, a, nil)
	equal(t, "words", []string{"Hello, Ana.", "Done."}, got.words())
}

// C10, D17: what a task reads and writes can be checked before it runs.
func TestReadsAndWrites(t *testing.T) {
	type checkable interface {
		Reads() []taskagent.Read
		Writes() []string
	}
	a := must(taskagent.NewCommand(taskagent.CommandConfig{
		Config: taskagent.Config{
			Name: "c", OutputKey: "out", ResultKey: "all",
			ExitWhen: "result.exit_code == 0 && state.fine", ExitReason: "{{result.stdout}} {{why?}}",
		},
		Args: []string{"echo", "{{draft}}", "{{prev.draft}}"}, Env: map[string]string{"INPUT_B": "{{b}}", "INPUT_A": "{{a}}"},
		Shapes: map[string]taskagent.Shape{"draft": {Pattern: ".*"}},
	})).(checkable)
	var reads []string
	for _, r := range a.Reads() {
		reads = append(reads, r.Field+" "+r.Name)
	}
	equal(t, "reads", []string{
		"Args[1] draft", "Args[2] prev.draft", `Env["INPUT_A"] a`, `Env["INPUT_B"] b`, "ExitWhen fine", "ExitReason why",
	}, reads)
	equal(t, "writes", []string{"out", "all"}, a.Writes())

	a = must(taskagent.NewExpression(taskagent.ExpressionConfig{
		Config: taskagent.Config{Name: "e", OutputKey: "out"},
		Set:    map[string]string{"n": "state.n + prev.n", "m": "state[state.key]"},
		Value:  "1",
	})).(checkable)
	equal(t, "reads", []taskagent.Read{
		{Field: `Set["m"]`, Ref: ref("key")}, {Field: `Set["m"]`, Any: true},
		{Field: `Set["n"]`, Ref: ref("n")}, {Field: `Set["n"]`, Ref: ref("prev.n")},
	}, a.Reads())
	equal(t, "writes", []string{"out", "m", "n"}, a.Writes())
}
