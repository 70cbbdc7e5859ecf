// SPDX-License-Identifier: Apache-2.0

package show

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/progress"
)

// printState writes a state with a line for each key. A text of several lines stands below its key.
func printState(w io.Writer, state map[string]any, behind bool) {
	if behind {
		fmt.Fprintln(w, "\nState:")
	}
	for _, key := range slices.Sorted(maps.Keys(state)) {
		text, isText := state[key].(string)
		if isText && strings.Contains(text, "\n") {
			fmt.Fprintln(w, brief.Clean(key)+":")
			term.Indented(w, text, "  ")
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", brief.Clean(key), brief.Clean(valueText(state[key])))
	}
}

// valueText returns a value on one line.
func valueText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("(%T)", v)
	}
	return string(text)
}

// printDiff writes changes: ~ for a changed key, + for a new key, and - for a removed key. Within texts, [-old words-] were
// replaced by {+new words+}. Keys whose texts show the same are shown together, at the place of the
// first key.
func printDiff(w io.Writer, changes []progress.Change) {
	if len(changes) == 0 {
		fmt.Fprintln(w, "no difference")
	}
	alike := make(map[string][]string) // keys by what their texts show
	for _, c := range changes {
		if c.Before != nil && c.After != nil && c.Words != nil {
			text := strings.TrimSpace(wordDiff(c.Words))
			alike[text] = append(alike[text], brief.Clean(c.Key))
		}
	}
	for _, c := range changes {
		key := brief.Clean(c.Key)
		switch {
		case c.Before == nil:
			fmt.Fprintf(w, "+ %s: %s\n", key, brief.Clean(valueText(c.After)))
		case c.After == nil:
			fmt.Fprintf(w, "- %s: %s\n", key, brief.Clean(valueText(c.Before)))
		case c.Words != nil:
			text := wordDiff(c.Words)
			if keys := alike[strings.TrimSpace(text)]; keys[0] == key {
				fmt.Fprintf(w, "~ %s:\n", strings.Join(keys, ", "))
				term.Indented(w, text, "    ")
			}
		default:
			fmt.Fprintf(w, "~ %s: %s → %s\n", key, brief.Clean(valueText(c.Before)),
				brief.Clean(valueText(c.After)))
		}
	}
}

// around is the number of unchanged characters that are shown on each side of a change.
const around = 60

// wordDiff returns a changed text, with the changes in brackets and the unchanged text shortened.
func wordDiff(edits []progress.Edit) string {
	var b strings.Builder
	for i, e := range edits {
		switch e.Op {
		case progress.Left:
			b.WriteString("[-" + e.Text + "-]")
		case progress.Put:
			b.WriteString("{+" + e.Text + "+}")
		default:
			b.WriteString(shortened(e.Text, i > 0, i < len(edits)-1))
		}
	}
	return b.String()
}

// shortened removes the middle of an unchanged text. It also removes the beginning if no change comes before, and the end if no
// change follows.
func shortened(s string, before, behind bool) string {
	r := []rune(s)
	keep := 0
	if before {
		keep += around
	}
	if behind {
		keep += around
	}
	if len(r) <= keep+10 {
		return s
	}
	var b strings.Builder
	if before {
		b.WriteString(string(r[:around]))
	}
	b.WriteString("…")
	if behind {
		b.WriteString(string(r[len(r)-around:]))
	}
	return b.String()
}
