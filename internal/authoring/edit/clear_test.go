// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/authoring/edit"
)

// U4: an input of a form that is emptied takes its field away, whether the text has it yet or not.
func TestClear(t *testing.T) {
	const file = `name: refine
goal: better # than it was
score: review
budget: {tokens: 200}
defaults: &d {timeout: 5s}
sub_agents:
  - {name: writer, text: Hello, output_key: draft}
  - text: alone
  - *d
  - name: polish
    score:
      key: draft
      judge: {step: trim}
`
	for _, tt := range []struct{ path, from, to string }{
		{"goal", "goal: better # than it was\n", ""},
		{"description", "", ""},
		{"score.key", "score: review\n", ""},
		{"score.target", "", ""},
		{"budget.tokens", "budget: {tokens: 200}\n", ""},
		{"budget.calls", "", ""},
		{"retry.attempts", "", ""},
		{"sub_agents[0].text", "text: Hello, ", ""},
		{"sub_agents[1].text", "- text: alone", "- {}"},
		{"sub_agents[7].text", "", ""},
		{"sub_agents[3].score.judge.step", "\n      judge: {step: trim}", ""},
	} {
		t.Run(tt.path, func(t *testing.T) {
			e, err := edit.New([]byte(file))
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Clear(tt.path); err != nil {
				t.Fatal(err)
			}
			if got, want := string(e.Bytes()), strings.Replace(file, tt.from, tt.to, 1); got != want {
				t.Errorf("the text is\n%s\nand not\n%s", got, want)
			}
		})
	}
	e, err := edit.New([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Clear("sub_agents[2].timeout"); err == nil || !strings.HasPrefix(err.Error(), "clear sub_agents[2].timeout: 9:5: *d stands for") {
		t.Errorf("a field that stands elsewhere: %v", err)
	}
}
