// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Set sets a field, or a value of a list. It adds a missing field to its map, where people write it; the map itself
// must exist.
//
// Set keeps the notation of existing values. Of a map it writes only the fields whose values differ; in a list it
// inserts new values, removes missing ones, and moves others. It recognizes values by their names. The path "" sets
// the whole definition: the value may come from a form, and in the text {} it may be a definition made in Go. [YAML]
// is written unchanged.
func (e *Editor) Set(path string, value any) error {
	v, err := give(value)
	if err != nil {
		return &Error{Op: "set", Path: path, Err: err}
	}
	if !v.asIs && v.node.Kind != yaml.ScalarNode && utf8.ValidString(path) && e.merge(path, v.node) {
		return nil
	}
	return e.put(path, v)
}

func (e *Editor) put(path string, v newValue) error {
	return e.do("set", path, func(quotes bool) (attempt, error) { return e.sheet.set(path, v, quotes) })
}

func (s *sheet) set(path string, g newValue, quotes bool) (attempt, error) {
	p, err := s.find(path)
	if err != nil {
		return attempt{}, err
	}
	if !g.asIs {
		orderNode(g.node, p.hops)
	}
	if len(p.hops) == 0 {
		return s.begin(g)
	}
	if p.node == nil {
		return s.addField(p, g, quotes)
	}
	if !g.asIs && equal(g.node, p.node) {
		return attempt{want: s.root}, nil
	}
	if err := s.alone(p.node); err != nil {
		return attempt{}, err
	}
	c := p.in()
	slots, err := s.slots(c)
	if err != nil {
		return attempt{}, err
	}
	pieces, err := s.replace(c, slots, p.at(), g, quotes)
	return attempt{pieces, s.with(p, g.node)}, err
}

// begin writes a whole definition where there is none yet, but {}.
func (s *sheet) begin(g newValue) (attempt, error) {
	e := s.spans[s.root]
	if s.root.Kind != yaml.MappingNode || len(s.root.Content) > 0 || len(g.node.Content) == 0 ||
		g.node.Kind != yaml.MappingNode {
		return attempt{}, errors.New("it needs a path to a field, such as max_iterations")
	}
	text := strings.TrimPrefix(s.pen.entries(g.node, 0), "\n")
	if g.sheet != nil {
		text = strings.Join(g.sheet.shifted(0), "\n")
	}
	return attempt{[]splice{{e.body, e.to, s.pen.ended(text)}}, g.node}, s.shared(s.root)
}

// manner is how a value should be written in place of another one.
func (s *sheet) manner(c, old *yaml.Node, g newValue, quotes bool) manner {
	m := manner{style: old.Style, quotes: quotes, flow: c.Style&yaml.FlowStyle != 0}
	switch {
	case old.Kind == yaml.ScalarNode && old.Style&blockStyle != 0:
		b := s.blocks[old]
		if b.indent < 0 {
			break
		}
		m.indent = b.indent
		for line := b.first; line <= s.LineOf(b.to); line++ {
			row := s.Row(line)
			m.lines = append(m.lines, row[min(b.indent, len(row)):])
		}
	case old.Kind == yaml.ScalarNode:
	case old.Style&yaml.FlowStyle != 0 && len(old.Content) > 0:
		m.flow = m.flow || !g.asIs && s.pen.short(g.node)
	case len(old.Content) > 0:
		m.block = true
	}
	if g.node.Kind != yaml.ScalarNode {
		m.style = 0
	}
	return m
}

// bracketWidth is how long a line in brackets may get.
const bracketWidth = 100

// short reports whether a collection can stand in brackets, as the one before.
func (p pen) short(n *yaml.Node) bool {
	var multi func(n *yaml.Node) bool
	multi = func(n *yaml.Node) bool {
		return strings.Contains(n.Value, "\n") || slices.ContainsFunc(n.Content, multi)
	}
	return !multi(n) && len(p.flow(n)) <= bracketWidth
}

// replace writes another value into an entry.
func (s *sheet) replace(c *yaml.Node, slots []slot, at int, g newValue, quotes bool) ([]splice, error) {
	sl := slots[at]
	old, e := sl.value, s.spans[sl.value]
	flow := c.Style&yaml.FlowStyle != 0
	column := 0
	if !flow {
		column = s.columnOf(sl.from)
	}
	head, text, err := g.text(s.pen, column, c.Kind == yaml.SequenceNode, s.manner(c, old, g, quotes))
	if err != nil {
		return nil, s.fail(old, "%w", err)
	}
	text = s.pen.ended(text)
	first, rest := text, ""
	if i := strings.Index(text, s.pen.brk); i >= 0 {
		first, rest = text[:i], text[i:]
	}
	end := s.LineEnd(s.LineOf(sl.to))
	var pieces []splice
	if head != "" {
		start := s.strips(c, slots)[at].from
		pieces = append(pieces, splice{start, start, s.pen.ended(head)})
	}
	switch {
	case flow && (old.Kind != yaml.ScalarNode || sl.to > sl.mark || c.Kind == yaml.SequenceNode):
		return []splice{{e.from, sl.to, first}}, nil
	case flow && sl.colon:
		to := s.blanks(sl.mark)
		if to < len(s.Text) && strings.IndexByte(",}", s.Text[to]) < 0 {
			to = sl.mark
		}
		return []splice{{sl.mark, to, " " + first}}, nil
	case flow:
		return []splice{{sl.mark, sl.mark, ": " + first}}, nil
	case old.Kind == yaml.ScalarNode && old.Style&blockStyle != 0:
		b := s.blocks[old]
		from := e.from
		if first == "" {
			from = sl.mark
		}
		return append(pieces, splice{from, b.head, first}, splice{s.LineEnd(b.first - 1), sl.to, rest}), nil
	case sl.to == sl.mark:
		return append(pieces, splice{sl.mark, sl.mark, apart(first)}, splice{end, end, rest}), nil
	case old.Kind == yaml.ScalarNode || old.Style&yaml.FlowStyle != 0:
		from := e.from
		if first == "" {
			from = sl.mark
		}
		return append(pieces, splice{from, sl.to, first}, splice{end, end, rest}), nil
	}
	// A collection with lines of its own.
	last := s.strips(c, slots)[at].to
	if s.LineOf(e.from) == s.LineOf(sl.mark) {
		return append(pieces, splice{sl.mark, last, apart(first) + rest}), nil
	}
	end = s.LineEnd(s.LineOf(sl.mark))
	return append(pieces, splice{sl.mark, sl.mark, apart(first)}, splice{end, last, rest}), nil
}

// ended gives lines the ends that they have in the file.
func (p pen) ended(text string) string {
	if p.brk == "\n" {
		return text
	}
	return strings.ReplaceAll(text, "\n", p.brk)
}
