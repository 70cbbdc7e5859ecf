// SPDX-License-Identifier: Apache-2.0

package functiontool_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/tool/functiontool"
)

// D18: a schema of genai's says the same as JSON Schema.
func TestSchemaOf(t *testing.T) {
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
		got, err := json.Marshal(functiontool.SchemaOf(s))
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

func TestShape(t *testing.T) {
	shape, err := functiontool.NewShape(functiontool.SchemaOf(&genai.Schema{
		Type: genai.TypeObject, Required: []string{"city"},
		Properties: map[string]*genai.Schema{
			"city": {Type: genai.TypeString, Pattern: "^[A-Z]"},
			"days": {Type: genai.TypeArray, Items: &genai.Schema{Type: genai.TypeInteger}},
			"note": {Type: genai.TypeString, Nullable: new(true)},
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		`{"city":"Rome","days":[1,2],"note":null,"more":true}`: nil,
		`{"days":[1,"two"],"note":3}`:                          {`city: is missing, expected a string`, `days[1]: expected an integer, got the string "two"`, `note: expected a string, got the number 3`},
		`"Rome"`:                                               {`expected an object, got the string "Rome"`},
	} {
		if diff := cmp.Diff(want, shape.Check(value(t, text))); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	if got := shape.Check(value(t, `{"city":"rome"}`)); len(got) != 1 {
		t.Errorf("a pattern: %q", got)
	}
	if _, err := functiontool.NewShape(functiontool.SchemaOf(&genai.Schema{Type: genai.TypeString, Pattern: "("})); err == nil {
		t.Error("a pattern that is none is taken")
	}
}
