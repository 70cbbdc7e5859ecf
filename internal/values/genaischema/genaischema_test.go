// SPDX-License-Identifier: Apache-2.0

package genaischema_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/genaischema"
)

// D18: a schema of genai's says the same as JSON Schema.
func TestOf(t *testing.T) {
	text := &genai.Schema{Type: genai.TypeString}
	for want, s := range map[string]*genai.Schema{
		`null`:                               nil,
		`true`:                               {},
		`{"type":"string"}`:                  {Type: "string"},
		`{"type":["null","number"]}`:         {Type: genai.TypeNumber, Nullable: new(true)},
		`{"type":"string","enum":["a","5"]}`: {Type: genai.TypeString, Format: "enum", Enum: []string{"a", "5"}},
		`{"type":"integer","enum":[1,5]}`:    {Type: genai.TypeInteger, Enum: []string{"1", "5"}},
		`{"type":["null","string"],"enum":["a",null]}`:                         {Type: "string", Nullable: new(true), Enum: []string{"a"}},
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`:                        {AnyOf: []*genai.Schema{text}, Nullable: new(true)},
		`{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3}`: {Type: genai.TypeArray, Items: text, MinItems: new(int64(1)), MaxItems: new(int64(3))},
		`{"type":"string","description":"d","title":"t","pattern":"^a","format":"date","minLength":1,"maxLength":9,"default":"abc"}`: {
			Type: genai.TypeString, Title: "t", Description: "d", Pattern: "^a", Format: "date", MinLength: new(int64(1)), MaxLength: new(int64(9)), Default: "abc",
		},
		`{"type":"object","properties":{"why":{"type":"string"},"score":{"type":"number","minimum":0,"maximum":10}},"required":["score"],"minProperties":1,"maxProperties":2}`: {
			Type: genai.TypeObject, Required: []string{"score"}, PropertyOrdering: []string{"why", "score"}, MinProperties: new(int64(1)), MaxProperties: new(int64(2)),
			Properties: map[string]*genai.Schema{"why": text, "score": {Type: genai.TypeNumber, Minimum: new(0.0), Maximum: new(10.0)}},
		},
	} {
		got, err := json.Marshal(genaischema.Of(s))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(value(t, want), value(t, string(got))); diff != "" {
			t.Errorf("%s: %s", got, diff)
		}
	}
}

func value(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if m, ok := v.(map[string]any); ok { // the order of types says nothing
		if all, ok := m["type"].([]any); ok && all[0] != "null" {
			m["type"] = []any{all[1], all[0]}
		}
	}
	return v
}

// What providers are told of an answer, in the form that each takes.
func TestAnswer(t *testing.T) {
	review := &genai.Schema{
		Type: genai.TypeObject, Title: "Review", Required: []string{"score"},
		PropertyOrdering: []string{"why", "score"},
		Properties: map[string]*genai.Schema{
			"score": {Type: genai.TypeInteger, Minimum: new(0.0), Maximum: new(10.0), Description: "how good"},
			"why":   {Type: genai.TypeString, MaxLength: new(int64(80)), Nullable: new(true)},
			"kind":  {Type: genai.TypeString, Format: "enum", Enum: []string{"a", "b"}},
			"list":  {Type: genai.TypeArray, Items: &genai.Schema{AnyOf: []*genai.Schema{{Type: genai.TypeObject}, {Type: genai.TypeNumber, Enum: []string{"1", "2"}}}}},
		},
	}
	const (
		kind = `"kind":{"type":"string","enum":["a","b"]}`
		bare = `{"properties":{"why":{"type":["string","null"],"description":"(maxLength: 80)"},"score":{"type":"integer","description":"how good (minimum: 0) (maximum: 10)"},` + kind +
			`,"list":{"type":"array","items":{"anyOf":[{"type":"object","properties":{},"additionalProperties":false},{"type":"number","enum":[1,2]}]}}},"additionalProperties":false}`
		closed = `{"properties":{"why":{"type":["string","null"],"maxLength":80},"score":{"type":"integer","description":"how good","minimum":0,"maximum":10},` + kind +
			`,"list":{"type":"array","items":{"anyOf":[{"type":"object","properties":{},"additionalProperties":false},{"type":"number","enum":[1,2]}]}}},"additionalProperties":false}`
		plain = `{"properties":{"why":{"type":["string","null"],"maxLength":80},"score":{"type":"integer","description":"how good","minimum":0,"maximum":10},` + kind +
			`,"list":{"type":"array","items":{"anyOf":[{"type":"object","properties":{}},{"type":"number","enum":[1,2]}]}}}}`
	)
	cfg := &genai.GenerateContentConfig{ResponseSchema: review}
	for want, of := range map[string]func() (map[string]any, error){
		bare:   func() (map[string]any, error) { return genaischema.Answer(cfg, genaischema.Bare) },
		closed: func() (map[string]any, error) { return genaischema.Answer(cfg, genaischema.Closed) },
		plain: func() (map[string]any, error) {
			return genaischema.Parameters(&genai.FunctionDeclaration{Parameters: review})
		},
	} {
		got, err := of()
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"title": `"Review"`, "type": `"object"`, "required": `["score"]`} {
			if got := string(got[name].(json.RawMessage)); got != want {
				t.Errorf("%s is %s", name, got)
			}
			delete(got, name)
		}
		text := `{"properties":` + string(got["properties"].(json.RawMessage))
		if more, ok := got["additionalProperties"]; ok {
			text += `,"additionalProperties":` + string(more.(json.RawMessage))
		}
		if diff := cmp.Diff(want, text+"}"); diff != "" {
			t.Error(diff)
		}
	}
	if genaischema.Strict(review) {
		t.Error("a schema with optional properties is called strict")
	}
}

// Members of a schema that was written out keep their order.
func TestWrittenSchemaKeepsItsOrder(t *testing.T) {
	got, err := genaischema.Parameters(&genai.FunctionDeclaration{
		ParametersJsonSchema: json.RawMessage(`{"properties":{"why":{},"score":{}},"type":"object"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := got["properties"].(json.RawMessage); !ok || string(s) != `{"why":{},"score":{}}` {
		t.Errorf("got %s", got["properties"])
	}
	for _, bad := range []any{json.RawMessage(`[1]`), func() {}, "text"} {
		if got, err := genaischema.Answer(&genai.GenerateContentConfig{ResponseJsonSchema: bad}, genaischema.Bare); err == nil {
			t.Errorf("%v is taken for a schema: %v", bad, got)
		}
	}
}
