// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"testing"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/vocabulary"
)

func TestKeyIsRefusedWithItsReason(t *testing.T) {
	for key, want := range map[string]string{
		"draft": "", "größe": "", "quality_score": "",
		definition.LoopOutput: "loop_output is an output_key only: it marks the finalizer of a loop",
		"score":               `"score" cannot be a key: {{score}} is built in`,
		"best":                `"best" cannot be a key: {{best.score}} is built in`,
		"a.b":                 `"a.b" in state cannot be a key: a placeholder could not name it`,
		"":                    `"" in state cannot be a key: a placeholder could not name it`,
	} {
		got := ""
		wrong := vocabulary.Key(key, "state")
		if wrong != nil {
			got = wrong.Message
		}
		if got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
		if placeholder := key == "a.b" || key == ""; wrong != nil && wrong.Taken == placeholder {
			t.Errorf("%q: taken is %v", key, wrong.Taken)
		}
	}
}

// What is built in is no key: a text could not tell the two apart.
func TestWhatIsBuiltInIsNoKey(t *testing.T) {
	for _, name := range vocabulary.BuiltIn {
		if vocabulary.Key(name, "state") == nil {
			t.Errorf("%q is built in, and can be a key", name)
		}
	}
	for _, v := range vocabulary.TaskVariables {
		if wrong := vocabulary.Key(v.Name, "state"); v.Type != expr.Map && v.Name != "best_score" && wrong == nil {
			t.Errorf("%q is a variable of expressions, and can be a key", v.Name)
		}
	}
}
