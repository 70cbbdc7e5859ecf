// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
)

// noModel opens a model that has no answers.
func noModel(context.Context, string) (model.LLM, error) { return scripted.New(scripted.Script{}) }

// recorder keeps what a model is asked.
type recorder struct {
	model.LLM
	requests []*model.LLMRequest
}

func (r *recorder) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	r.requests = append(r.requests, req)
	return r.LLM.GenerateContent(ctx, req, stream)
}

// record is a model for all agents that answers by a script.
func record(t *testing.T, answers ...scripted.Answer) (*recorder, definition.BuildConfig) {
	t.Helper()
	llm, err := scripted.New(scripted.Script{Answers: answers})
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{LLM: llm}
	return r, definition.BuildConfig{DefaultModel: "any", Model: func(context.Context, string) (model.LLM, error) { return r, nil }}
}

func exitCall(agent string) scripted.Answer {
	return scripted.Answer{Agent: agent, Calls: []scripted.Call{{Name: "exit_loop", Args: map[string]any{"reason": "done"}}}}
}

// A12, D3, C12, C30: instructions, what the loop is for, the settings and
// the exit tool reach the model.
func TestModelIsAskedAsTheFileSays(t *testing.T) {
	d := parse(t, `name: refine
inputs: {topic: cats}
goal: A story that a child likes.
instructions: Be quick.
score: {key: words, target: 100}
sub_agents:
  - name: writer
    instructions: "Write about {{topic}}. So far: {draft}"
    output_key: draft
    temperature: 0.5
    max_tokens: 200
    output_schema: {type: object, properties: {story: {type: string}}}
  - name: count
    set: {words: "1"}
  - name: critic
    instructions: Review.
    can_exit_loop: true
`)
	if w := d.Warnings(); len(w) > 0 {
		t.Error(w)
	}
	rec, cfg := record(t, scripted.Answer{Agent: "writer", Text: `{"story": "Once."}`}, exitCall("critic"))
	_, after := run(t, d, cfg, nil)
	if diff := cmp.Diff(map[string]any{"story": "Once."}, after["draft"]); diff != "" || len(rec.requests) != 2 {
		t.Fatalf("%d requests, state %v", len(rec.requests), after)
	}
	asked := rec.requests[0].Config
	system := asked.SystemInstruction.Parts[0].Text
	for _, want := range []string{"Write about cats. So far: \n", "The goal of refine: A story that a child likes.", "Be quick.", `"writer"`} {
		if !strings.Contains(system+"\n", want) {
			t.Errorf("the system instruction lacks %q:\n%s", want, system)
		}
	}
	if *asked.Temperature != 0.5 || asked.MaxOutputTokens != 200 || asked.ResponseMIMEType != "application/json" || len(asked.Tools) != 0 {
		t.Errorf("got %+v", asked)
	}
	if asked.ResponseSchema == nil || asked.ResponseSchema.Properties["story"].Type != genai.TypeString {
		t.Errorf("the schema is %+v", asked.ResponseSchema)
	}
	tool := rec.requests[1].Config.Tools[0].FunctionDeclarations[0]
	want := "Call this function ONLY when the goal is reached (A story that a child likes) and the score is at least 100. "
	if tool.Name != "exit_loop" || !strings.HasPrefix(tool.Description, want) {
		t.Errorf("got %s: %s", tool.Name, tool.Description)
	}
}

// A12: thinking reaches the model; without it the model decides.
func TestThinking(t *testing.T) {
	for text, want := range map[string]genai.ThinkingLevel{
		"":                  "",
		"thinking: minimal": genai.ThinkingLevelMinimal,
		"thinking: high":    genai.ThinkingLevelHigh,
	} {
		rec, cfg := record(t, scripted.Answer{Text: "so"})
		run(t, parse(t, "name: a\ninstructions: Think.\n"+text), cfg, nil)
		got := genai.ThinkingLevel("")
		if c := rec.requests[0].Config.ThinkingConfig; c != nil {
			got = c.ThinkingLevel
		}
		if got != want {
			t.Errorf("%q: the model was asked to think %q, want %q", text, got, want)
		}
	}
}

func TestCriteriaOfTheExitTool(t *testing.T) {
	for _, tt := range []struct{ loop, want string }{
		{"stop_when: {any: [state.n > 3, {all: [state.n > 1, {not: state.n == 2}]}]}",
			"this holds: (state.n > 3) or ((state.n > 1) and (not (state.n == 2)))"},
		{"stop_when: {when: state.n > 3, for: 2}", "this holds: (state.n > 3) in 2 iterations running"},
		{"score: {key: n, target: 2.5, lower_is_better: true}", "the score is at most 2.5"},
		{"score: {key: n, target: 8, dimension_target: 7}", "the score is at least 8 and every part of it is at least 7"},
		{"max_iterations: 3", "the critique indicates no further changes are needed"},
	} {
		d := parse(t, "name: refine\nstate: {n: 0}\n"+tt.loop+`
sub_agents:
  - {name: a, instructions: "{{n}}", tools: [exitLoop]}
`)
		rec, cfg := record(t, scripted.Answer{Calls: []scripted.Call{{Name: "exitLoop"}}})
		run(t, d, cfg, nil)
		tool := rec.requests[0].Config.Tools[0].FunctionDeclarations[0]
		if want := "Call this function ONLY when " + tt.want + ". "; tool.Name != "exitLoop" || !strings.HasPrefix(tool.Description, want) {
			t.Errorf("%s: got %s", tt.loop, tool.Description)
		}
	}
}

// LOOP 28: the default of a definition is the iteration.
func TestContext(t *testing.T) {
	for text, want := range map[string]llmagent.ContextConfig{
		"":                    {Policy: llmagent.ContextIteration},
		"context: full":       {Policy: llmagent.ContextFull},
		"context: none":       {Policy: llmagent.ContextNone},
		"context: {last: 3}":  {Policy: llmagent.ContextLast, Last: 3},
		"context: iteration ": {Policy: llmagent.ContextIteration},
		"context: digest":     {Policy: llmagent.ContextDigest},

		"context: {digest: true}":                  {Policy: llmagent.ContextDigest},
		"context: {last: 2, digest: true}":         {Policy: llmagent.ContextDigest, Last: 2},
		"context: {best_chars: 900, digest: true}": {Policy: llmagent.ContextDigest, BestChars: 900},
		"context: {last: 2, digest: false}":        {Policy: llmagent.ContextLast, Last: 2},
	} {
		d := parse(t, "name: a\ninstructions: a\n"+text)
		built, err := d.Build(t.Context(), definition.BuildConfig{Model: noModel, DefaultModel: "any"})
		if err != nil {
			t.Fatal(err)
		}
		if got := built.(*llmagent.Agent).Config().Context; got != want || d.Root.Type != definition.TypeLLM {
			t.Errorf("%q: got %+v of %s", text, got, d.Root.Type)
		}
	}
}

// LOOP 7: who may end the loop has the tool, and nobody else; if nobody is named
// and nothing else ends the loop, all may.
func TestWhoHasTheExitTool(t *testing.T) {
	const critic = "\nsub_agents:\n  - {name: writer, instructions: w}\n"
	for _, tt := range []struct{ name, file, want, warning string }{
		{"named", "name: l" + critic + "  - {name: critic, instructions: c, can_exit_loop: true}", "critic", ""},
		{"by the step around it", "name: l" + critic + `
  - name: review
    type: sequential
    can_exit_loop: true
    sub_agents: [{name: critic, instructions: c}, {name: other, instructions: o, can_exit_loop: false}]`, "critic", ""},
		{"nobody", "name: l" + critic + "  - {name: critic, instructions: c}", "writer critic",
			`no agent in the loop "l" has can_exit_loop, so every agent that asks a model may end it: writer, critic`},
		{"nobody, and one must not", "name: l" + critic + "  - {name: critic, instructions: c, can_exit_loop: false}", "writer", "may end it: writer"},
		{"a condition", "name: l\nstop_when: iteration > 3" + critic, "", ""},
		{"a score", "name: l\nscore: {expr: '1.0', target: 3}" + critic, "", ""},
		{"a task", "name: l" + critic + "  - {name: t, text: t, exit_when: 'true'}", "", ""},
		{"without a limit", "name: l\nmax_iterations: 0" + critic + "  - {name: critic, instructions: c, can_exit_loop: true}", "critic", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := parse(t, tt.file)
			if text := problemText(d.Warnings()); !strings.Contains(text, tt.warning) || (text != "") != (tt.warning != "") {
				t.Errorf("warnings: %s", text)
			}
			built, err := d.Build(t.Context(), definition.BuildConfig{Model: noModel, DefaultModel: "any"})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(withTools(built), " "); got != tt.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func problemText(ps definition.Problems) string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.Error() + "\n")
	}
	return b.String()
}

// withTools names the agents that have tools.
func withTools(a agent.Agent) []string {
	var names []string
	if l, ok := a.(*llmagent.Agent); ok && len(l.Config().Tools) > 0 {
		names = append(names, a.Name())
	}
	for _, sub := range a.SubAgents() {
		names = append(names, withTools(sub)...)
	}
	return names
}

// A12: an agent as a tool.
func TestAgentAsATool(t *testing.T) {
	d := parse(t, `name: writer
instructions: Write.
model: openai/big
tools:
  - agent:
      name: facts
      description: Knows facts.
      model: openai/small
      instructions: "{{facts_so_far}}"
      output_key: facts_so_far
  - agent: {name: nouns, description: Finds nouns., instructions: Find.}
`)
	rec, cfg := record(t,
		scripted.Answer{Agent: "writer", Calls: []scripted.Call{{Name: "facts", Args: map[string]any{"request": "cats"}}}},
		scripted.Answer{Agent: "facts", Text: "Cats sleep."},
		scripted.Answer{Agent: "writer", Text: "A cat slept."})
	open, names := cfg.Model, []string{}
	cfg.Model = func(ctx context.Context, name string) (model.LLM, error) {
		names = append(names, name)
		return open(ctx, name)
	}
	words, after := run(t, d, cfg, nil)
	if words != "A cat slept." || after["facts_so_far"] != "Cats sleep." || len(rec.requests) != 3 {
		t.Errorf("got %q, %v", words, after)
	}
	if diff := cmp.Diff([]string{"openai/big", "openai/small"}, names); diff != "" {
		t.Errorf("a model is opened once, and is that of the agent around: %s", diff)
	}
}

// What the root says of the provider's cache is the default for the agents in it, those that are tools
// included.
func TestPromptCacheIsInherited(t *testing.T) {
	d := parse(t, `name: l
max_iterations: 2
model: openai/gpt-5-mini
prompt_cache: off
sub_agents:
  - {name: a, instructions: a, tools: [{agent: {name: tool, description: d, instructions: a}}], can_exit_loop: true}
  - {name: b, instructions: b, prompt_cache: on}
  - name: inner
    type: sequential
    prompt_cache: 24h
    sub_agents:
      - {name: c, instructions: c}
      - {name: e, instructions: e, prompt_cache: "off"}
`)
	got := make(map[string]llmagent.PromptCache)
	_, err := d.Build(t.Context(), definition.BuildConfig{
		Model:    noModel,
		StandIns: definition.StandIns{LLM: func(a *definition.Agent, cfg *llmagent.Config) { got[a.Name] = cfg.PromptCache }},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]llmagent.PromptCache{"a": "off", "tool": "off", "b": "", "c": "24h", "e": "off"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
