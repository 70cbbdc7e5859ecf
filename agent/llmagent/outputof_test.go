// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/llmagent"
)

type verdict struct {
	Reason string   `json:"reason" jsonschema:"what is still missing"`
	Score  int      `json:"score"`
	Faults []string `json:"faults,omitempty"`
	Next   *struct {
		Step string `json:"step"`
	} `json:"next"`
}

// The schema has the fields in the order of the struct, and says which may be left out or null.
func TestOutputOf(t *testing.T) {
	want := &genai.Schema{
		Type: genai.TypeObject, Required: []string{"reason", "score", "next"},
		PropertyOrdering: []string{"reason", "score", "faults", "next"},
		Properties: map[string]*genai.Schema{
			"reason": {Type: genai.TypeString, Description: "what is still missing"},
			"score":  {Type: genai.TypeInteger},
			"faults": {Type: genai.TypeArray, Items: &genai.Schema{Type: genai.TypeString}},
			"next": {Type: genai.TypeObject, Nullable: new(true), Required: []string{"step"}, PropertyOrdering: []string{"step"},
				Properties: map[string]*genai.Schema{"step": {Type: genai.TypeString}}},
		},
	}
	if diff := cmp.Diff(want, llmagent.OutputOf[verdict]()); diff != "" {
		t.Error(diff)
	}
	if got := llmagent.OutputOf[[]verdict](); got.Type != genai.TypeArray || !cmp.Equal(got.Items, want) {
		t.Errorf("a list: %+v", got)
	}
}

// A type that a model cannot be asked for is a mistake of the program, and the message names the field.
func TestOutputOfOtherTypes(t *testing.T) {
	type node struct{ Children []node }
	for want, of := range map[string]func() *genai.Schema{
		"no fixed fields":        llmagent.OutputOf[map[string]int],
		".Sizes has no fixed":    llmagent.OutputOf[struct{ Sizes map[string]int }],
		"[].Sizes has no fixed":  llmagent.OutputOf[[]struct{ Sizes map[string]int }],
		"OutputOf[func()]":       llmagent.OutputOf[func()],
		"OutputOf[llmagent_test": llmagent.OutputOf[node],
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
			}()
			of()
		}()
	}
}
