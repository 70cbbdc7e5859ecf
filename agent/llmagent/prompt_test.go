// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session/mark"
)

const identity = `You are an agent. Your internal name is "a".`

// prompt is the system instruction of an agent that is asked once.
func prompt(t *testing.T, cfg llmagent.Config, state map[string]any) string {
	t.Helper()
	rec := record(script(t, says("x")))
	cfg.Name, cfg.Model = "a", rec
	newThread(t, newAgent(t, cfg)).must("go", runner.WithStateDelta(state))
	return rec.system(0)
}

// D3, D5, C9, LOOP 25: an instruction is a template; what is not set is empty,
// and a value is data, whatever is in it.
func TestInstruction(t *testing.T) {
	state := map[string]any{"doc": "A {tail} and a {{name}}.", "n": 3, "app:k": "shared"}
	for text, want := range map[string]string{
		"":                                  "",
		"Review:\n{{doc}}":                  "Review:\nA {tail} and a {{name}}.\n\n",
		"{doc} {missing}{missing?}{n}":      "A {tail} and a {{name}}. 3\n\n",
		"{{missing}}{app:k}":                "shared\n\n",
		`Answer {"text": "..."}`:            `Answer {"text": "..."}` + "\n\n",
		"{{#doc}}yes{{/doc}}{{^x}}no{{/x}}": "yesno\n\n",
		"{user_input}":                      "go\n\n",
	} {
		if diff := cmp.Diff(want+identity, prompt(t, llmagent.Config{Instruction: text}, state)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestOrderOfInstructions(t *testing.T) {
	got := prompt(t, llmagent.Config{
		Description: "Reviews.", Instruction: "own {n}", GlobalInstruction: "global {n}",
		GenerateContentConfig: &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText("given {n}", genai.RoleUser)},
	}, map[string]any{"n": 1})
	want := "given {n}\n\nglobal 1\n\nown 1\n\n" + identity + ` The description about you is "Reviews.".`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a provider returns is no template, and takes the place of one.
func TestInstructionProvider(t *testing.T) {
	says := func(text string) llmagent.InstructionProvider {
		return func(ctx agent.ReadonlyContext) (string, error) {
			v, err := ctx.ReadonlyState().Get("n")
			return text + " {n} " + ctx.AgentName() + " " + v.(string), err
		}
	}
	got := prompt(t, llmagent.Config{
		Instruction: "unused", InstructionProvider: says("own"), GlobalInstruction: "unused", GlobalInstructionProvider: says("global"),
	}, map[string]any{"n": "1"})
	if diff := cmp.Diff("global {n} a 1\n\nown {n} a 1\n\n"+identity, got); diff != "" {
		t.Error(diff)
	}
	fails := newAgent(t, llmagent.Config{Name: "a", Model: script(t),
		InstructionProvider: func(agent.ReadonlyContext) (string, error) { return "", errors.New("no idea") }})
	if _, err := newThread(t, fails).ask(t.Context(), "go"); err == nil || !strings.Contains(err.Error(), "instruction: no idea") {
		t.Errorf("got %v", err)
	}
}

// C12, A6: the goals and instructions of the loops around an agent are in its
// prompt. C19: it can know the iteration.
func TestLoopInPrompt(t *testing.T) {
	rec := record(script(t, says("x"), says("y")))
	a := newAgent(t, llmagent.Config{Name: "a", Model: rec, Instruction: "{iteration} of {max_iterations}"})
	inner := newLoop(t, loopagent.Config{MaxIterations: 2, Goal: "a good story", Instructions: "Be quick."}, a)
	outer, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "book", SubAgents: []agent.Agent{inner}}, MaxIterations: 1, Goal: "a book"})
	if err != nil {
		t.Fatal(err)
	}
	newThread(t, outer).must("go")
	for i, count := range []string{"1 of 2", "2 of 2"} {
		want := count + "\n\nThe goal of book: a book\n\nThe goal of refine: a good story\n\nHow refine goes about it: Be quick.\n\n" + identity
		if diff := cmp.Diff(want, rec.system(i)); diff != "" {
			t.Error(diff)
		}
	}
}

// What people tell a run is at the end of the instruction of the next iteration's agents, also of those in loops inside it, and not of
// those that give the score.
func TestHintsInPrompt(t *testing.T) {
	for name, cfg := range map[string]loopagent.Config{
		"a scorer of the plan": {Rules: loop.Plan{Score: &loop.Score{Key: "score", Scorers: []string{"judge"}}}},
		"a judge":              {Rules: loop.Plan{Score: &loop.Score{Key: "score", Judge: &loop.Judge{Step: "judge"}}}},
		"an agent that writes": {Rules: loop.Plan{Score: &loop.Score{Key: "score"}}, Scorers: []string{"judge"}},
	} {
		t.Run(name, func(t *testing.T) { hintsInPrompt(t, cfg, false) })
	}
	// A jury in a loop of its own leaves the hint to the next iteration of the loop around it.
	jury := loopagent.Config{Rules: loop.Plan{Score: &loop.Score{Key: "score", Judge: &loop.Judge{Step: "jury"}}}}
	t.Run("a jury", func(t *testing.T) { hintsInPrompt(t, jury, true) })
}

func hintsInPrompt(t *testing.T, cfg loopagent.Config, nested bool) {
	hints := new(agent.Hints)
	rec := record(script(t, says("x"), says("1"), says("y"), says("2"), says("z"), says("3")))
	first := true
	tells := newAgent(t, llmagent.Config{Name: "a", Model: rec, AfterModelCallbacks: []llmagent.AfterModelCallback{
		func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
			if first {
				hints.Add(mark.Hint{ID: "1", Text: "Use tabs."})
				hints.Add(mark.Hint{ID: "2", Text: "Be quick."})
				hints.Add(mark.Hint{ID: "1", Text: "Use tabs."})
			}
			first = false
			return nil, nil
		}}})
	inner := newLoop(t, loopagent.Config{MaxIterations: 1}, tells)
	judge := newAgent(t, llmagent.Config{Name: "judge", Model: rec, OutputKey: "score"})
	if nested {
		var err error
		judge, err = loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "jury", SubAgents: []agent.Agent{judge}}, MaxIterations: 1})
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg.AgentConfig, cfg.MaxIterations = agent.Config{Name: "book", SubAgents: []agent.Agent{inner, judge}}, 3
	outer, err := loopagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	th := newThread(t, outer)
	th.cfg.Hints = hints
	th.must("go")
	const told = "\n\nA person says for this iteration:\nUse tabs.\nBe quick."
	judges := strings.ReplaceAll(identity, `"a"`, `"judge"`)
	for i, want := range []string{identity, judges, identity + told, judges, identity, judges} {
		if diff := cmp.Diff(want, rec.system(i)); diff != "" {
			t.Errorf("request %d: %s", i, diff)
		}
	}
}

// B7: what an iteration left under a key is in the next one's prompt, until it is
// overwritten.
func TestOutputOfTheIterationBefore(t *testing.T) {
	rec := record(script(t, scripted.Answer{Text: "shorter", Repeat: true}))
	critic := newAgent(t, llmagent.Config{Name: "critic", Model: rec, Instruction: "Review: {{draft}}", OutputKey: "critique"})
	refiner := newAgent(t, llmagent.Config{Name: "refiner", Model: script(t, says("one"), says("two"), says("three")), OutputKey: "draft"})
	newThread(t, newLoop(t, loopagent.Config{MaxIterations: 3}, critic, refiner)).must("go")
	for i, draft := range []string{"", "one", "two"} {
		if got, _, _ := strings.Cut(rec.system(i), "\n"); got != "Review: "+draft {
			t.Errorf("iteration %d: %q", i+1, got)
		}
	}
}
