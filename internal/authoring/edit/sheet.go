// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/text/source"
)

// sheet is the text of a definition, with where its values begin and end in it. The
// parser says where they begin; where they end is worked out here.
type sheet struct {
	*source.Source
	root   *yaml.Node
	spans  map[*yaml.Node]extent
	blocks map[*yaml.Node]blockText
	pen    pen
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
	src, root, err := document(data)
	if err != nil {
		return nil, err
	}
	s := &sheet{Source: src, root: root, spans: make(map[*yaml.Node]extent), blocks: make(map[*yaml.Node]blockText)}
	s.measure(root, -1)
	s.pen = newPen(s)
	return s, nil
}

// columnOf is how many characters of its line are before an offset.
func (s *sheet) columnOf(offset int) int {
	_, column := s.Place(offset)
	return column - 1
}

// blanks goes on over spaces and tabs.
func (s *sheet) blanks(offset int) int {
	return offset + len(s.Text[offset:]) - len(strings.TrimLeft(s.Text[offset:], " \t"))
}

// measure finds out where a value and those in it stand. Around is the column of the
// block collection that it is in, from 0; -1 if there is none.
func (s *sheet) measure(n *yaml.Node, around int) extent {
	from, named, body := s.Body(n)
	e := extent{from: from, body: body, to: named}
	switch {
	case n.Kind == yaml.AliasNode:
		e.to = e.body + 1 + len(n.Value)
	case n.Kind == yaml.ScalarNode:
		e.to, e.unclear = s.scalarEnd(n, e, around)
	case n.Style&yaml.FlowStyle != 0:
		e.to, e.unclear = s.flowEnd(n, e, around)
	default:
		column := n.Column - 1
		if e.body > e.from {
			column = s.columnOf(e.body)
		}
		for _, c := range n.Content {
			inner := s.measure(c, column)
			e.to, e.unclear = max(e.to, inner.to), e.unclear || inner.unclear
		}
	}
	if e.to > len(s.Text) || e.to < e.from {
		e.to, e.unclear = len(s.Text), true
	}
	s.spans[n] = e
	return e
}

// flowEnd is where a collection in brackets ends; one of a single pair, in a list,
// has none.
func (s *sheet) flowEnd(n *yaml.Node, e extent, around int) (to int, unclear bool) {
	to = e.body
	open := opening(n)
	bare := e.body >= len(s.Text) || s.Text[e.body] != open
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
	if to = s.Skip(to); strings.HasPrefix(s.Text[to:], ",") {
		to = s.Skip(to + 1)
	}
	if to >= len(s.Text) || s.Text[to] != open+2 { // the brackets are two apart
		return to, true
	}
	return to + 1, unclear
}

// fail is an error at the place of a value.
func (s *sheet) fail(n *yaml.Node, format string, args ...any) error {
	return &Error{Line: n.Line, Column: n.Column, Err: fmt.Errorf(format, args...)}
}
