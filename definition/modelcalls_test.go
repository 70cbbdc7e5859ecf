// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
)

const asks = "sub_agents: [{name: a, instructions: hi, can_exit_loop: true}]\n"

// F10: the guard against models that are asked without end is the author's to move.
func TestMaxModelCalls(t *testing.T) {
	for text, want := range map[string]int{
		"":                         0,
		"max_model_calls: 0\n":     0,
		"max_model_calls: 2000\n":  2000,
		"max_model_calls: none\n":  -1,
		"budget: {calls: 2000}\n":  2000,
		"budget: {calls: 20}\n":    0,
		"budget: {tokens: 9000}\n": 0,
		"max_model_calls: 30\nbudget: {calls: 2000}\n": 30,
	} {
		if got := parse(t, "name: l\n"+text+asks).MaxModelCalls; got != want {
			t.Errorf("%q: %d calls, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"max_model_calls: -1\n":   "max_model_calls must be between 0 and 2147483647, got -1",
		"max_model_calls: lots\n": `max_model_calls must be a number of calls, or none, got "lots"`,
	} {
		if _, err := definition.Parse("x.yaml", []byte("name: l\n"+text+asks), definition.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestLoopThatNeedsMoreModelCallsThanThereAre(t *testing.T) {
	for text, warned := range map[string]bool{
		"max_iterations: 501\n":                        true,
		"max_iterations: 500\n":                        false,
		"max_iterations: 501\nmax_model_calls: 501\n":  false,
		"max_iterations: 501\nmax_model_calls: none\n": false,
		"max_iterations: 501\nbudget: {calls: 400}\n":  false,
		"max_iterations: 501\nbudget: {calls: 900}\n":  false,
		"max_iterations: 9\nmax_model_calls: 8\n":      true,
	} {
		err := parse(t, "name: l\n"+text+asks).Warnings().Error()
		if got := strings.Contains(err, "[LOOP045]"); got != warned {
			t.Errorf("%q: warned %v, want %v: %s", text, got, warned, err)
		}
	}
}

// C29, A23: the form of the fields in JSON, with a config.
func TestConfigStandsForTheFieldsInIt(t *testing.T) {
	d := parse(t, `{"name": "a", "type": "llm", "model": "gemini/gemini-2.0-flash", "instructions": "Hi {{user_input}}", "config": {"output_key": "feedback"}}`)
	if d.Root.OutputKey != "feedback" || d.Root.LLM.Instructions != "Hi {{user_input}}" {
		t.Errorf("%+v", d.Root)
	}
	for text, want := range map[string]string{
		`{"name": "a", "text": "x", "output_key": "k", "config": {"output_key": "l"}}`:    `"output_key" is given in config and beside it, in line 1 [LOOP007]`,
		`{"name": "a", "text": "x", "config": {"output_kye": "l"}}`:                       `x.yaml:1:39: error: unknown field "output_kye" [LOOP003]`,
		`{"name": "a", "text": "x", "config": 3}`:                                         `config must be a map, got 3`,
		`{"type": "task", "task_definition": "x", "config": {"output_key": "k"}}`:         `a task is a command, expression, http or template agent`,
		`{"type": "workflow", "workflow_type": "sequential", "sub_agents": ["a1", "a2"]}`: `write it as the type: loop, sequential or parallel`,
		`{"type": "a2a", "agent_card_url": "https://x", "config": {"output_key": "k"}}`:   `write it as the endpoint`,
	} {
		if got := problems(t, text); !strings.Contains(got, want) {
			t.Errorf("%s: got\n%s\nwant %s", text, got, want)
		}
	}
}

func problems(t *testing.T, text string) string {
	t.Helper()
	_, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
	ps, ok := errors.AsType[definition.Problems](err)
	if !ok {
		t.Fatalf("%s: got %v, want problems", text, err)
	}
	var b strings.Builder
	ps.Format(&b)
	return b.String()
}

// C32, T15: a phrase of a step ends the loop.
func TestPhraseThatEndsALoop(t *testing.T) {
	const critic = "\nsub_agents: [{name: critic, instructions: hi, output_key: my-key}, {name: mute, instructions: hi}, {name: r, text: bye, output_key: loop_output}]\n"
	d := parse(t, "name: l\nstop_when: {any: [{text: 'No \"major\\\" issues\nfound', of: critic, for: 2}, {not: {text: x, of: critic}}]}"+critic)
	got := d.Root.Loop.StopWhen
	if want := `says(state["my-key"], "No \"major\\\" issues found")`; got.Any[0].Expr != want || got.Any[0].For != 2 || got.Any[1].Not == nil {
		t.Errorf("got %+v, want %s", got, want)
	}
	for text, want := range map[string]string{
		"{text: x, of: mute}":                 `give "mute" an output_key`,
		"{text: x, of: r}":                    "is a finalizer",
		"{text: x, of: critc}":                `did you mean "critic"?`,
		"{text: x}":                           "stop_when needs of: the step that says the text",
		"{of: critic}":                        "stop_when needs text",
		"{text: '!?', of: critic}":            "no letter and no digit",
		"{text: x, of: critic, when: 'true'}": "when cannot stand beside text and of",
	} {
		if got := problems(t, "name: l\nstop_when: "+text+critic); !strings.Contains(got, want) {
			t.Errorf("%s: got\n%s\nwant %s", text, got, want)
		}
	}
}

func TestPlaceholdersOfALoopAreNotFilledIn(t *testing.T) {
	got := parse(t, "name: l\nstate: {topic: cats}\ngoal: A text on {{topic}}.\ninstructions: Be {{quick}}.\n"+asks).Warnings().Error()
	for _, want := range []string{
		"x.yaml:3:17: warning: {{topic}} stays as it is: the goal of a loop",
		"x.yaml:4:18: warning: {{quick}} stays as it is: the instructions of a loop",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestParametersAreNoPlaceholders(t *testing.T) {
	got := problems(t, `name: a
instructions: hi
tools: [{command: [echo, "{{x}}"], name: e, description: d, parameters: {type: object, properties: {x: {type: string}}}}]
`)
	if !strings.Contains(got, `x is a parameter: what the model gives arrives on standard input, as JSON such as {"x": …}`) {
		t.Error(got)
	}
}

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
