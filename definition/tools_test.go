// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// countItems is a Go function that a definition can name.
func countItems(t *testing.T, name string) tool.Tool {
	t.Helper()
	type args struct {
		Items []string `json:"items"`
	}
	f, err := functiontool.New(functiontool.Config{Name: name, Description: "Counts."}, func(_ tool.Context, in args) (int, error) {
		return len(in.Items), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// shelf is a toolset of one tool.
type shelf struct{ tool.Tool }

func (shelf) Name() string                                       { return "shelf" }
func (s shelf) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return []tool.Tool{s.Tool}, nil }

func call(agent, name string, args map[string]any) scripted.Answer {
	return scripted.Answer{Agent: agent, Calls: []scripted.Call{{Name: name, Args: args}}}
}

// answers are what the tools said, by name, in a request.
func answers(req *model.LLMRequest) map[string]any {
	all := make(map[string]any)
	for _, c := range req.Contents {
		for _, p := range c.Parts {
			if r := p.FunctionResponse; r != nil {
				all[r.Name] = r.Response
			}
		}
	}
	return all
}

// declared are the names of the tools that a request offers.
func declared(cfg *genai.GenerateContentConfig) string {
	var names []string
	for _, t := range cfg.Tools {
		for _, d := range t.FunctionDeclarations {
			names = append(names, d.Name)
		}
	}
	return strings.Join(names, " ")
}

// A12: Go functions and toolsets, by name.
func TestGoFunctions(t *testing.T) {
	d := parse(t, `name: a
instructions: Count.
tools: [count_items, {func: count_words}, shelf]
`)
	if d.Warnings() != nil {
		t.Error(d.Warnings())
	}
	items := map[string]any{"items": []any{"x", "y"}}
	rec, cfg := record(t, call("", "count_items", items), call("", "count_words", items), call("", "count_books", items), scripted.Answer{Text: "Six."})
	cfg.Tools = []tool.Tool{countItems(t, "count_words"), countItems(t, "count_items"), countItems(t, "unused")}
	cfg.Toolsets = []tool.Toolset{shelf{countItems(t, "count_books")}}
	if words, _ := run(t, d, cfg, nil); words != "Six." {
		t.Errorf("got %q", words)
	}
	if got := declared(rec.requests[0].Config); got != "count_items count_words count_books" {
		t.Errorf("declared: %s", got)
	}
	want := map[string]any{"count_items": map[string]any{"result": 2.0}, "count_words": map[string]any{"result": 2.0},
		"count_books": map[string]any{"result": 2.0}}
	if diff := cmp.Diff(want, answers(rec.requests[3])); diff != "" {
		t.Error(diff)
	}
}

// G1: a function that nobody gives is told with its place, along with all else
// that is missing.
func TestMissingFunctions(t *testing.T) {
	d := parse(t, `name: a
instructions: Count.
tools:
  - count_itmes
  - func: translate
  - mcp: {command: [serve], env: [SHELF_TOKEN, SHELF=fiction]}
`)
	given := []tool.Tool{countItems(t, "count_items")}
	for _, tt := range []struct {
		tools []tool.Tool
		hints [2]string
	}{
		{given, [2]string{`did you mean "count_items"?`, "the functions are count_items"}},
		{nil, [2]string{"a program in Go gives functions, with command.Tool or in BuildConfig.Tools; this program has none, so write {command: […], name: …} or {mcp: {…}}"}},
	} {
		_, err := d.Build(t.Context(), definition.BuildConfig{Model: noModel, Tools: tt.tools, Getenv: func(string) string { return "" }})
		problems, ok := errors.AsType[definition.Problems](err)
		if !ok || len(problems) != 4 {
			t.Fatalf("got %v", err)
		}
		want := `x.yaml:1:7: error: "a" needs a model, but none is given [LOOP042]
x.yaml:4:5: error: there is no function "count_itmes" [LOOP043]
x.yaml:5:11: error: there is no function "translate" [LOOP043]
x.yaml:6:34: error: the MCP server needs SHELF_TOKEN, which is not set [LOOP043]
`
		if diff := cmp.Diff(want, problemText(problems)); diff != "" {
			t.Error(diff)
		}
		if problems[1].Hint != tt.hints[0] || tt.hints[1] != "" && problems[2].Hint != tt.hints[1] {
			t.Errorf("hints: %q, %q", problems[1].Hint, problems[2].Hint)
		}
	}
	for name, tools := range map[string][]tool.Tool{
		`two are called "count_items"`:                 append(given, given...),
		"exitLoop is not one: every definition has it": {countItems(t, "exitLoop")},
		`two are called "shelf"`:                       {countItems(t, "shelf")},
		"functions for a definition: one is nil":       {nil},
	} {
		_, err := d.Build(t.Context(), definition.BuildConfig{Model: noModel, Tools: tools, Toolsets: []tool.Toolset{shelf{}}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}

// A12, T2: a command as a tool. What the model says reaches it as JSON on its
// standard input, and nothing else does.
func TestCommandAsATool(t *testing.T) {
	d := parse(t, `name: a
instructions: Use them.
state: {greeting: hello}
tools:
  - command: [cat]
    name: echo
    description: Says what it is given.
    parameters:
      type: object
      properties:
        text: {type: string, description: what to say}
        again: {type: integer, minimum: 1, default: 2}
      required: [text]
    json: true
    output_key: heard
  - command: [sh, -c, 'printf "%s:" "$INPUT_GREETING"; cat']
    env: {INPUT_GREETING: "{{greeting}}"}
    name: greet
    description: Greets.
  - {command: [sh, -c, "echo no luck >&2; exit 3"], name: fail, description: Fails.}
`)
	root := t.TempDir()
	evil := "$(touch " + filepath.Join(root, "x") + "); `id`"
	rec, cfg := record(t,
		call("", "echo", map[string]any{"text": evil}), call("", "echo", map[string]any{"txet": 1, "again": 0}),
		call("", "greet", nil), call("", "fail", nil), scripted.Answer{Text: "Done."})
	cfg.Root = root
	words, after := run(t, d, cfg, nil)
	if words != "Done." {
		t.Errorf("got %q", words)
	}
	if diff := cmp.Diff(map[string]any{"text": evil, "again": 2.0}, after["heard"]); diff != "" {
		t.Errorf("the state: %s", diff)
	}
	if got := answers(rec.requests[1])["echo"]; !cmp.Equal(got, any(map[string]any{"text": evil, "again": 2.0})) {
		t.Errorf("echo: %v", got)
	}
	got := rec.requests[2].Contents[4].Parts[0].FunctionResponse.Response["error"]
	if got != "invalid arguments for echo: text: is missing, expected a string; again: expected an integer of at least 1, got the number 0" {
		t.Errorf("wrong arguments: %v", got)
	}
	if got := answers(rec.requests[3])["greet"]; !cmp.Equal(got, any(map[string]any{"result": "hello:{}"})) {
		t.Errorf("greet: %v", got)
	}
	if got, _ := answers(rec.requests[4])["fail"].(map[string]any)["error"].(string); !strings.Contains(got, "exit status 3: no luck") {
		t.Errorf("fail: %v", got)
	}
	if files, err := os.ReadDir(root); err != nil || len(files) > 0 {
		t.Errorf("something was run: %v, %v", files, err)
	}
	decl := rec.requests[0].Config.Tools[0].FunctionDeclarations[0]
	const schema = `{"type":"object","properties":{"text":{"type":"string","description":"what to say"},"again":{"type":"integer","default":2,"minimum":1}},"required":["text"]}`
	if got := asJSON(t, decl.ParametersJsonSchema); decl.Description != "Says what it is given." || got != schema {
		t.Errorf("%s: %s", decl.Description, got)
	}
}

// Each agent has the tools that the file gives it, and exit_loop comes by the
// permission or by its name.
func TestToolsOfAnAgentAreItsOwn(t *testing.T) {
	d := load(t, "tools.yaml")
	_, cfg := record(t)
	cfg.Tools = []tool.Tool{countItems(t, "count_items")}
	cfg.Toolsets = []tool.Toolset{shelf{}}
	cfg.Getenv = func(string) string { return "set" }
	built, err := d.Build(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"one", "two"} {
		made := agent.Find(built, name).(*llmagent.Agent).Config()
		for _, one := range made.Tools {
			got[name] += one.Name() + " "
		}
		for _, set := range made.Toolsets {
			got[name] += set.Name() + " "
		}
	}
	if diff := cmp.Diff(map[string]string{"one": "count_items exitLoop sub shelf ", "two": "list mcp mcp mcp "}, got); diff != "" {
		t.Error(diff)
	}
}
