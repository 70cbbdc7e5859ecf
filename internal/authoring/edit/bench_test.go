// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/authoring/edit"
)

// BenchmarkEditor edits texts of nearly the largest size, as people write them and on
// one line. What it takes per byte is to be the same for small ones.
func BenchmarkEditor(b *testing.B) {
	for _, agents := range []int{20, 1700} {
		var rows, line strings.Builder
		rows.WriteString("name: all\nstate: {draft: x}\nsub_agents:\n")
		line.WriteString(`{"name": "all", "state": {"draft": "x"}, "sub_agents": [`)
		for i := range agents {
			words := strings.Repeat("Improve {{draft}} é\n", 20)
			fmt.Fprintf(&rows, "  # agent %d\n  - name: a%d\n    instructions: |\n      %s\n    output_key: k%d\n", i, i,
				strings.ReplaceAll(strings.TrimSpace(words), "\n", "\n      "), i)
			fmt.Fprintf(&line, `{"name": "a%d", "instructions": %q, "output_key": "k%d"}, `, i, words, i)
		}
		for name, text := range map[string]string{"rows": rows.String(), "line": line.String() + `{"name": "last", "text": "x"}]}`} {
			for op, do := range map[string]func(*edit.Editor) error{
				"set": func(e *edit.Editor) error {
					return e.Set(edit.FieldPath("sub_agents", agents-1, "output_key"), "other")
				},
				"move":   func(e *edit.Editor) error { return e.Move("sub_agents", agents-1, 0) },
				"rename": func(e *edit.Editor) error { _, err := e.RenameKey("draft", "text"); return err },
			} {
				b.Run(fmt.Sprintf("%s/%s/%dKB", op, name, len(text)>>10), func(b *testing.B) {
					b.SetBytes(int64(len(text)))
					for b.Loop() {
						e, err := edit.New([]byte(text))
						if err == nil {
							err = do(e)
						}
						if err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
