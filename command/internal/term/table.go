// SPDX-License-Identifier: Apache-2.0

package term

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/progress"
)

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
