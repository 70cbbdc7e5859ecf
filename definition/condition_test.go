// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"strings"
	"testing"
)

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
		"{text: '!?', of: critic}":            "needs a letter or a digit",
		"{text: x, of: critic, when: 'true'}": "when is not allowed beside text and of",
	} {
		if got := problems(t, "name: l\nstop_when: "+text+critic); !strings.Contains(got, want) {
			t.Errorf("%s: got\n%s\nwant %s", text, got, want)
		}
	}
}

const asks = "sub_agents: [{name: a, instructions: hi, can_exit_loop: true}]\n"

func TestPlaceholdersOfALoopAreNotFilledIn(t *testing.T) {
	got := parse(t, "name: l\nstate: {topic: cats}\ngoal: A text on {{topic}}.\ninstructions: Be {{quick}}.\n"+asks).Warnings().Error()
	for _, want := range []string{
		"x.yaml:3:17: warning: {{topic}} is not replaced: the model gets the goal of a loop",
		"x.yaml:4:18: warning: {{quick}} is not replaced: the model gets the instructions of a loop",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestParametersAreNoKeys(t *testing.T) {
	got := problems(t, `name: a
instructions: hi
tools: [{command: [echo], name: e, description: d, exit_when: state.x, parameters: {type: object, properties: {x: {type: string}}}}]
`)
	if !strings.Contains(got, `x is a parameter: the texts of the command name it as {{x}}`) {
		t.Error(got)
	}
}
