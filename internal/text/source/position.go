// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Within returns the place in the file of the character at a line and column of a scalar's value. If the value ends
// in that line before the column, Within returns the place of its end. If the place is unknown, Within returns the
// place of the scalar.
func (s *Source) Within(n *yaml.Node, line, column int) Span {
	at, pieces := byteAt(n.Value, line, column), s.Inside(n)
	if at < 0 || pieces == nil {
		return s.Of(n)
	}
	offset := s.first(n)
	if at < len(pieces) && pieces[at].To > 0 {
		offset = pieces[at].From
	} else { // the place of a space, or of the end, follows the characters before it
		for _, p := range pieces[:at] {
			offset = max(offset, p.To)
		}
	}
	sp := Span{Src: s, Length: 1}
	sp.Line, sp.Column = s.Place(offset)
	return sp
}

// byteAt returns the offset of a line and a column in a value, or -1 if the value has no such place.
func byteAt(text string, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		n := strings.IndexByte(text[at:], '\n')
		if n < 0 {
			return -1
		}
		at += n + 1
	}
	for ; column > 1 && at < len(text); column-- {
		r, n := utf8.DecodeRuneInString(text[at:])
		if r == '\n' {
			return -1
		}
		at += n
	}
	return at
}

// Piece is the range in bytes of a character of a value in the text of the file. A space has no range, because YAML
// folds lines, drops indentation and adds line breaks.
type Piece struct{ From, To int }

// Inside returns the place in the text of each byte of a scalar's value, or nil if the places are unknown. Inside
// finds the characters one after another in the text, because YAML neither reorders characters nor drops any except
// space. It keeps the pieces of the last scalar, because a text may have thousands of placeholders.
func (s *Source) Inside(n *yaml.Node) []Piece {
	if s.inside != n {
		s.inside, s.pieces = n, s.findPieces(n)
	}
	return s.pieces
}

func (s *Source) findPieces(n *yaml.Node) []Piece {
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	at := s.first(n)
	out := make([]Piece, 0, len(n.Value))
	for _, want := range n.Value {
		var here Piece
		for !IsSpace(want) && here.To == 0 {
			if at >= len(s.Text) {
				return nil
			}
			r, width := next(s.Text[at:], n.Style)
			switch {
			case r == want:
				here = Piece{at, at + width}
			case !IsSpace(r):
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

// first returns the offset of the first character of a scalar, behind its quote or the line with | or >.
func (s *Source) first(n *yaml.Node) int {
	_, _, at := s.Body(n)
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return s.LineEnd(s.LineOf(at))
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return min(at+1, len(s.Text))
	}
	return at
}

// Body returns the offsets in bytes at which a value begins: from with its anchor or tag, named at the end of these,
// and body behind them.
func (s *Source) Body(n *yaml.Node) (from, named, body int) {
	from = s.Offset(n.Line, n.Column)
	named, body = from, from
	if n.Kind == yaml.AliasNode || n.Anchor == "" && n.Style&yaml.TaggedStyle == 0 {
		return from, named, body
	}
	for body < len(s.Text) && (s.Text[body] == '&' || s.Text[body] == '!') {
		rest := s.Text[body:]
		end := strings.IndexFunc(rest, func(r rune) bool { return IsSpace(r) || strings.ContainsRune(",[]{}", r) })
		if end < 0 {
			end = len(rest)
		}
		named = body + end
		body = s.Skip(named)
	}
	return from, named, body
}

// Skip returns the first offset from the given one on that is not in a space, a line break or a comment.
func (s *Source) Skip(offset int) int {
	for i := offset; i < len(s.Text); {
		r, n := utf8.DecodeRuneInString(s.Text[i:])
		before, _ := utf8.DecodeLastRuneInString(s.Text[:i])
		switch {
		case IsSpace(r):
			i += n
		case r == '#' && (i == offset || i == 0 || IsSpace(before)):
			i = s.LineEnd(s.LineOf(i))
		default:
			return i
		}
	}
	return len(s.Text)
}

var escapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b,
	'N': 0x85, '_': 0xa0, 'L': 0x2028, 'P': 0x2029,
}

var hexDigits = map[rune]int{'x': 2, 'u': 4, 'U': 8}

// next returns the first character of a text in a style, and how many bytes it takes.
func next(text string, style yaml.Style) (r rune, n int) {
	r, n = utf8.DecodeRuneInString(text)
	switch {
	case style&yaml.SingleQuotedStyle != 0 && strings.HasPrefix(text, "''"):
		return r, 2
	case style&yaml.DoubleQuotedStyle == 0 || r != '\\' || len(text) == 1:
		return r, n
	case Surrogate(text) > 0:
		return Surrogate(text), 12
	}
	c, n := utf8.DecodeRuneInString(text[1:])
	if digits := hexDigits[c]; digits > 0 {
		if len(text) < 2+digits {
			return r, 1
		}
		v, err := strconv.ParseUint(text[2:2+digits], 16, 32)
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
