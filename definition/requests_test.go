// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

const family = `name: book
goal: A story that a child likes.
instructions: Be quick.
score: {key: words, target: 100}
max_iterations: 2
state: {words: 1}
sub_agents:
  - {name: critic, instructions: Review., output_key: critique}
  - name: review
    type: sequential
    sub_agents:
      - name: editor
        instructions: Edit.
        tools:
          - agent: {name: facts, description: Knows facts., instructions: Look it up.}
      - name: polish
        goal: No typos.
        stop_when: state.words > 3
        sub_agents: [{name: proof, instructions: Read., can_exit_loop: true}]
  - {name: refiner, instructions: Refine., can_exit_loop: true}
  - {name: publisher, instructions: Publish., output_key: loop_output}
`

// asked is what a server was asked, by the agent that asked last.
type asked struct {
	system map[string]string // without who the agent is
	tools  map[string]string // names and, of exit_loop, what it is for
	models map[string]string
}

func askedOf(t *testing.T, requests []*modeltest.Request) *asked {
	t.Helper()
	a := &asked{make(map[string]string), make(map[string]string), make(map[string]string)}
	for _, req := range requests {
		system, who, ok := strings.Cut(req.Config.SystemInstruction.Parts[0].Text, "You are an agent. Your internal name is ")
		if !ok {
			t.Fatalf("nobody asks: %s", system)
		}
		name := strings.Split(who, `"`)[1]
		a.system[name], a.tools[name], a.models[name] = strings.TrimSpace(system), "", req.Model
		for _, made := range req.Config.Tools {
			for _, d := range made.FunctionDeclarations {
				a.tools[name] += d.Name
				if when, ok := strings.CutPrefix(d.Description, "Call this function ONLY when "); ok {
					a.tools[name] += ": " + strings.Split(when, ". It ends")[0]
				}
			}
		}
	}
	return a
}

// C12, C30, C5, T5, T9, T10, T11: what goes over the wire. The goals and the
// instructions of the loops around reach every agent; exit_loop is offered, with
// the loop's own criteria, to those that may end that loop, and to nobody else.
func TestWhatEveryAgentIsAskedInALoop(t *testing.T) {
	script := scripted.Script{RepeatLast: true, Answers: []scripted.Answer{
		{Agent: "critic", Text: "Longer."},
		{Agent: "editor", Calls: []scripted.Call{{Name: "facts", Args: map[string]any{"request": "cats"}}}},
		{Agent: "editor", Text: "Edited."},
		{Agent: "facts", Text: "Cats sleep."},
		exitCall("proof"), {Agent: "refiner", Text: "Refined."}, {Agent: "publisher", Text: "A book."},
	}}
	const (
		outer = "\n\nThe goal of book: A story that a child likes.\n\nHow book goes about it: Be quick."
		ends  = "exit_loop: the goal is reached (A story that a child likes) and the score is at least 100"
	)
	want := &asked{
		system: map[string]string{
			"critic": "Review." + outer, "editor": "Edit." + outer, "facts": "Look it up." + outer, "refiner": "Refine." + outer,
			"publisher": "Publish." + outer, "proof": "Read." + outer + "\n\nThe goal of polish: No typos.",
		},
		tools: map[string]string{
			"critic": "", "editor": "facts", "facts": "", "publisher": "", "refiner": ends,
			"proof": "exit_loop: the goal is reached (No typos) and this holds: state.words > 3",
		},
		models: map[string]string{"critic": "m", "editor": "m", "facts": "m", "proof": "m", "publisher": "m", "refiner": "m"},
	}
	for name, p := range providers(t, script) {
		if p.server == nil {
			continue
		}
		run(t, parse(t, family), definition.BuildConfig{DefaultModel: "m", Model: p.open}, nil)
		if diff := cmp.Diff(want, askedOf(t, p.server.Requests()), cmp.AllowUnexported(asked{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// C5, T9: hiding the tool is not enough. A model that calls exit_loop without
// permission is refused in words that it can read, one that asks in another way is
// refused, and both times the loop goes on.
func TestExitWithoutPermissionGoesOn(t *testing.T) {
	d := parse(t, `name: l
max_iterations: 2
sub_agents:
  - {name: sly, instructions: a, tools: [give_up]}
  - {name: other, instructions: b, can_exit_loop: true}
`)
	giveUp, err := functiontool.New(functiontool.Config{Name: "give_up"}, func(ctx tool.Context, _ struct{}) (string, error) {
		ctx.Actions().Escalate = true
		return "bye", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rec, cfg := record(t,
		exitCall("sly"), scripted.Answer{Agent: "sly", MatchRequest: `The loop goes on: sly may not end the loop l`, Text: "Well."},
		scripted.Answer{Agent: "other", Text: "One."},
		call("sly", "give_up", nil), scripted.Answer{Agent: "sly", Text: "Then not."}, scripted.Answer{Agent: "other", Text: "Two."})
	cfg.Tools = []tool.Tool{giveUp}
	built, err := d.Build(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("test", built)
	if err != nil {
		t.Fatal(err)
	}
	var refused *session.Exit
	for ev, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		if x := ev.Actions.Exit; x != nil && x.Refused != "" {
			refused = x
		}
	}
	if len(rec.requests) != 6 || declared(rec.requests[0].Config) != "give_up" || declared(rec.requests[2].Config) != "exit_loop" {
		t.Errorf("%d requests", len(rec.requests))
	}
	if refused == nil {
		t.Error("nobody was refused")
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
	built, err := parse(t, "name: a\ninstructions: a").Build(ctx, definition.BuildConfig{DefaultModel: "any", Model: func(ctx context.Context, _ string) (model.LLM, error) {
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
