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

// printState writes a state: a key a line, and texts of several lines below
// theirs.
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

// valueText is a value on a line.
func valueText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("(%T)", v)
	}
	return string(text)
}

// printDiff writes changes: ~ for a key that changed, + for one that is new, and
// - for one that is gone. Within texts, [-these words-] were replaced by {+those+}; keys
// whose texts show the same are shown together, where the first of them stands.
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

// around is how much of what did not change is shown on each side of a change.
const around = 60

// wordDiff is a text that changed, with the change in brackets, and little of
// what did not.
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

// shortened leaves out the middle of a text that did not change; its beginning
// too if there is no change before it, and its end if there is none behind.
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
