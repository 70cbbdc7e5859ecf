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
		fmt.Fprintln(w, strings.TrimRight(margin+brief.Clean(strings.TrimRight(line, "\r\n")), " "))
	}
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
