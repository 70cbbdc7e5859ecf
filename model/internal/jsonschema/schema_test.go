// SPDX-License-Identifier: Apache-2.0

package jsonschema_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model/internal/jsonschema"
)

func TestOf(t *testing.T) {
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
	for _, tt := range []struct {
		form jsonschema.Form
		want string
	}{
		{jsonschema.Plain, `{"properties":{"why":{"maxLength":80,"type":["string","null"]},"score":{"description":"how good","maximum":10,"minimum":0,"type":"integer"},"kind":{"enum":["a","b"],"type":"string"},"list":{"items":{"anyOf":[{"properties":{},"type":"object"},{"enum":[1,2],"type":"number"}]},"type":"array"}},"required":["score"],"title":"Review","type":"object"}`},
		{jsonschema.Bare, `{"additionalProperties":false,"properties":{"why":{"description":"(maxLength: 80)","type":["string","null"]},"score":{"description":"how good (minimum: 0) (maximum: 10)","type":"integer"},"kind":{"enum":["a","b"],"type":"string"},"list":{"items":{"anyOf":[{"additionalProperties":false,"properties":{},"type":"object"},{"enum":[1,2],"type":"number"}]},"type":"array"}},"required":["score"],"title":"Review","type":"object"}`},
	} {
		got, err := json.Marshal(jsonschema.Of(review, tt.form))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("form %d: %s", tt.form, diff)
		}
	}
	if jsonschema.Strict(review) {
		t.Error("a schema with optional properties is called strict")
	}
}

// Members of a schema that was written out keep their order.
func TestAnyKeepsTheOrder(t *testing.T) {
	got, err := jsonschema.Any(json.RawMessage(`{"properties":{"why":{},"score":{}},"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := got["properties"].(json.RawMessage); !ok || string(s) != `{"why":{},"score":{}}` {
		t.Errorf("got %s", got["properties"])
	}
	for _, bad := range []any{json.RawMessage(`[1]`), func() {}, "text"} {
		if got, err := jsonschema.Any(bad); err == nil {
			t.Errorf("%v is taken for a schema: %v", bad, got)
		}
	}
}
