// SPDX-License-Identifier: Apache-2.0

package term

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/progress"
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

// Cost returns an amount of money as [Amount] does; unknown for nil.
func Cost(f *float64) string {
	if f == nil {
		return "unknown"
	}
	return Amount(*f)
}

// Amount returns an amount of money in any currency, with four significant digits and no exponent.
func Amount(f float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 4, 64), 64) // parses its own output, so it cannot fail
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// PrintTable writes a table with aligned columns, even if it contains wide characters. On a terminal the last column ends at
// the end of the line.
func PrintTable(out io.Writer, table [][]string) error {
	widths := make([]int, len(table[0]))
	for _, row := range table {
		for i, c := range row {
			widths[i] = max(widths[i], ansi.StringWidthWc(c))
		}
	}
	room := ColumnsOf(out)
	w := bufio.NewWriter(out)
	for _, row := range table {
		var line strings.Builder
		for i, c := range row[:len(row)-1] {
			line.WriteString(c + strings.Repeat(" ", widths[i]-ansi.StringWidthWc(c)+2))
		}
		last := row[len(row)-1]
		if left := room - ansi.StringWidthWc(line.String()); room > 0 && left >= 10 {
			last = ansi.TruncateWc(last, left, "…")
		}
		fmt.Fprintln(w, line.String()+last)
	}
	return w.Flush()
}

// WriteJSON writes a value as indented JSON, with the encoding of [progress.NewJSON].
func WriteJSON(w io.Writer, v any) error {
	enc := progress.NewJSON(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Report writes what a command reports to standard output: v as JSON, or what print writes for people.
func Report(e *Env, asJSON bool, v any, print func(io.Writer) error) error {
	var err error
	if asJSON {
		err = WriteJSON(e.Stdout, v)
	} else {
		err = print(e.Stdout)
	}
	if err != nil {
		return Failure(fmt.Errorf("write the result: %w", err))
	}
	return nil
}

// Cell returns a text for a table: without control characters, on one line, and at most most columns wide.
func Cell(s string, most int) string {
	return cmp.Or(strings.TrimSpace(ansi.TruncateWc(brief.Clean(s), most, "…")), "-")
}
