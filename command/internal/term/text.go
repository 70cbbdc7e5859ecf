// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/progress/prose"
)

// Listed joins names with commas; of more than eight names it shows the first eight.
func Listed(names []string) string {
	if len(names) > 8 {
		names = append(names[:8:8], "…")
	}
	return strings.Join(names, ", ")
}

// Meant returns a hint about an unknown word: the most similar of the names, or the list of the names.
func Meant(word string, names []string) string {
	if near := expr.Nearest(word, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are " + Listed(names)
}

// Branches returns the beginning of a line in a tree, and of the lines below it.
func Branches(last bool) (branch, stem string) {
	if last {
		return "└── ", "    "
	}
	return "├── ", "│   "
}

// Indented writes text from outside, each line with a margin.
func Indented(w io.Writer, text, margin string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		fmt.Fprintln(w, strings.TrimRight(margin+brief.Clean(strings.TrimRight(line, "\r\n")), " "))
	}
}

// Note returns a finding on one line.
func Note(f prose.Finding) string {
	text := f.String()
	if strings.Contains(string(f.Loop), "/") {
		text = string(f.Loop) + ": " + text
	}
	return "Note: " + strings.Join(strings.Fields(text), " ")
}

// Amount returns an amount of money in any currency, with four significant digits and no exponent.
func Amount(f float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 4, 64), 64) // parses its own output, so it cannot fail
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
