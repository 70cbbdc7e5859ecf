// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/text/source"
)

const blockStyle = yaml.LiteralStyle | yaml.FoldedStyle

// scalarEnd is where a text, a number or the like ends.
func (s *sheet) scalarEnd(n *yaml.Node, e extent, around int) (to int, unclear bool) {
	rest := s.Text[e.body:]
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
		if source.IsSpace(want) {
			continue
		}
		for at < len(s.Text) {
			r, size := utf8.DecodeRuneInString(s.Text[at:])
			if !source.IsSpace(r) {
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
	for b.head < len(s.Text) && strings.IndexByte("+-123456789", s.Text[b.head]) >= 0 {
		switch c := s.Text[b.head]; c {
		case '+':
			b.keep = true
		case '-':
		default:
			b.indent = max(around, 0) + int(c-'0')
		}
		b.head++
	}
	b.to = b.head
	line := s.LineOf(at)
	b.first = line + 1
	for i := b.first; i < len(s.Starts); i++ {
		row := s.Row(i)
		indent := len(row) - len(strings.TrimLeft(row, " "))
		if indent == len(row) {
			if b.keep && i+1 < len(s.Starts) {
				b.to = s.LineEnd(i)
			}
			continue
		}
		if b.indent < 0 && indent > around {
			b.indent = indent
		}
		if b.indent < 0 || indent < b.indent {
			break
		}
		b.to = s.LineEnd(i)
	}
	return b, at < len(s.Text) && (s.Text[at] == '|' || s.Text[at] == '>')
}
