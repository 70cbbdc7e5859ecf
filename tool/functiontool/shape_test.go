// SPDX-License-Identifier: Apache-2.0

package functiontool_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/tool/functiontool"
)

func value(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
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
