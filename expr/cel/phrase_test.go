// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"testing"

	"github.com/refrain-dev/refrain/expr"
	_ "github.com/refrain-dev/refrain/expr/cel"
)

// C32, T15: a done phrase is compared as people read it, and as a whole.
func TestSays(t *testing.T) {
	const phrase = "No major issues found."
	for text, want := range map[string]bool{
		"No major issues found.":                     true,
		"  **no MAJOR issues\n found!**  ":           true,
		"\"No major issues found\"":                  true,
		"No major issues found. But the end is weak": false,
		"I cannot say: no major issues found":        false,
		"No majorissues found":                       false,
		"":                                           false,
	} {
		p, err := expr.Compile(`says(state.critique, "No major issues found.")`, expr.Var{Name: "state", Type: expr.Map})
		if err != nil {
			t.Fatal(err)
		}
		got, err := expr.EvalBool(p, map[string]any{"state": map[string]any{"critique": text}})
		if err != nil || got != want || expr.Says(text, phrase) != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for text, phrase := range map[string]string{"Não há problemas": "não há problemas!", "it's done": "It’s done", "STOP": "stop."} {
		if !expr.Says(text, phrase) {
			t.Errorf("%q does not say %q", text, phrase)
		}
	}
	if expr.Says("...", "!") || expr.Says("", "") {
		t.Error("a phrase without words is said")
	}
}
