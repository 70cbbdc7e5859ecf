// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
)

const comparing = `name: x
max_iterations: 8
score: {key: mark, min_delta: 0.1, judge: {step: critic, compare: best}}
sub_agents:
  - {name: writer, instructions: "Write. The last one: {{draft}}", output_key: draft}
  - {name: critic, instructions: "By how much is A better than B, from -2 to 2? A: {{draft}} B: {{best.draft}}", output_key: mark}
`

// A judge that compares is asked four times if the file says nothing else: with two answers it would lose to absolute marks.
func TestJudgeThatCompares(t *testing.T) {
	p := parse(t, comparing).Root.Plan()
	if j := p.Score.Judge; j.Compare != loop.CompareBest || j.Samples != 4 {
		t.Errorf("%+v", j)
	}
	for _, c := range []struct{ from, to, want string }{
		{"compare: best", "compare: best, samples: 3", "a comparison is made an even number of times"},
		{"compare: best", "compare: first", "compare"},
		{"{{best.draft}}", "the start", `"critic" compares two versions, and reads only one of them`},
		{"min_delta: 0.1", "min_delta: 0.1, lower_is_better: true", "score.lower_is_better means nothing for a judge that compares two versions"},
		{"max_iterations: 8", "max_iterations: 8\nworkspace: {}", "cannot compare versions of a workspace"},
		{"max_iterations: 8", "max_iterations: 20\non_plateau: [fresh]", "begins from the start, and score.judge compares with the best"},
		{"output_key: draft", "output_key: draft, best_of: 2", "compares only with the best"},
	} {
		text := strings.Replace(comparing, c.from, c.to, 1)
		_, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}
