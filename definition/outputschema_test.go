// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model/scripted"
)

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// D18: the shape of an answer, in the words in which models are asked.
func TestOutputSchema(t *testing.T) {
	d := parse(t, `name: a
instructions: a
output_schema:
  $schema: https://json-schema.org/draft/2020-12/schema
  title: Review
  description: What is wrong.
  properties:
    reason: {type: string, minLength: 3, maxLength: 9, pattern: "^[A-Z]", format: date, examples: [Two]}
    marks: {type: array, minItems: 1, maxItems: 4, items: {type: number, minimum: 0.5, maximum: 10}}
    grade: {type: [string, "null"], enum: [good, bad]}
    level: {type: integer, enum: [1, 2], default: 2}
    kind: {const: review}
    more: {anyOf: [{type: boolean}, {type: object, minProperties: 1, maxProperties: 2, properties: {a: {type: "null"}}, additionalProperties: false}]}
    note: {type: string, nullable: true, default: null}
  required: [reason, grade]
`)
	text := func(s genai.Schema) *genai.Schema { s.Type = genai.TypeString; return &s }
	want := &genai.Schema{
		Type: genai.TypeObject, Title: "Review", Description: "What is wrong.", Required: []string{"reason", "grade"},
		PropertyOrdering: []string{"reason", "marks", "grade", "level", "kind", "more", "note"},
		Properties: map[string]*genai.Schema{
			"reason": text(genai.Schema{MinLength: new(int64(3)), MaxLength: new(int64(9)), Pattern: "^[A-Z]", Format: "date"}),
			"marks": {Type: genai.TypeArray, MinItems: new(int64(1)), MaxItems: new(int64(4)),
				Items: &genai.Schema{Type: genai.TypeNumber, Minimum: new(0.5), Maximum: new(10.0)}},
			"grade": text(genai.Schema{Nullable: new(true), Enum: []string{"good", "bad"}}),
			"level": {Type: genai.TypeInteger, Enum: []string{"1", "2"}, Default: 2.0},
			"kind":  text(genai.Schema{Enum: []string{"review"}}),
			"more": {AnyOf: []*genai.Schema{{Type: genai.TypeBoolean}, {
				Type: genai.TypeObject, MinProperties: new(int64(1)), MaxProperties: new(int64(2)),
				PropertyOrdering: []string{"a"}, Properties: map[string]*genai.Schema{"a": {Type: genai.TypeNULL}},
			}}},
			"note": text(genai.Schema{Nullable: new(true)}),
		},
	}
	if diff := cmp.Diff(want, d.Root.LLM.OutputSchema); diff != "" {
		t.Error(diff)
	}
}

// D18: every provider is asked for the shape, in its own words and in the order
// of the file.
func TestOutputSchemaReachesEveryProvider(t *testing.T) {
	d := parse(t, `name: a
instructions: a
output_key: review
output_schema: {type: object, properties: {why: {type: string}, score: {type: integer, minimum: 1}}, required: [why, score]}
`)
	script := scripted.Script{Answers: []scripted.Answer{{JSON: map[string]any{"why": "short", "score": 3}}}}
	const required = `"required":["why","score"],"type":`
	want := map[string]string{
		"openai":    `{"additionalProperties":false,"properties":{"why":{"type":"string"},"score":{"type":"integer","minimum":1}},` + required + `"object"}`,
		"anthropic": `{"additionalProperties":false,"properties":{"why":{"type":"string"},"score":{"type":"integer","description":"(minimum: 1)"}},` + required + `"object"}`,
		"gemini":    `{"properties":{"score":{"minimum":1,"type":"INTEGER"},"why":{"type":"STRING"}},"propertyOrdering":["why","score"],` + required + `"OBJECT"}`,
	}
	for name, p := range providers(t, script) {
		if p.server == nil {
			continue // the scripted model is not asked in a wire format
		}
		_, after := run(t, d, definition.BuildConfig{DefaultModel: "any", Model: p.open}, nil)
		if asJSON(t, after["review"]) != `{"score":3,"why":"short"}` {
			t.Errorf("%s: state %v", name, after)
		}
		if got := asJSON(t, p.server.Requests()[0].Config.ResponseJsonSchema); got != want[name] {
			t.Errorf("%s: %s", name, got)
		}
	}
}

const judged = `name: tune
max_iterations: 3
stop_when: state.review.score >= 8.0 && json(state.review).done
score: {key: review, field: score}
result: review
sub_agents:
  - name: critic
    instructions: "Last time: {{review.score}} {{review.why}} {{prev.review.id}} {{review}}"
    output_key: review
    output_schema:
      type: object
      properties: {why: {type: string}, score: {type: number}, done: {type: boolean}, id: {type: integer}}
      required: [why, score, done]
`

// The key of an answer with an output_schema holds the value, which templates, expressions and scores read.
func TestAnswerOfASchemaIsAValue(t *testing.T) {
	rec, cfg := record(t,
		scripted.Answer{Text: `{"why": "short", "score": 7.5, "done": false, "id": 9007199254740993}`},
		scripted.Answer{Text: ` {"why": "fine", "score": 8, "done": true}`})
	result, after := run(t, parse(t, judged), cfg, nil)
	want := map[string]any{"why": "fine", "score": 8.0, "done": true}
	if diff := cmp.Diff(want, after["review"]); diff != "" {
		t.Errorf("the key (-want +got):\n%s", diff)
	}
	if len(rec.requests) != 2 {
		t.Fatalf("%d requests, want 2", len(rec.requests))
	}
	const asked = `Last time: 7.5 short 9007199254740993 {"done":false,"id":9007199254740993,"score":7.5,"why":"short"}`
	if got := rec.requests[1].Config.SystemInstruction.Parts[0].Text; !strings.Contains(got, asked) {
		t.Errorf("the second request has %q, want %q", got, asked)
	}
	if result != asJSON(t, want) {
		t.Errorf("the result is %q", result)
	}
}

// A run that an older version has begun continues with texts.
func TestAnswerOfASchemaAsText(t *testing.T) {
	_, cfg := record(t, scripted.Answer{Text: `{"score": 8}`})
	cfg.TextAnswers = true
	_, after := run(t, parse(t, `name: a
instructions: Judge.
output_key: review
output_schema: {type: object, properties: {score: {type: number}}}
`), cfg, nil)
	if after["review"] != `{"score": 8}` {
		t.Errorf("the key is %v", after["review"])
	}
}

// Schemas of other types than object give the value, too.
func TestAnswerOfASchemaOfEveryType(t *testing.T) {
	for _, tt := range []struct {
		schema, answer string
		want           any
	}{
		{"{type: number}", "8.5", 8.5},
		{"{type: integer}", "9", 9.0},
		{"{type: boolean}", "true", true},
		{"{enum: [pass, fail]}", `"pass"`, "pass"},
		{"{type: array, items: {type: string}}", `["a", "b"]`, []any{"a", "b"}},
	} {
		_, cfg := record(t, scripted.Answer{Text: tt.answer})
		_, after := run(t, parse(t, "name: a\ninstructions: Judge.\noutput_key: x\noutput_schema: "+tt.schema), cfg, nil)
		if diff := cmp.Diff(tt.want, after["x"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.schema, diff)
		}
	}
}

// LOOP 25: check knows the fields of an answer.
func TestFieldsOfASchemaAreKnown(t *testing.T) {
	const why = `did you mean "score"?`
	for _, tt := range []struct{ old, new, want string }{
		{"{{review.score}}", "{{review.scor}}", why},
		{"{{prev.review.id}}", "{{prev.review.scor}}", why},
		{"state.review.score", "state.review.scor", why},
		{"json(state.review).done", "json(state.review)[\"scor\"] == 1", why},
		{"json(state.review).done", "state.?review.?scor.orValue(1) == 1", why},
		{"json(state.review).done", "has(state.review.scor)", why},
		{"field: score", "field: scor", why},
		{"json(state.review).done", `"scor" in [state.review.why]`, ""},
		{"{{review.why}}", "{{review.why.size}}", ""},
		{"name: tune", "name: tune\nstate: {review: {scor: 1}}", ""},
		{"{{review.score}}", "{{review.quality}}", "its fields are done, id, score, why"},
		{"json(state.review).done", `state.review.contains("yes")`, "review has no contains(): it is an object"},
		{"json(state.review).done", `json(state.review).trim() == ""`, "ask a field of it; its fields are done, id, score, why"},
		{"json(state.review).done", `state.review.why.contains("yes")`, ""},
	} {
		d := parse(t, strings.Replace(judged, tt.old, tt.new, 1))
		var b strings.Builder
		if err := d.Warnings().Format(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); tt.want == "" && strings.Contains(got, "has no ") || !strings.Contains(got, tt.want) ||
			tt.want == why && !strings.Contains(got, `review has no field "scor" in the output_schema of "critic"`) {
			t.Errorf("%s: got %s, want %s", tt.new, got, tt.want)
		}
	}
}
