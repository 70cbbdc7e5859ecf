// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strconv"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// within is the place in the file of the character at a line and column of a
// scalar's value. YAML folds lines, drops indentation and has escapes; what it
// never does is to reorder characters or to drop one that is not space. So the
// characters that are not space are counted in the value and found again in the
// file. Where that fails, it is the place of the scalar.
func (s *source) within(n *yaml.Node, line, column int) span {
	start := s.of(n)
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
	w := walker{src: s, line: n.Line, text: runes(s.from(n.Line, n.Column), most), column: n.Column, most: most}
	if !w.open(n) {
		return start
	}
	for _, want := range before {
		if !w.find(want) {
			return start
		}
	}
	if at == 0 { // at the end, or at a space
		return span{s, w.line, w.column, 1}
	}
	if w.skipSpace(); !w.peek(at) {
		return start
	}
	return span{s, w.line, w.column, 1}
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

// walker reads a scalar as it stands in the file.
type walker struct {
	src          *source
	line, column int
	text         []rune // the rest of the line
	most         int    // characters of a line
	style        yaml.Style
}

// open goes past anchor, tag, quote, or the head of a block.
func (w *walker) open(n *yaml.Node) bool {
	w.style = n.Style
	for w.skipSpace(); len(w.text) > 0 && (w.text[0] == '&' || w.text[0] == '!'); w.skipSpace() {
		for len(w.text) > 0 && !unicode.IsSpace(w.text[0]) {
			w.advance(1)
		}
	}
	first := rune(0)
	if len(w.text) > 0 {
		first = w.text[0]
	}
	switch {
	case w.style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return (first == '|' || first == '>') && w.nextLine()
	case w.style&yaml.DoubleQuotedStyle != 0:
		w.advance(1)
		return first == '"'
	case w.style&yaml.SingleQuotedStyle != 0:
		w.advance(1)
		return first == '\''
	}
	return true
}

func (w *walker) advance(n int) {
	w.text, w.column = w.text[n:], w.column+n
}

func (w *walker) nextLine() bool {
	if w.line >= len(w.src.lines) {
		return false
	}
	w.line, w.column = w.line+1, 1
	w.text = runes(w.src.line(w.line), w.most)
	return true
}

// runes are the first characters of a text, at most so many.
func runes(text string, most int) []rune {
	for i := range text {
		if most--; most < 0 {
			return []rune(text[:i])
		}
	}
	return []rune(text)
}

// skipSpace goes on to the next character that is not space, also when it is
// written as an escape.
func (w *walker) skipSpace() {
	for {
		if len(w.text) == 0 {
			if !w.nextLine() {
				return
			}
			continue
		}
		r, n := w.next()
		if !unicode.IsSpace(r) {
			return
		}
		w.advance(n)
	}
}

// find goes past the next character that is not space and reports whether it is
// the one.
func (w *walker) find(want rune) bool {
	w.skipSpace()
	if len(w.text) == 0 {
		return false
	}
	r, n := w.next()
	w.advance(n)
	return r == want
}

func (w *walker) peek(want rune) bool {
	if len(w.text) == 0 {
		return false
	}
	r, _ := w.next()
	return r == want
}

var escapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b,
	'N': 0x85, '_': 0xa0, 'L': 0x2028, 'P': 0x2029,
}

var hexDigits = map[rune]int{'x': 2, 'u': 4, 'U': 8}

// next is the character here and how many it takes in the file.
func (w *walker) next() (r rune, n int) {
	r = w.text[0]
	switch {
	case w.style&yaml.SingleQuotedStyle != 0 && r == '\'' && len(w.text) > 1 && w.text[1] == '\'':
		return r, 2
	case w.style&yaml.DoubleQuotedStyle == 0 || r != '\\':
		return r, 1
	case len(w.text) == 1:
		return ' ', 1 // the line goes on
	}
	c := w.text[1]
	if digits := hexDigits[c]; digits > 0 {
		if len(w.text) < 2+digits {
			return r, 1
		}
		v, err := strconv.ParseUint(string(w.text[2:2+digits]), 16, 32)
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
