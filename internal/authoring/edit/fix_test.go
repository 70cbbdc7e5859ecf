// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/edit"
)

// What a finding suggests is written where a person would write it, and the file can be
// read then.
func TestFix(t *testing.T) {
	const file = `name: refine # it
max_iterations: 3
score: review
model: scripted/x
sub_agents:
  - name: writer
    instructions: Improve {{draft}}. # well
    output_key: draft
  - {name: critic, instructions: 'Judge {{draft}}.', output_key: review}
  - name: polish
    type: loop
    score: {key: draft, judge: trim}
    sub_agents:
      - name: trim
        instructions: |
          Shorten {{draft}}.
        output_key: draft
`
	for _, tt := range []struct {
		agent, field, value string
		appends             bool
		from, to            string
	}{
		{"refine", "max_iterations", "8", false, "max_iterations: 3\n", "max_iterations: 8\n"},
		{"refine", "on_regression", "rollback", false, "score: review\n", "score: review\non_regression: rollback\n"},
		{"refine", "score.min_delta_percent", "5", false, "score: review\n", "score: {key: review, min_delta_percent: 5}\n"},
		{"refine", "budget.tokens", "200000", false, "score: review\n", "score: review\nbudget: {tokens: 200000}\n"},
		{"critic", "can_exit_loop", "true", false, "output_key: review}", "output_key: review, can_exit_loop: true}"},
		{"polish", "score.judge.samples", "8", false, "judge: trim}", "judge: {step: trim, samples: 8}}"},
		{"trim", "timeout", "6s", false, "", "timeout: 6s\n"},
		{"trim", "instructions", "Keep the facts.", true, "          Shorten {{draft}}.\n", "          Shorten {{draft}}.\n\n          Keep the facts.\n"},
		{"writer", "instructions", "{{#rejected.reason}}Undone: {{rejected.reason}}{{/rejected.reason}}", true, "instructions: Improve {{draft}}. # well\n", ""},
	} {
		t.Run(tt.agent+" "+tt.field, func(t *testing.T) {
			e, err := edit.New([]byte(file))
			if err != nil {
				t.Fatal(err)
			}
			if tt.appends {
				err = e.Append(tt.agent, tt.field, tt.value)
			} else {
				err = e.Fix(tt.agent, tt.field, tt.value)
			}
			if err != nil {
				t.Fatal(err)
			}
			got := string(e.Bytes())
			if !strings.Contains(got, tt.to) || tt.from != "" && tt.to != "" && strings.Replace(file, tt.from, tt.to, 1) != got || got == file {
				t.Errorf("%s", got)
			}
			if _, err := definition.Parse("loop.yaml", e.Bytes(), definition.Options{}); err != nil {
				t.Errorf("it cannot be read: %v\n%s", err, got)
			}
		})
	}
}

func TestFixOfNothing(t *testing.T) {
	e, err := edit.New([]byte("name: refine\nsub_agents:\n  - {name: a, text: x}\n  - {name: b, set: {n: '1'}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	before := string(e.Bytes())
	for _, err := range []error{
		e.Fix("nobody", "timeout", "3s"), e.Append("nobody", "text", "y"), e.Append("b", "set", "y"), e.Fix("a", "timeout", "{"),
	} {
		if err == nil || string(e.Bytes()) != before {
			t.Errorf("%v:\n%s", err, e.Bytes())
		}
	}
}

// A finding suggests a change, and this makes it.
func ExampleEditor_Fix() {
	e, err := edit.New([]byte("name: refine\nscore: review\nsub_agents:\n  - {name: critic, text: \"7\", output_key: review}\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Fix("refine", "score.target", "8"))
	fmt.Println(e.Append("critic", "text", "of 10"))
	fmt.Printf("%s", e.Bytes())
	// Output:
	// <nil>
	// <nil>
	// name: refine
	// score: {key: review, target: 8}
	// sub_agents:
	//   - {name: critic, text: "7\n\nof 10\n", output_key: review}
}
