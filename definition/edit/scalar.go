// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
)

// isSpace reports what YAML folds, drops and adds when it reads a text: the rest
// stands in the file as in the value, in the same order.
func isSpace(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '\r', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

const blockStyle = yaml.LiteralStyle | yaml.FoldedStyle

// scalarEnd is where a text, a number or the like ends.
func (s *sheet) scalarEnd(n *yaml.Node, e extent, around int) (to int, unclear bool) {
	rest := s.text[e.body:]
	switch {
	case n.Style&blockStyle != 0:
		b, ok := s.block(e.body, around)
		s.blocks[n] = b
		return b.to, !ok
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return quotedEnd(rest, '"', '\\', e.body)
	case n.Style&yaml.SingleQuotedStyle != 0:
		return quotedEnd(rest, '\'', '\'', e.body)
	case n.Value == "":
		return e.to, false
	}
	at := e.body
	for _, want := range n.Value {
		if isSpace(want) {
			continue
		}
		for at < len(s.text) {
			r, size := utf8.DecodeRuneInString(s.text[at:])
			if !isSpace(r) {
				if r != want {
					return at, true
				}
				at += size
				break
			}
			at += size
		}
	}
	return at, false
}

// quotedEnd is where a text in quotes ends, that begins at an offset. What comes
// behind an escape does not end it.
func quotedEnd(text string, quote, escape byte, offset int) (to int, unclear bool) {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == escape && i+1 < len(text) && (escape != quote || text[i+1] == quote):
			i++
		case text[i] == quote:
			return offset + i + 1, text[0] != quote
		}
	}
	return offset, true
}

// blockText is a text behind | or >.
type blockText struct {
	head   int  // where its | or > with what says how to read it ends
	first  int  // its first line, from 0
	to     int  // where it ends, before the last break
	indent int  // of its lines; -1 if there are none
	keep   bool // the empty lines behind belong to it
}

// block finds the lines of a text that begins with | or > at an offset.
func (s *sheet) block(at, around int) (b blockText, ok bool) {
	b.head, b.indent = at+1, -1
	for b.head < len(s.text) && strings.IndexByte("+-123456789", s.text[b.head]) >= 0 {
		switch c := s.text[b.head]; c {
		case '+':
			b.keep = true
		case '-':
		default:
			b.indent = max(around, 0) + int(c-'0')
		}
		b.head++
	}
	b.to = b.head
	line := s.lineOf(at)
	b.first = line + 1
	for i := b.first; i < len(s.starts); i++ {
		row := s.row(i)
		indent := len(row) - len(strings.TrimLeft(row, " "))
		if indent == len(row) {
			if b.keep && i+1 < len(s.starts) {
				b.to = s.lineEnd(i)
			}
			continue
		}
		if b.indent < 0 && indent > around {
			b.indent = indent
		}
		if b.indent < 0 || indent < b.indent {
			break
		}
		b.to = s.lineEnd(i)
	}
	return b, at < len(s.text) && (s.text[at] == '|' || s.text[at] == '>')
}

// inside is where each byte of a text stands in the file; nil if that is not clear.
// Spaces have no place.
func (s *sheet) inside(n *yaml.Node) []splice {
	e := s.spans[n]
	if e.unclear || n.Kind != yaml.ScalarNode {
		return nil
	}
	w, at := &source.Walker{Style: n.Style}, e.body
	switch {
	case n.Style&blockStyle != 0:
		at = s.lineEnd(s.lineOf(e.body))
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		at++
	}
	out := make([]splice, 0, len(n.Value))
	for _, want := range n.Value {
		here := splice{from: -1, to: -1}
		for !isSpace(want) && here.to < 0 {
			if at >= e.to {
				return nil
			}
			r, width := utf8.DecodeRuneInString(s.text[at:e.to])
			if r == '\\' || r == '\'' { // it may begin an escape
				w.Text = s.text[at:e.to]
				r, width = w.Next()
			}
			switch {
			case r == want:
				here = splice{from: at, to: at + width}
			case !isSpace(r):
				return nil
			}
			at += width
		}
		for range utf8.RuneLen(want) {
			out = append(out, here)
		}
	}
	return out
}
