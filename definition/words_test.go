// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"strings"
	"testing"
)

// LOOP 12, 34: check warns where a number has to be found in a model's words, and of a
// comparison that can never hold.
func TestWordsAsNumbers(t *testing.T) {
	const text = `name: tune
max_iterations: 3
SCORE
sub_agents:
  - {name: writer, instructions: "Improve {{draft}} by {{review}}", output_key: draft}
  - {name: critic, instructions: "Judge {{draft}}", output_key: reviewSCHEMA}
`
	schema := `, output_schema: {type: object, properties: {score: {type: number}}, required: [score]}`
	for _, tt := range []struct{ score, schema, want string }{
		{"score: {key: review, target: 8}", "", `review is what "critic" says in words: a number has to be found in it [LOOP035]`},
		{"score: {key: review, target: 8, label: Score}", "", ""},
		{"score: {key: review, target: 8, field: total}", "", ""},
		{"score: {key: review, target: 8}", schema, ""},
		{"score: {key: review, target: 8, dimension_target: 7}", schema, `dimension_target is met only if the score has dimensions, and none are named [LOOP032]`},
		{"score: {key: review, target: 8, dimension_target: 7, dimensions: [depth]}", schema, ""},
		{"stop_when: state.review >= 8", "", `state.review is a text, what "critic" says: it is no number, and the condition can never hold [LOOP035]`},
		{"stop_when: {all: [iteration >= 2, {not: 8.5 < state.review}]}", schema, `state.review is a text, what "critic" says: it is no number, and the condition can never hold [LOOP035]`},
		{"stop_when: json(state.review).score >= 8.0", schema, ""},
		{`stop_when: state.review == "fine"`, "", ""},
	} {
		d := parse(t, strings.NewReplacer("SCORE", tt.score, "SCHEMA", tt.schema).Replace(text))
		var b strings.Builder
		if err := d.Warnings().Format(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); tt.want == "" && strings.Contains(got, "LOOP03") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.score, got, tt.want)
		}
	}
}

// LOOP 16: result names the key that is handed back, or asks for the best.
func TestResultOfALoop(t *testing.T) {
	d := parse(t, "name: l\nresult: draft\nsub_agents: [{name: w, text: x, output_key: draft}]\n")
	if l := d.Root.Loop; l.Result != "draft" || l.BestOnExit {
		t.Errorf("%+v", l)
	}
	d = parse(t, "name: l\nresult: best\nsub_agents: [{name: w, text: x, output_key: draft}]\n")
	if l := d.Root.Loop; l.Result != "" || !l.BestOnExit {
		t.Errorf("%+v", l)
	}
}
