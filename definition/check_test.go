// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
)

// LOOP 34, T33, F9, F10, C10, C33: each thing that the preflight is to say, with its
// code, its place and what to do, and that it says nothing more of it when that was
// done.
func TestPreflight(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		at   string // line:column
		sev  definition.Severity
		code string
		says string
		hint string
		// fixed replaces a text of the definition, as the hint says.
		fixed [2]string
	}{
		{
			"it can never stop", "max_iterations: 0\nsub_agents: [{name: a, text: a}]", "2:17", definition.SeverityError, definition.CodeEndless,
			"this loop can never stop", "give max_iterations above 0, timeout, stop_when", [2]string{"max_iterations: 0", "max_iterations: 3"},
		},
		{
			"it can never stop, but for a time", "max_iterations: 0\nsub_agents: [{name: a, text: a}]", "2:17", definition.SeverityError, definition.CodeEndless,
			"this loop can never stop", "timeout", [2]string{"max_iterations: 0", "max_iterations: 0\ntimeout: 5m"},
		},
		{
			"who may stop it", "sub_agents:\n  - {name: a, instructions: a, output_key: k}\n  - {name: b, instructions: 'b {{k}}'}", "1:7", definition.SeverityWarning, definition.CodeAnyone,
			"every agent that asks a model may end it: a, b", "can_exit_loop: true to the one that decides", [2]string{"{name: b,", "{name: b, can_exit_loop: true,"},
		},
		{
			"who may not stop it", "sub_agents: [{name: a, instructions: a, can_exit_loop: false, tools: [exit_loop]}]", "2:71", definition.SeverityError, definition.CodeCannot,
			"would be refused: can_exit_loop is false", "remove one of the two", [2]string{"can_exit_loop: false, ", ""},
		},
		{
			"requests of a coding agent", "max_iterations: 20\nsub_agents: [{name: a, cli: claude, prompt: x, max_turns: 30, exit_when: 'true'}]\nmax_model_calls: 500", "2:17",
			definition.SeverityWarning, definition.CodeCalls, "can make 600 model calls, but a run may make only 500", "max_model_calls", [2]string{"max_model_calls: 500", "max_model_calls: 600"},
		},
		{
			"more calls than a run may make", "max_iterations: 30\nmax_model_calls: 50\ntimeouts: none\nsub_agents:\n  - {name: a, instructions: a, output_key: k, can_exit_loop: false}\n  - {name: b, instructions: 'b {{k}}', can_exit_loop: true}", "2:17",
			definition.SeverityWarning, definition.CodeCalls, "can make 60 model calls, but a run may make only 50", "max_model_calls", [2]string{"max_model_calls: 50", "max_model_calls: 60"},
		},
		{
			"the time of iterations", "timeout: 10m\niteration_timeout: 5m\nsub_agents: [{name: a, instructions: a, can_exit_loop: true}]", "2:10", definition.SeverityWarning, definition.CodeTimes,
			"5 iterations of up to 5m can take longer than the 10m", "give timeout: 25m", [2]string{"timeout: 10m", "timeout: 25m"},
		},
		{
			"the time of iterations, by a preset", "max_iterations: 9\nsub_agents: [{name: a, instructions: a, can_exit_loop: true}]", "2:17", definition.SeverityNote, definition.CodeTimes,
			"the 30m of the loop \"x\" may not be enough for its 9 iterations", "give timeout: 45m", [2]string{"max_iterations: 9", "max_iterations: 9\ntimeout: 45m"},
		},
		{
			"a step with more time than its iteration", "iteration_timeout: 2m\nsub_agents: [{name: a, command: [ls], timeout: 6m}]", "3:48", definition.SeverityWarning, definition.CodeTimes,
			"\"a\" may take 6m, but an iteration of \"x\" only 2m", "", [2]string{"timeout: 6m", "timeout: 2m"},
		},
		{
			"a key that nobody writes", "sub_agents:\n  - {name: a, instructions: 'Mind {{feedbak}}', output_key: draft, can_exit_loop: false}\n  - {name: b, instructions: '{{draft}}', output_key: feedback, can_exit_loop: true}", "3:35",
			definition.SeverityError, definition.CodeUnknownKey, "{{feedbak}} is read here but no agent writes it", "did you mean {{feedback}} (written by b)?", [2]string{"{{feedbak}}", "{{feedback}}"},
		},
		{
			"a key of the iteration before, by a name of one's own", "sub_agents:\n  - {name: a, text: '{{feedback_before}}', output_key: draft}\n  - {name: b, text: '{{draft}}', output_key: feedback}", "3:22",
			definition.SeverityError, definition.CodeUnknownKey, "{{feedback_before}}", "did you mean {{prev.feedback}}", [2]string{"{{feedback_before}}", "{{prev.feedback}}"},
		},
		{
			"a key that the exit leaves as it was", "sub_agents:\n  - {name: a, instructions: a, output_key: draft, can_exit_loop: false}\n  - {name: b, instructions: '{{draft}}', output_key: decision, can_exit_loop: true}\n  - {name: f, text: '{{decision}}', output_key: loop_output}", "5:22",
			definition.SeverityNote, definition.CodeExitKey, "when \"b\" ends the loop, {{decision}} keeps its old value", "let another agent write it", [2]string{"can_exit_loop: true", "can_exit_loop: false"},
		},
		{
			"a schema and an exit", "sub_agents: [{name: a, instructions: a, can_exit_loop: true, output_schema: {type: object, properties: {a: {type: string}}}}]", "2:77", definition.SeverityWarning, definition.CodeConflict,
			"\"a\" must answer in JSON and may end the loop", "give this one can_exit_loop: false", [2]string{"can_exit_loop: true", "can_exit_loop: false"},
		},
		{
			"a finalizer that may exit", "sub_agents:\n  - {name: a, instructions: a, output_key: k, can_exit_loop: false}\n  - {name: f, instructions: '{{k}}', output_key: loop_output, can_exit_loop: true}", "4:78", definition.SeverityError, definition.CodeFinalizer,
			"\"f\" runs after the loop has stopped", "remove it", [2]string{", can_exit_loop: true", ""},
		},
		{
			"a finalizer with exit_when", "sub_agents:\n  - {name: a, text: a, output_key: k}\n  - {name: f, text: '{{k}}', output_key: loop_output, exit_when: 'true'}", "4:66", definition.SeverityError, definition.CodeFinalizer,
			"\"f\" runs after the loop has stopped", "remove it", [2]string{", exit_when: 'true'", ""},
		},
		{
			"a judge of its own", "score: {key: mark, target: 8}\nsub_agents:\n  - {name: both, instructions: Write and mark., can_exit_loop: false, output_key: mark}", "4:12", definition.SeverityNote, definition.CodeJudge,
			"\"both\" judges itself", "let one agent write, and another one judge", [2]string{"sub_agents:", "sub_agents:\n  - {name: writer, instructions: Write., can_exit_loop: false}"},
		},
		{
			"a judge of its own, by an expression", "score: {expr: number(state.mark), target: 8}\nsub_agents:\n  - {name: both, instructions: Write and mark., can_exit_loop: false, output_key: mark}", "4:12", definition.SeverityNote, definition.CodeJudge,
			"\"both\" judges itself", "let one agent write, and another one judge", [2]string{"sub_agents:", "sub_agents:\n  - {name: writer, instructions: Write., can_exit_loop: false}"},
		},
		{
			"a model whose score is taken for exact", "max_iterations: 8\nscore: {key: mark, label: 'Mark:', min_delta: 0.1}\nsub_agents:\n  - {name: writer, instructions: Write., can_exit_loop: false}\n  - {name: critic, instructions: Mark., can_exit_loop: false, output_key: mark}", "3:8", definition.SeverityNote, definition.CodeNoise,
			"the score of the model \"critic\" is taken for exact", "judge: {step: critic} lets the loop learn the noise", [2]string{"min_delta: 0.1", "min_delta: 0.1, judge: {step: critic}"},
		},
		{
			"a judge and few iterations", "score: {key: mark, label: 'Mark:', min_delta: 0.1, judge: {step: critic, samples: 3}}\nmax_iterations: 6\nsub_agents:\n  - {name: writer, instructions: Write., can_exit_loop: false}\n  - {name: critic, instructions: Mark., can_exit_loop: false, output_key: mark}", "3:17", definition.SeverityNote, definition.CodeNoise,
			"with a judge a flat loop is seen after about 7", "set max_iterations above 7", [2]string{"max_iterations: 6", "max_iterations: 12"},
		},
		{
			"what nothing bounds", "max_iterations: 0\ntimeouts: none\nsub_agents: [{name: a, command: [ls], timeout: 1s, exit_when: result.exit_code == 0}]", "2:17", definition.SeverityNote, definition.CodeNoBound,
			"nothing limits the iterations of \"x\"", "give timeout, or max_iterations", [2]string{"max_iterations: 0", "max_iterations: 8"},
		},
		{
			"a cost that nobody knows", "sub_agents: [{name: a, instructions: a, model: openai/m, can_exit_loop: true}]", "2:48", definition.SeverityNote, definition.CodePrice,
			"the price of \"openai/m\" is not known", "prices: {openai/m: {input: …, output: …}}", [2]string{"sub_agents:", "prices: {openai/m: {input: 1, output: 2}}\nsub_agents:"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "name: x\n" + tt.text + "\n"
			i := slices.IndexFunc(preflight(text), func(p *definition.Problem) bool { return p.Code == tt.code && strings.Contains(p.Message, tt.says) })
			if i < 0 {
				t.Fatalf("%s does not say it:\n%v", text, preflight(text))
			}
			p := preflight(text)[i]
			if at := fmt.Sprintf("%d:%d", p.Line, p.Column); at != tt.at || p.Severity != tt.sev || !strings.Contains(p.Hint, tt.hint) {
				t.Errorf("it is a %s in %s, %q, with the hint %q; want a %s in %s, %q", p.Severity, at, p.Message, p.Hint, tt.sev, tt.at, tt.hint)
			}
			if !strings.Contains(text, tt.fixed[0]) {
				t.Fatalf("there is no %q in it", tt.fixed[0])
			}
			for _, p := range preflight(strings.Replace(text, tt.fixed[0], tt.fixed[1], 1)) {
				if p.Code == tt.code || p.Severity == definition.SeverityError {
					t.Errorf("when that was done: %s", p.Format())
				}
			}
		})
	}
}

// preflight is all that there is to say of a definition.
func preflight(text string) definition.Problems {
	d, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
	if problems, bad := errors.AsType[definition.Problems](err); bad {
		return problems
	}
	return d.Worst(definition.Assumed{}).Problems()
}
