// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"encoding/json"
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
		if after["review"] != `{"score":3,"why":"short"}` {
			t.Errorf("%s: state %v", name, after)
		}
		if got := asJSON(t, p.server.Requests()[0].Config.ResponseJsonSchema); got != want[name] {
			t.Errorf("%s: %s", name, got)
		}
	}
}
