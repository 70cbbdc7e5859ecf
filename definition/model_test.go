// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
)

// F7
func TestModelThatHangs(t *testing.T) {
	d := parse(t, "name: a\ninstructions: hi\nmodel: scripted/x\ninit_timeout: 20ms\n")
	hang := make(chan struct{})
	defer close(hang)
	_, err := d.Build(t.Context(), definition.BuildConfig{Model: func(context.Context, string) (model.LLM, error) {
		<-hang
		return nil, errors.New("too late")
	}})
	late, ok := errors.AsType[*definition.InitError](err)
	if !ok || late.After != 20*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) ||
		err.Error() != `Agent initialization timed out, cannot process message: model "scripted/x" was not ready after 20ms (agent "a")` {
		t.Errorf("got %v", err)
	}
}

// local is a provider on this machine.
type local struct {
	server *modeltest.Server // nil for the scripted model
	open   func(context.Context, string) (model.LLM, error)
}

// providers start a model of every kind that answers by the same script. Names
// are those of each provider, without it.
func providers(t *testing.T, script scripted.Script) map[string]local {
	t.Helper()
	all := make(map[string]local)
	for name, start := range map[string]func(testing.TB, scripted.Script) *modeltest.Server{
		"openai": modeltest.OpenAIServer, "anthropic": modeltest.AnthropicServer, "gemini": modeltest.GeminiServer,
	} {
		srv := start(t, script)
		getenv := environment(name, srv)
		all[name] = local{srv, func(ctx context.Context, m string) (model.LLM, error) { return provider.Open(ctx, name+"/"+m, getenv) }}
	}
	direct, err := scripted.New(script)
	if err != nil {
		t.Fatal(err)
	}
	all["scripted"] = local{nil, func(context.Context, string) (model.LLM, error) { return direct, nil }}
	return all
}

// environment leads a provider to a server.
func environment(name string, srv *modeltest.Server) func(string) string {
	vars := map[string]map[string]string{
		"openai":    {"OPENAI_BASE_URL": srv.BaseURL, "OPENAI_API_KEY": "key"},
		"anthropic": {"ANTHROPIC_BASE_URL": srv.BaseURL, "ANTHROPIC_API_KEY": "key"},
		"gemini":    {"GOOGLE_GEMINI_BASE_URL": srv.BaseURL, "GOOGLE_API_KEY": "key"},
	}[name]
	return func(key string) string { return vars[key] }
}

// A28, G1: agents without a model are told with their places, and so are models
// that cannot be opened.
func TestBuildNeedsModels(t *testing.T) {
	d := parse(t, `name: l
max_iterations: 2
sub_agents:
  - {name: a, instructions: a}
  - {name: b, instructions: b, model: openai/x, can_exit_loop: true}
  - {name: c, instructions: c, model: openai/x}
`)
	broken := errors.New("out of order")
	_, err := d.Build(t.Context(), definition.BuildConfig{Model: func(context.Context, string) (model.LLM, error) { return nil, broken }})
	problems, ok := errors.AsType[definition.Problems](err)
	if !ok || !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	want := `x.yaml:4:12: error: "a" needs a model, but none is given [LOOP042]
x.yaml:5:39: error: out of order [LOOP042]
`
	if diff := cmp.Diff(want, problemText(problems)); diff != "" || !strings.Contains(problems[0].Hint, "--model provider/name") {
		t.Errorf("%s%s", diff, problems[0].Hint)
	}
	_, err = d.Build(t.Context(), definition.BuildConfig{DefaultModel: "any", Model: func(context.Context, string) (model.LLM, error) { return nil, broken }})
	if err == nil || err.Error() != "the default model: out of order" {
		t.Errorf("got %v", err)
	}
	t.Setenv("ANTHROPIC_API_KEY", "")
	_, err = parse(t, "name: a\nmodel: anthropic/claude\ninstructions: a").Build(t.Context(), definition.BuildConfig{})
	if e, ok := errors.AsType[*provider.KeyError](err); !ok || e.Provider != "anthropic" {
		t.Errorf("got %v", err)
	}
}

// A script is named relative to the file that names it.
func TestScriptsAreBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "parts"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "own.yaml", "answers: [{text: root}]")
	write(t, dir, "parts/own.yaml", "answers: [{text: part}]")
	write(t, dir, "parts/part.yaml", "name: b\nmodel: scripted/own.yaml\ninstructions: b\noutput_key: part\n")
	file := write(t, dir, "root.yaml", `name: root
type: sequential
model: scripted/own.yaml
sub_agents: [{ref: parts/part.yaml}, {name: a, instructions: a, output_key: own}]
`)
	d, err := definition.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	_, after := run(t, d, definition.BuildConfig{}, nil)
	if after["part"] != "part" || after["own"] != "root" {
		t.Errorf("got %v", after)
	}
}

// A script does not lead out of the folder of the definition, even by a link that was made after the
// definition was read. One that the caller of Build names may be anywhere.
func TestScriptsAreOpenedInTheFolder(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	good, bad := write(t, outside, "good.yaml", "answers: [{text: outside}]"), write(t, outside, "bad.yaml", "KEY=s3cr3t")
	for name, to := range map[string]string{"good.yaml": good, "bad.yaml": bad} {
		d, err := definition.Load(write(t, dir, "in-"+name, "name: a\nmodel: scripted/"+name+"\ninstructions: a\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
		_, err = d.Build(t.Context(), definition.BuildConfig{})
		if err == nil || !strings.Contains(err.Error(), "a link leads out of the folder of the definition") || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	cfg := definition.BuildConfig{DefaultModel: "scripted/" + filepath.Join(dir, "good.yaml")}
	if words, _ := run(t, parse(t, "name: a\ninstructions: a\n"), cfg, nil); words != "outside" {
		t.Errorf("a script of the caller says %q", words)
	}
}

// A23, A28, B8, D3: a definition in JSON, which is YAML too. Each agent asks its
// own model, and a step that comes before the loop asks once.
func TestEachAgentAsksItsModel(t *testing.T) {
	d := parse(t, `{
  "name": "pipeline", "type": "sequential", "model": "anthropic/claude-one", "inputs": {"topic": "a cat"},
  "sub_agents": [
    {"type": "llm", "name": "writer", "model": "gemini-2.0-flash", "instructions": "Write about {{topic}}.", "output_key": "draft"},
    {"name": "refine", "max_iterations": 2, "model": "openai/big", "sub_agents": [
      {"type": "llm", "name": "critic", "instructions": "Review {{draft}}", "output_key": "critique"},
      {"type": "llm", "name": "refiner", "model": "openai/small", "instructions": "{{draft}}: {{critique}}", "output_key": "draft", "can_exit_loop": true}
    ]},
    {"type": "llm", "name": "teller", "instructions": "Tell: {{draft}}"}
  ]
}`)
	script := scripted.Script{RepeatLast: true, Answers: []scripted.Answer{
		{Agent: "writer", Text: "Draft 0."}, {Agent: "critic", Text: "Longer."},
		{Agent: "refiner", Text: "Draft 1."}, {Agent: "refiner", Text: "Draft 2."}, {Agent: "teller", Text: "Told."},
	}}
	servers := map[string]*modeltest.Server{
		"openai": modeltest.OpenAIServer(t, script), "anthropic": modeltest.AnthropicServer(t, script), "gemini": modeltest.GeminiServer(t, script),
	}
	getenv := func(key string) string {
		for name, srv := range servers {
			if v := environment(name, srv)(key); v != "" {
				return v
			}
		}
		return ""
	}
	words, after := run(t, d, definition.BuildConfig{Getenv: getenv}, nil)
	if words != "Told." || after["draft"] != "Draft 2." {
		t.Errorf("got %q, %v", words, after)
	}
	got := make(map[string][]string)
	for name, srv := range servers {
		for _, req := range srv.Requests() {
			text := strings.Split(req.Config.SystemInstruction.Parts[0].Text, "\n")[0]
			got[name] = append(got[name], fmt.Sprintf("%s: %s", req.Model, text))
		}
	}
	want := map[string][]string{
		"gemini":    {"gemini-2.0-flash: Write about a cat."},
		"openai":    {"big: Review Draft 0.", "small: Draft 0.: Longer.", "big: Review Draft 1.", "small: Draft 1.: Longer."},
		"anthropic": {"claude-one: Tell: Draft 2."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Models are opened with the context of Build, which may be over by the time
// they are asked.
func TestModelsAreOpenedWithTheContextOfBuild(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "given"))
	llm, err := scripted.New(scripted.Script{Answers: []scripted.Answer{{Text: "Hello."}}})
	if err != nil {
		t.Fatal(err)
	}
	built, err := parse(t, "name: a\ninstructions: a").Build(ctx,
		definition.BuildConfig{DefaultModel: "any", Model: func(ctx context.Context, _ string) (model.LLM, error) {
			if ctx.Value(key{}) != "given" {
				t.Error("another context")
			}
			return llm, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	r, err := runner.NewInMemory("test", built)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Error(err)
		}
	}
}
