// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
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
		{"score: {key: review, target: 8}", "", `review is a text that "critic" writes, in which the score must be found [LOOP035]`},
		{"score: {key: review, target: 8, label: Score}", "", ""},
		{"score: {key: review, target: 8, field: total}", "", ""},
		{"score: {key: review, target: 8}", schema, ""},
		{"score: {key: review, target: 8, dimension_target: 7, dimensions: [depth]}", schema, ""},
		{"stop_when: state.review >= 8", "", `state.review is a text that "critic" writes, not a number, so the condition never holds [LOOP035]`},
		{"stop_when: {all: [iteration >= 2, {not: 8.5 < state.review}]}", schema, `state.review is an object that "critic" writes, not a number, so the condition never holds [LOOP035]`},
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

// C17: a target for dimensions that the score cannot have is refused, and warned of
// where it is not sure to have them.
func TestDimensionTargetWithoutDimensions(t *testing.T) {
	const never, perhaps = "dimension_target can never be met", "dimension_target is met only if the score has dimensions"
	for _, tt := range []struct{ score, step, want string }{
		{"key: s", "instructions: Judge., output_key: s, output_schema: {type: object, properties: {score: {type: number}}}", never},
		{"key: s", "instructions: Judge., output_key: s, output_schema: {type: object, properties: {score: {type: number}, dimensions: {type: object}}}", ""},
		{"key: s", "instructions: Judge., output_key: s", ""},
		{"key: s", "set: {s: 9}", never},
		{"key: s", "set: {s: state.draft}", perhaps},
		{"key: s, dimensions: [depth]", "set: {s: state.draft}", ""},
		{"key: s", "value: 9.5, output_key: s", never},
		{"key: s", `text: '{"score": 9}', output_key: s`, perhaps},
		{`expr: "9.0"`, "set: {s: 9}", "score.dimension_target can never be met: score.expr gives a number"},
		{`expr: state.s`, "set: {s: state.draft}", ""},
	} {
		text := "name: x\nmax_iterations: 3\nstate: {draft: {}}\nscore: {" + tt.score + ", dimension_target: 7}\nsub_agents:\n  - {name: a, " + tt.step + "}\n"
		d, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
		found, _ := errors.AsType[definition.Problems](err)
		if err == nil {
			found = d.Warnings()
		}
		var said strings.Builder
		for _, p := range found {
			if strings.Contains(p.Message, "dimension_target") {
				said.WriteString(p.Message)
			}
		}
		if tt.want == "" && said.String() != "" || !strings.Contains(said.String(), tt.want) || (tt.want == perhaps) != (err == nil) && tt.want != "" {
			t.Errorf("%s, %s: %q (%v), want %q", tt.score, tt.step, said.String(), err, tt.want)
		}
	}
}

// The agents that write the score are known to the loop, unless nobody else has a prompt.
func TestAgentsThatGiveTheScore(t *testing.T) {
	for text, want := range map[string][]string{
		"  - {name: writer, instructions: Write., output_key: draft}\n  - {name: critic, instructions: Judge., output_key: mark}\n": {"critic"},
		"  - {name: writer, instructions: Write and mark., output_key: mark}\n":                                                     nil,
		"  - {name: both, type: sequential, sub_agents: [{name: writer, instructions: W., output_key: draft}, " +
			"{name: critic, instructions: J., output_key: mark}]}\n": {"critic"},
	} {
		d := parse(t, "name: tune\nmax_iterations: 3\nmodel: scripted/script.yaml\nscore: {key: mark}\nsub_agents:\n"+text)
		root, err := d.Build(t.Context(), definition.BuildConfig{Model: func(context.Context, string) (model.LLM, error) { return scripted.New(scripted.Script{}) }})
		if err != nil {
			t.Fatal(err)
		}
		l, ok := root.(*loopagent.Agent)
		if !ok || !slices.Equal(l.Config().Scorers, want) {
			t.Errorf("%s: %T %v", text, root, l.Config().Scorers)
		}
	}
}
