// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/definition/internal/source"
)

// Severity says how bad a problem is.
type Severity string

// The severities. A definition with errors cannot be run.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNote    Severity = "note" // worth knowing before a run; see [Definition.Notes]
)

// Problem is something wrong with a definition, and where.
type Problem struct {
	// File is the name under which the file was loaded.
	File string `json:"file,omitzero"`
	// Line and Column count from 1, Column in characters; 0 if the problem is
	// the whole file's. Length is how many characters of the line are meant.
	Line     int      `json:"line,omitzero"`
	Column   int      `json:"column,omitzero"`
	Length   int      `json:"length,omitzero"`
	Severity Severity `json:"severity"`
	// Code is one of [Codes].
	Code    string `json:"code"`
	Message string `json:"message"`
	// Hint is what may help; empty if nothing comes to mind.
	Hint string `json:"hint,omitzero"`
	// Excerpt is the line of the file.
	Excerpt string `json:"excerpt,omitzero"`

	err  error
	file int              // which file, in the order of loading
	left map[Severity]int // of the first problem: how many there are besides all that are shown
}

// Error is file:line:column: severity: message [code], on one line and without
// what a terminal would obey.
func (p *Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	fmt.Fprintf(&b, "%s: %s [%s]", p.Severity, p.Message, p.Code)
	return source.Printable(b.String())
}

// Unwrap returns the cause, such as fs.ErrNotExist or an expression's error; nil
// if there is none.
func (p *Problem) Unwrap() error { return p.err }

// Format writes the problem for people: the line of Error, and below it the
// excerpt with a caret, and the hint.
func (p *Problem) Format() string {
	var b strings.Builder
	b.WriteString(p.Error())
	b.WriteByte('\n')
	hint := source.Printable(p.Hint)
	switch {
	case p.Line > 0 && p.Excerpt != "":
		text, column, length := p.window()
		fmt.Fprintf(&b, "%5d | %s\n", p.Line, text)
		line := strings.Repeat(" ", column-1) + strings.Repeat("^", length) + " " + hint
		fmt.Fprintf(&b, "      | %s\n", strings.TrimRight(line, " "))
	case hint != "":
		fmt.Fprintf(&b, "      | %s\n", hint)
	}
	return b.String()
}

// window is the part of the excerpt around the problem that fits on a line, and
// where in it the problem is.
func (p *Problem) window() (text string, column, length int) {
	const width, before = 100, 40
	all, rest := utf8.RuneCountInString(p.Excerpt), p.Excerpt
	column = min(max(p.Column, 1), all+1)
	if all > width && column > before {
		from := min(column-before, all-width/2)
		column -= from
		for range from {
			_, n := utf8.DecodeRuneInString(rest)
			rest = rest[n:]
		}
	}
	line := []rune(source.Printable(string(source.Runes(rest, width+1)))) // the line may be as long as the file
	if len(line) > width {
		line = append(slices.Clone(line[:width-1]), '…')
	}
	length = max(1, min(p.Length, len(line)-column+1))
	return strings.TrimRight(string(line), " "), column, length
}

// Position is a place in a file. Line and Column count from 1, Column in
// characters.
type Position struct {
	File         string
	Line, Column int
}

// String is file:line:column.
func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// positionOf is where a span begins.
func positionOf(s source.Span) Position { return Position{s.Src.Name, s.Line, s.Column} }

// Problems are what was found, in the order of the files and of their text, never
// none: the first 200, and errors rather than anything else. It is the error of [Load]
// and [Parse].
type Problems []*Problem

// Error gives one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.Is and errors.As look at each.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// Format writes each problem for people, and then how many there are; nothing if
// there are none. Its error is that of w.
func (ps Problems) Format(w io.Writer) error {
	if len(ps) == 0 {
		return nil
	}
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.Format())
	}
	b.WriteString(ps.Summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Summary counts: "3 errors, 1 warning", or "200 of 3000 errors".
func (ps Problems) Summary() string {
	var parts []string
	for _, s := range []Severity{SeverityError, SeverityWarning, SeverityNote} {
		n := ps.count(s)
		all := n
		if len(ps) > 0 {
			all += ps[0].left[s]
		}
		switch {
		case all == 1 && n == 1:
			parts = append(parts, "1 "+string(s))
		case all > n:
			parts = append(parts, fmt.Sprintf("%d of %d %ss", n, all, s))
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// first is the problems without those beyond a number: errors stay.
func (ps Problems) first(most int) Problems {
	if len(ps) <= most {
		return ps
	}
	errors := min(most, ps.count(SeverityError))
	others := most - errors
	kept, left := make(Problems, 0, most), make(map[Severity]int)
	for _, p := range ps {
		room := &others
		if p.Severity == SeverityError {
			room = &errors
		}
		if *room == 0 {
			left[p.Severity]++
			continue
		}
		*room--
		kept = append(kept, p)
	}
	kept[0].left = left
	return kept
}

func (ps Problems) count(s Severity) int {
	n := 0
	for _, p := range ps {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// sort puts the problems in order and leaves out what was found twice.
func (ps Problems) sort() Problems {
	slices.SortStableFunc(ps, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(ps, func(a, b *Problem) bool {
		return a.File == b.File && a.Line == b.Line && a.Column == b.Column && a.Code == b.Code && a.Message == b.Message
	})
}
