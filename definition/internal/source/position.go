// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Within is the place in the file of the character at a line and column of a
// scalar's value. YAML folds lines, drops indentation and has escapes; what it
// never does is to reorder characters or to drop one that is not space. So each
// character of the value that is not space is found again in the file. Where that
// fails, it is the place of the scalar.
//
// Within goes on where the last call stopped if that was in the same scalar and not
// further on: a text with thousands of placeholders is walked once.
func (s *Source) Within(n *yaml.Node, line, column int) Span {
	if n.Kind != yaml.ScalarNode {
		return s.Of(n)
	}
	c := s.last
	if c == nil || c.node != n || c.line > line || c.line == line && c.column > column {
		c = s.newCursor(n)
		s.last = c
	}
	if !c.goTo(line, column) {
		return c.start
	}
	w := &c.file
	if at, _ := utf8.DecodeRuneInString(c.rest); c.rest != "" && !unicode.IsSpace(at) {
		if w.skipSpace(); !w.peek(at) {
			return c.start
		}
	}
	return Span{s, w.line, w.column, 1}
}

// cursor is a place in the value of a scalar, and the same place in the file.
type cursor struct {
	node  *yaml.Node
	start Span // of the scalar

	rest         string // of the value
	line, column int    // of rest, in the value
	file         Walker
	lost         bool // the next character of rest is not in the file
}

func (s *Source) newCursor(n *yaml.Node) *cursor {
	c := &cursor{node: n, start: s.Of(n), rest: n.Value, line: 1, column: 1}
	c.file = Walker{src: s, line: n.Line, column: n.Column, Text: s.from(n.Line, n.Column)}
	c.lost = !c.file.open(n)
	return c
}

// goTo moves on to a line and column of the value, or to its end if it ends in that
// line. It reports whether there is such a place and the file has all that is before.
func (c *cursor) goTo(line, column int) bool {
	for !c.lost && c.rest != "" && (c.line < line || c.line == line && c.column < column) {
		r, n := utf8.DecodeRuneInString(c.rest)
		if !unicode.IsSpace(r) && !c.file.find(r) {
			c.lost = true
			break
		}
		c.rest, c.column = c.rest[n:], c.column+1
		if r == '\n' {
			c.line, c.column = c.line+1, 1
		}
	}
	return !c.lost && c.line == line
}

// Walker reads a scalar as it stands in the file.
type Walker struct {
	src          *Source
	line, column int
	Text         string // the rest of the line
	Style        yaml.Style
}

// open goes past anchor, tag, quote, or the head of a block.
func (w *Walker) open(n *yaml.Node) bool {
	w.Style = n.Style
	for w.skipSpace(); len(w.Text) > 0 && (w.Text[0] == '&' || w.Text[0] == '!'); w.skipSpace() {
		name := strings.IndexFunc(w.Text, unicode.IsSpace)
		if name < 0 {
			name = len(w.Text)
		}
		w.advance(name)
	}
	first := byte(0)
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

// advance goes past n bytes.
func (w *Walker) advance(n int) {
	w.column += utf8.RuneCountInString(w.Text[:n])
	w.Text = w.Text[n:]
}

func (w *Walker) nextLine() bool {
	if w.line >= len(w.src.lines) {
		return false
	}
	w.line, w.column = w.line+1, 1
	w.Text = w.src.Line(w.line)
	return true
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

// Next is the character here and how many bytes it takes in the file.
func (w *Walker) Next() (r rune, n int) {
	r, n = utf8.DecodeRuneInString(w.Text)
	switch {
	case w.Style&yaml.SingleQuotedStyle != 0 && strings.HasPrefix(w.Text, "''"):
		return r, 2
	case w.Style&yaml.DoubleQuotedStyle == 0 || r != '\\':
		return r, n
	case len(w.Text) == 1:
		return ' ', 1 // the line goes on
	}
	c, n := utf8.DecodeRuneInString(w.Text[1:])
	if digits := hexDigits[c]; digits > 0 {
		if len(w.Text) < 2+digits {
			return r, 1
		}
		v, err := strconv.ParseUint(w.Text[2:2+digits], 16, 32)
		if err != nil {
			return r, 1
		}
		return rune(v), 2 + digits
	}
	if e, ok := escapes[c]; ok {
		return e, 2
	}
	return c, 1 + n
}
