// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"regexp"
	"testing"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Whatever a name is made of, in a drawing it stays inside its label: a Mermaid
// label has only harmless characters and whole entities in it. U10
func FuzzGraphLabels(f *testing.F) {
	for _, s := range []string{`a"]`, `\`, `\"`, "<b>&#35;", "%%{init}%%", "`x`", "1. x", "- x", "日本", "a\u202eb", "a\nb", "\u0379", "\uf596"} {
		f.Add(s)
	}
	mermaid := regexp.MustCompile(`^(?:[\pL\p{Nd} _.,:/()=+★→·≥≤…-]|#[0-9]+;|<br/>)*$`)
	f.Fuzz(func(t *testing.T, s string) {
		lines := []string{brief.Line(s, 40), "end"}
		if l := mermaidLabel(lines); !mermaid.MatchString(l) {
			t.Errorf("%q: %q", s, l)
		}
		if n := len([]rune(lines[0])); n > 41 { // with an ellipsis
			t.Errorf("%q: %d characters", s, n)
		}
	})
}
