// SPDX-License-Identifier: Apache-2.0

package term

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/suggest"
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
	if near := suggest.Nearest(word, names); near != "" {
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

// Cost returns an amount of money as [brief.Money] does; unknown for nil.
func Cost(f *float64) string {
	if f == nil {
		return "unknown"
	}
	return brief.Money(*f)
}

// Layout says how a table becomes as narrow as the terminal.
type Layout struct {
	// Drop lists the columns that are left out, in this order, until the others fit.
	Drop []int
	// Cut lists the columns whose texts are cut, apart from the last one.
	Cut []int
}

// leastCut is the least width of a column whose texts are cut.
const leastCut = 12

// PrintTable writes a table with aligned columns, even if it contains wide characters. On a terminal its lines are as long as those
// of the terminal.
func PrintTable(out io.Writer, table [][]string, l Layout) error {
	w := bufio.NewWriter(out)
	for _, row := range l.fitted(table, ColumnsOf(out)) {
		fmt.Fprintln(w, row)
	}
	return w.Flush()
}

// fitted returns the lines of a table in a number of columns; 0 means that lines can be long.
func (l Layout) fitted(table [][]string, room int) (lines []string) {
	widths := make([]int, len(table[0]))
	for _, row := range table {
		for i, c := range row {
			widths[i] = max(widths[i], ansi.StringWidthWc(c))
		}
	}
	shown := make([]int, len(widths))
	for i := range shown {
		shown[i] = i
	}
	cut := append(slices.Clone(l.Cut), len(widths)-1)
	over := func() int { // how much the lines are too long if every text that may be cut is cut
		sum := -2
		for _, i := range shown {
			if sum += 2 + widths[i]; slices.Contains(cut, i) {
				sum -= max(0, widths[i]-leastCut)
			}
		}
		return sum - room
	}
	for _, i := range l.Drop {
		if room > 0 && over() > 0 {
			shown = slices.DeleteFunc(shown, func(j int) bool { return i == j })
		}
	}
	if cut = slices.DeleteFunc(cut, func(i int) bool { return !slices.Contains(shown, i) }); room > 0 {
		left := -over()
		for n, i := range cut { // each gets its part of what is left
			more := max(0, widths[i]-leastCut)
			part := min(more, max(0, left)/(len(cut)-n))
			widths[i], left = widths[i]-more+part, left-part
		}
	}
	for _, row := range table {
		var line strings.Builder
		for _, i := range shown {
			c := ""
			if i < len(row) {
				c = ansi.TruncateWc(row[i], widths[i], "…")
			}
			line.WriteString(c + strings.Repeat(" ", widths[i]-ansi.StringWidthWc(c)+2))
		}
		text := strings.TrimRight(line.String(), " ")
		if room > 0 {
			text = ansi.TruncateWc(text, room, "…")
		}
		lines = append(lines, text)
	}
	return lines
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
