// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strconv"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// Within is the place in the file of the character at a line and column of a
// scalar's value. YAML folds lines, drops indentation and has escapes; what it
// never does is to reorder characters or to drop one that is not space. So the
// characters that are not space are counted in the value and found again in the
// file. Where that fails, it is the place of the scalar.
func (s *Source) Within(n *yaml.Node, line, column int) Span {
	start := s.Of(n)
	if n.Kind != yaml.ScalarNode {
		return start
	}
	before, at, ok := upTo(n.Value, line, column)
	if !ok {
		return start
	}
	// Of a line as long as the file, only the part is looked at where it can be: a
	// character takes at most ten in the file, and spaces that nobody writes.
	most := 10*len(before) + 10_000
	w := Walker{src: s, line: n.Line, Text: Runes(s.from(n.Line, n.Column), most), column: n.Column, most: most}
	if !w.open(n) {
		return start
	}
	for _, want := range before {
		if !w.find(want) {
			return start
		}
	}
	if at == 0 { // at the end, or at a space
		return Span{s, w.line, w.column, 1}
	}
	if w.skipSpace(); !w.peek(at) {
		return start
	}
	return Span{s, w.line, w.column, 1}
}

// upTo gives the characters of value before a line and column, spaces left out,
// and the one that is there; 0 for a space or the end.
func upTo(value string, line, column int) (before []rune, at rune, ok bool) {
	l, c := 1, 1
	for _, r := range value {
		if l == line && c == column {
			if unicode.IsSpace(r) {
				r = 0
			}
			return before, r, true
		}
		if l > line {
			return nil, 0, false
		}
		if !unicode.IsSpace(r) {
			before = append(before, r)
		}
		c++
		if r == '\n' {
			l, c = l+1, 1
		}
	}
	return before, 0, l == line && c <= column
}

// Walker reads a scalar as it stands in the file.
type Walker struct {
	src          *Source
	line, column int
	Text         []rune // the rest of the line
	most         int    // characters of a line
	Style        yaml.Style
}

// open goes past anchor, tag, quote, or the head of a block.
func (w *Walker) open(n *yaml.Node) bool {
	w.Style = n.Style
	for w.skipSpace(); len(w.Text) > 0 && (w.Text[0] == '&' || w.Text[0] == '!'); w.skipSpace() {
		for len(w.Text) > 0 && !unicode.IsSpace(w.Text[0]) {
			w.advance(1)
		}
	}
	first := rune(0)
	if len(w.Text) > 0 {
		first = w.Text[0]
	}
	switch {
	case w.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return (first == '|' || first == '>') && w.nextLine()
	case w.Style&yaml.DoubleQuotedStyle != 0:
		w.advance(1)
		return first == '"'
	case w.Style&yaml.SingleQuotedStyle != 0:
		w.advance(1)
		return first == '\''
	}
	return true
}

func (w *Walker) advance(n int) {
	w.Text, w.column = w.Text[n:], w.column+n
}

func (w *Walker) nextLine() bool {
	if w.line >= len(w.src.lines) {
		return false
	}
	w.line, w.column = w.line+1, 1
	w.Text = Runes(w.src.Line(w.line), w.most)
	return true
}

// Runes returns the first characters of a text, no more than most.
func Runes(text string, most int) []rune {
	for i := range text {
		if most--; most < 0 {
			return []rune(text[:i])
		}
	}
	return []rune(text)
}

// skipSpace goes on to the next character that is not space, also when it is
// written as an escape.
func (w *Walker) skipSpace() {
	for {
		if len(w.Text) == 0 {
			if !w.nextLine() {
				return
			}
			continue
		}
		r, n := w.Next()
		if !unicode.IsSpace(r) {
			return
		}
		w.advance(n)
	}
}

// find goes past the next character that is not space and reports whether it is
// the one.
func (w *Walker) find(want rune) bool {
	w.skipSpace()
	if len(w.Text) == 0 {
		return false
	}
	r, n := w.Next()
	w.advance(n)
	return r == want
}

func (w *Walker) peek(want rune) bool {
	if len(w.Text) == 0 {
		return false
	}
	r, _ := w.Next()
	return r == want
}

var escapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b,
	'N': 0x85, '_': 0xa0, 'L': 0x2028, 'P': 0x2029,
}

var hexDigits = map[rune]int{'x': 2, 'u': 4, 'U': 8}

// Next is the character here and how many it takes in the file.
func (w *Walker) Next() (r rune, n int) {
	r = w.Text[0]
	switch {
	case w.Style&yaml.SingleQuotedStyle != 0 && r == '\'' && len(w.Text) > 1 && w.Text[1] == '\'':
		return r, 2
	case w.Style&yaml.DoubleQuotedStyle == 0 || r != '\\':
		return r, 1
	case len(w.Text) == 1:
		return ' ', 1 // the line goes on
	}
	c := w.Text[1]
	if digits := hexDigits[c]; digits > 0 {
		if len(w.Text) < 2+digits {
			return r, 1
		}
		v, err := strconv.ParseUint(string(w.Text[2:2+digits]), 16, 32)
		if err != nil {
			return r, 1
		}
		return rune(v), 2 + digits
	}
	if e, ok := escapes[c]; ok {
		return e, 2
	}
	return c, 2
}
