// SPDX-License-Identifier: Apache-2.0

package exitlooptool_test

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/exitlooptool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

func exitTool(t *testing.T, cfg exitlooptool.Config) tool.Function {
	t.Helper()
	made, err := exitlooptool.NewWith(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f, ok := made.(tool.Function)
	if !ok {
		t.Fatalf("got a %T", made)
	}
	return f
}

// T4, T5, T7, T8, C3, C4, C30: what the model is told.
func TestDeclaration(t *testing.T) {
	plain, err := exitlooptool.New()
	if err != nil {
		t.Fatal(err)
	}
	req := &model.LLMRequest{}
	for _, it := range []tool.Tool{plain, exitTool(t, exitlooptool.Config{Name: "exitLoop", Criteria: "the score is at least 8\n and all tests pass."})} {
		if err := tool.Process(nil, req, it); err != nil {
			t.Fatal(err)
		}
		if req.Tools[it.Name()] != any(it) {
			t.Error("the request has another tool than was made")
		}
	}
	decls := req.Config.Tools[0].FunctionDeclarations
	if decls[0].Name != "exit_loop" || decls[1].Name != "exitLoop" {
		t.Errorf("got %q and %q", decls[0].Name, decls[1].Name)
	}
	if want := "Call this function ONLY when the critique indicates no further changes are needed. "; !strings.HasPrefix(decls[0].Description, want) {
		t.Errorf("got %q", decls[0].Description)
	}
	if want := "Call this function ONLY when the score is at least 8 and all tests pass. "; !strings.HasPrefix(decls[1].Description, want) {
		t.Errorf("got %q", decls[1].Description)
	}
	text, err := json.Marshal(decls[0].ParametersJsonSchema)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Type       string
		Required   []string
		Properties map[string]struct {
			Type string
			Enum []string
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for name, p := range schema.Properties {
		got[name] = strings.Join(append([]string{p.Type}, p.Enum...), " ")
	}
	want := map[string]string{"reason": "string", "score": "number", "status": "string impossible blocked", "scope": "string"}
	if diff := cmp.Diff(want, got); diff != "" || schema.Type != "object" || len(schema.Required) != 0 {
		t.Errorf("all arguments are optional: %s\n%s", text, diff)
	}
	if _, err := exitlooptool.NewWith(exitlooptool.Config{Name: "stop"}); err == nil {
		t.Error("a model knows the tool by two names")
	}
}

// A request needs no more of the tool than a copy of its declaration.
func TestDeclarationIsMadeOnce(t *testing.T) {
	made, err := exitlooptool.New()
	if err != nil {
		t.Fatal(err)
	}
	f := made.(tool.Function)
	f.Declaration().Description = "edited"
	if d := f.Declaration(); d.Description == "edited" {
		t.Error("declarations are shared")
	}
	if n := testing.AllocsPerRun(100, func() { f.Declaration() }); n > 1 {
		t.Errorf("a declaration makes %v allocations", n)
	}
}

// caller is an agent that calls a tool once and says what came of it, as an
// agent with a model does.
func caller(t *testing.T, name string, f tool.Function, args map[string]any) agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := session.NewEvent(ctx, ctx.InvocationID())
			res, err := tool.Call(agent.NewToolContext(ctx, "call-1", &ev.Actions, nil), f, args)
			if err != nil {
				res = map[string]any{"error": err.Error()}
			}
			ev.Content = genai.NewContentFromFunctionResponse(f.Name(), res, genai.RoleUser)
			yield(ev, nil)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func loopOf(t *testing.T, name string, limit uint, subs ...agent.Agent) agent.Agent {
	t.Helper()
	l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}, MaxIterations: limit})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// run is what a run said by tools, and the lines that are printed of it.
func run(t *testing.T, root agent.Agent) (answers []*session.Event, lines []string) {
	t.Helper()
	r, err := runner.NewInMemory("app", root)
	if err != nil {
		t.Fatal(err)
	}
	var fold progress.Fold
	for ev, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("Go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fold.Add(ev)...)
		if ev.Content != nil && ev.Content.Parts[0].FunctionResponse != nil {
			answers = append(answers, ev)
		}
	}
	return answers, lines
}

func response(ev *session.Event) map[string]any {
	return ev.Content.Parts[0].FunctionResponse.Response
}

// T1, T4, T6, T7, T8, C3: a call ends the loop, with what the model said of it.
func TestCallEndsTheLoop(t *testing.T) {
	for _, tt := range []struct {
		name string
		args map[string]any
		want session.Exit
		line string
	}{
		{"no arguments", map[string]any{}, session.Exit{}, "[Tool Call] exit_loop triggered by critic"},
		{"nothing at all", nil, session.Exit{}, "[Tool Call] exit_loop triggered by critic"},
		{"all of them", map[string]any{"reason": " good enough ", "score": 8.5, "status": "", "scope": "refine"},
			session.Exit{Reason: "good enough", Score: new(8.5), Scope: "refine"}, "[Tool Call] exit_loop triggered by critic: good enough"},
		{"nulls", map[string]any{"reason": nil, "score": nil, "status": nil}, session.Exit{}, "[Tool Call] exit_loop triggered by critic"},
		{"giving up", map[string]any{"status": "impossible"}, session.Exit{Status: session.ExitImpossible}, "[Tool Call] exit_loop triggered by critic (impossible)"},
		{"blocked", map[string]any{"status": "blocked", "scope": "all"}, session.Exit{Status: session.ExitBlocked, Scope: session.ScopeAll},
			"[Tool Call] exit_loop triggered by critic (blocked)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			critic := caller(t, "critic", exitTool(t, exitlooptool.Config{}), tt.args)
			answers, lines := run(t, loopOf(t, "refine", 3, critic))
			if len(answers) != 1 {
				t.Fatalf("the loop ends with the first iteration, got %d calls", len(answers))
			}
			a := answers[0].Actions
			if !a.Escalate || !a.SkipSummarization || a.Exit == nil || len(response(answers[0])) != 0 {
				t.Fatalf("got %+v, %v", a, response(answers[0]))
			}
			want := tt.want
			want.By, want.HandledBy = "critic", "refine"
			if diff := cmp.Diff(want, *a.Exit); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{tt.line}, lines); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// LOOP 6: wrong arguments end nothing, and the model is told.
func TestWrongArgumentsEndNothing(t *testing.T) {
	for _, tt := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"score": "high", "status": "done"}, `invalid arguments for exit_loop: score: expected a number, got the string "high"; ` +
			`status: expected one of "", "impossible", "blocked", got the string "done"`},
		{map[string]any{"because": "I can"}, "invalid arguments for exit_loop: because: is unknown, expected only reason, scope, score, status"},
		{map[string]any{"scope": "other"}, `scope: there is no loop "other" around you; leave it out, or take one of "all", "refine"`},
	} {
		critic := caller(t, "critic", exitTool(t, exitlooptool.Config{}), tt.args)
		answers, lines := run(t, loopOf(t, "refine", 2, critic))
		if len(answers) != 2 || len(lines) != 0 {
			t.Fatalf("the loop goes on to its limit, got %d calls and %q", len(answers), lines)
		}
		a := answers[0].Actions
		if a.Escalate || a.SkipSummarization || a.Exit != nil || response(answers[0])["error"] != tt.want {
			t.Errorf("got %+v, %v, want %s", a, response(answers[0]), tt.want)
		}
	}
}

// LOOP 6, C20: the nearest loop ends, or as far as the scope says.
func TestScopeOfAnExit(t *testing.T) {
	for _, tt := range []struct {
		scope string
		calls int
	}{{"", 2}, {"inner", 2}, {"outer", 1}, {"all", 1}} {
		critic := caller(t, "critic", exitTool(t, exitlooptool.Config{Name: exitlooptool.Alias}), map[string]any{"scope": tt.scope})
		answers, _ := run(t, loopOf(t, "outer", 2, loopOf(t, "inner", 5, critic)))
		if len(answers) != tt.calls {
			t.Errorf("scope %q: got %d calls, want %d", tt.scope, len(answers), tt.calls)
		}
	}
}

func TestOutsideOfLoops(t *testing.T) {
	f := exitTool(t, exitlooptool.Config{})
	ctx := agent.NewToolContext(drive.NewInvocation(t.Context(), drive.Invocation{}), "call-1", nil, nil)
	if _, err := f.Run(ctx, map[string]any{"scope": "refine"}); err == nil || err.Error() != "scope: you are in no loop; leave it out" {
		t.Errorf("got %v", err)
	}
	if _, err := f.Run(ctx, map[string]any{"score": []any{}}); !errors.Is(err, functiontool.ErrInvalidArgument) || ctx.Actions().Escalate {
		t.Errorf("got %v", err)
	}
	if _, err := f.Run(ctx, nil); err != nil || !ctx.Actions().Escalate {
		t.Errorf("an agent that calls it by itself asks whoever runs it, got %v", err)
	}
}
