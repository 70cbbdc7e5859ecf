// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// sheet is the text of a definition, with where its values begin and end in it. The
// parser says where they begin; where they end is worked out here.
type sheet struct {
	text   string // without a byte order mark
	starts []int  // of lines, in bytes, as YAML splits them
	root   *yaml.Node
	spans  map[*yaml.Node]extent
	blocks map[*yaml.Node]blockText
	pen    pen

	line, column, offset int // the place that was looked for last
	seen, behind         int // an offset, and how many characters of its line are before it
}

// extent is where a value stands, in bytes: from its anchor or tag on, and from
// behind them; to is where it ends. unclear says that this is not known.
type extent struct {
	from, body, to int
	unclear        bool
}

const byteOrderMark = "\ufeff"

// newSheet reads a text.
func newSheet(data []byte) (*sheet, error) {
	root, err := document(data)
	if err != nil {
		return nil, err
	}
	s := &sheet{text: strings.TrimPrefix(string(data), byteOrderMark), root: root, spans: make(map[*yaml.Node]extent),
		blocks: make(map[*yaml.Node]blockText), line: 1, column: 1}
	s.starts = []int{0}
	for i := 0; i < len(s.text); {
		n := breakAt(s.text[i:])
		if n == 0 {
			i++
			continue
		}
		i += n
		s.starts = append(s.starts, i)
	}
	s.measure(root, -1)
	s.pen = newPen(s)
	return s, nil
}

// breakAt is the length of the line break that a text begins with; 0 if there is
// none.
func breakAt(text string) int {
	switch {
	case text == "":
	case strings.HasPrefix(text, "\r\n"):
		return 2
	case text[0] == '\n' || text[0] == '\r':
		return 1
	case text[0] == 0xc2 && strings.HasPrefix(text, "\u0085"):
		return 2
	case text[0] == 0xe2 && (strings.HasPrefix(text, "\u2028") || strings.HasPrefix(text, "\u2029")):
		return 3
	}
	return 0
}

// at is the offset of a line and column. Asked for in the order of the text, it
// walks over the text once.
func (s *sheet) at(line, column int) int {
	if line > len(s.starts) {
		return len(s.text)
	}
	if line != s.line || column < s.column {
		s.line, s.column, s.offset = line, 1, s.starts[line-1]
	}
	for ; s.column < column && s.offset < len(s.text); s.column++ {
		_, n := utf8.DecodeRuneInString(s.text[s.offset:])
		s.offset += n
	}
	return s.offset
}

// lineOf is the number, from 0, of the line that an offset is in.
func (s *sheet) lineOf(offset int) int {
	return sort.Search(len(s.starts), func(i int) bool { return s.starts[i] > offset }) - 1
}

// lineEnd is where a line ends, before its break.
func (s *sheet) lineEnd(line int) int {
	if line+1 >= len(s.starts) {
		return len(s.text)
	}
	end := s.starts[line+1]
	for _, brk := range []string{"\r\n", "\n", "\r", "\u0085", "\u2028", "\u2029"} {
		if strings.HasSuffix(s.text[s.starts[line]:end], brk) {
			return end - len(brk)
		}
	}
	return end
}

// row is the text of a line, without its break.
func (s *sheet) row(line int) string { return s.text[s.starts[line]:s.lineEnd(line)] }

// columnOf is how many characters of its line are before an offset.
func (s *sheet) columnOf(offset int) int {
	return utf8.RuneCountInString(s.text[s.starts[s.lineOf(offset)]:offset])
}

// placeOf is the line and the column of an offset, from 1. Asked for in the order of the
// text, it walks over the text once.
func (s *sheet) placeOf(offset int) (line, column int) {
	line = s.lineOf(offset)
	if start := s.starts[line]; offset < s.seen || s.seen < start {
		s.seen, s.behind = start, 0
	}
	s.behind += utf8.RuneCountInString(s.text[s.seen:offset])
	s.seen = offset
	return line + 1, s.behind + 1
}

// skip goes on from an offset to what is no space, no break and no comment.
func (s *sheet) skip(offset int) int {
	for i := offset; i < len(s.text); {
		switch c := s.text[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == '#' && (i == offset || i == 0 || strings.IndexByte(" \t\n\r", s.text[i-1]) >= 0 ||
			breakBefore(s.text[:i])):
			i = s.lineEnd(s.lineOf(i))
		default:
			n := breakAt(s.text[i:])
			if n == 0 {
				return i
			}
			i += n
		}
	}
	return len(s.text)
}

func breakBefore(text string) bool {
	return strings.HasSuffix(text, "\u0085") || strings.HasSuffix(text, "\u2028") || strings.HasSuffix(text, "\u2029")
}

// blanks goes on over spaces and tabs.
func (s *sheet) blanks(offset int) int {
	return offset + len(s.text[offset:]) - len(strings.TrimLeft(s.text[offset:], " \t"))
}

// measure finds out where a value and those in it stand. Around is the column of the
// block collection that it is in, from 0; -1 if there is none.
func (s *sheet) measure(n *yaml.Node, around int) extent {
	e := extent{from: s.at(n.Line, n.Column)}
	props := s.props(n, e.from)
	e.body, e.to = props, props
	if props > e.from {
		e.body = s.skip(props)
	}
	switch {
	case n.Kind == yaml.AliasNode:
		e.to = e.body + 1 + len(n.Value)
	case n.Kind == yaml.ScalarNode:
		e.to, e.unclear = s.scalarEnd(n, e, around)
	case n.Style&yaml.FlowStyle != 0:
		e.to, e.unclear = s.flowEnd(n, e, around)
	default:
		column := n.Column - 1
		if props > e.from {
			column = s.columnOf(e.body)
		}
		for _, c := range n.Content {
			inner := s.measure(c, column)
			e.to, e.unclear = max(e.to, inner.to), e.unclear || inner.unclear
		}
	}
	if e.to > len(s.text) || e.to < e.from {
		e.to, e.unclear = len(s.text), true
	}
	s.spans[n] = e
	return e
}

// props goes past an anchor and a tag.
func (s *sheet) props(n *yaml.Node, from int) int {
	end := from
	if n.Kind == yaml.AliasNode || n.Anchor == "" && n.Style&yaml.TaggedStyle == 0 {
		return end
	}
	for at := from; at < len(s.text) && (s.text[at] == '&' || s.text[at] == '!'); at = s.skip(end) {
		end = at
		for end < len(s.text) && strings.IndexByte(" \t,[]{}", s.text[end]) < 0 && breakAt(s.text[end:]) == 0 {
			end++
		}
		if end == at {
			break
		}
	}
	return end
}

// flowEnd is where a collection in brackets ends; one of a single pair, in a list,
// has none.
func (s *sheet) flowEnd(n *yaml.Node, e extent, around int) (to int, unclear bool) {
	to = e.body
	open := byte('[')
	if n.Kind == yaml.MappingNode {
		open = '{'
	}
	bare := e.body >= len(s.text) || s.text[e.body] != open
	if !bare {
		to++
	}
	for _, c := range n.Content {
		inner := s.measure(c, around)
		to, unclear = max(to, inner.to), unclear || inner.unclear
	}
	if bare {
		return to, unclear || n.Kind != yaml.MappingNode
	}
	if to = s.skip(to); strings.HasPrefix(s.text[to:], ",") {
		to = s.skip(to + 1)
	}
	if to >= len(s.text) || s.text[to] != open+2 { // the brackets are two apart
		return to, true
	}
	return to + 1, unclear
}

// fail is an error at the place of a value.
func (s *sheet) fail(n *yaml.Node, format string, args ...any) error {
	return &Error{Line: n.Line, Column: n.Column, Err: fmt.Errorf(format, args...)}
}
