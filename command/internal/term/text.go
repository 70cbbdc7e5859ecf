// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/progress/prose"
)

// Listed joins names with commas; of more than eight it shows the first eight.
func Listed(names []string) string {
	if len(names) > 8 {
		names = append(names[:8:8], "…")
	}
	return strings.Join(names, ", ")
}

// Meant says which of some names somebody may have meant by another one, or which there are.
func Meant(word string, names []string) string {
	if near := expr.Nearest(word, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are " + Listed(names)
}

// OneLine is a text on one line of at most so many characters, without what would
// command a terminal or turn the direction of what follows it.
func OneLine(s string, most int) string {
	return Clipped(strings.Join(strings.Fields(progress.Clean(s)), " "), most)
}

// Branches are the lines of a tree before a row, and before what is below the row.
func Branches(last bool) (branch, stem string) {
	if last {
		return "└── ", "    "
	}
	return "├── ", "│   "
}

// Indented writes a text of somebody else's, each line with a margin.
func Indented(w io.Writer, text, margin string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		fmt.Fprintln(w, strings.TrimRight(margin+progress.Clean(strings.TrimRight(line, "\r\n")), " "))
	}
}

// Clipped is a text that is not longer than so many letters.
func Clipped(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// Note is a finding on a line.
func Note(f prose.Finding) string {
	text := f.String()
	if strings.Contains(string(f.Loop), "/") {
		text = string(f.Loop) + ": " + text
	}
	return "Note: " + strings.Join(strings.Fields(text), " ")
}

// Amount writes an amount of money, in whichever currency, with four significant digits and no exponent.
func Amount(f float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 4, 64), 64) // which reads what it has written
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
