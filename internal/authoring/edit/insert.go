// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/text/source"
)

// Insert inserts a value into a list before the given index; the length of the list appends the value. An agent can
// be a map, or [YAML] with comments, which go above its dash.
func (e *Editor) Insert(list string, index int, value any) error {
	v, err := give(value)
	if err != nil {
		return &Error{Op: "insert", Path: list, Err: err}
	}
	return e.lay(list, index, v)
}

func (e *Editor) lay(list string, index int, v newValue) error {
	return e.do("insert", list, func(quotes bool) (attempt, error) { return e.sheet.insert(list, index, v, quotes) })
}

func (s *sheet) insert(list string, index int, v newValue, quotes bool) (attempt, error) {
	p, err := s.list(list)
	if err != nil {
		return attempt{}, err
	}
	c := p.node
	if index < 0 || index > len(c.Content) {
		return attempt{}, s.fail(c, "there is no index %d in a list of %d", index, len(c.Content))
	}
	if !v.asIs {
		orderNode(v.node, append(slices.Clone(p.hops), hop{at: index}))
	}
	if len(c.Content) == 0 {
		alone, err := v.listed()
		if err != nil {
			return attempt{}, err
		}
		return s.set(list, alone, quotes)
	}
	slots, err := s.slots(c)
	if err != nil {
		return attempt{}, err
	}
	want := s.with(p, among(c, slices.Insert(slices.Clone(c.Content), index, v.node)))
	if c.Style&yaml.FlowStyle != 0 {
		m := manner{flow: true}
		if like := c.Content[min(index, len(c.Content)-1)]; like.Kind == yaml.ScalarNode &&
			v.node.Kind == yaml.ScalarNode {
			m.style = like.Style
		}
		_, text, err := v.text(s.pen, 0, true, m)
		return attempt{s.between(c, slots, index, text), want}, err
	}
	like := c.Content[min(index, len(c.Content)-1)]
	m := manner{quotes: quotes, block: v.node.Kind == yaml.MappingNode}
	if like.Kind == yaml.ScalarNode && v.node.Kind == yaml.ScalarNode {
		m.style = like.Style &^ blockStyle
	}
	if like.Kind == yaml.MappingNode && like.Style&yaml.FlowStyle != 0 && s.pen.short(v.node) {
		m = manner{flow: true}
	}
	column := s.columnOf(slots[0].from)
	head, text, err := v.text(s.pen, column, true, m)
	if err != nil {
		return attempt{}, err
	}
	return attempt{s.lay(c, slots, index, s.pen.ended(head+strings.Repeat(" ", column)+"-"+apart(text))), want}, nil
}

// list finds a list.
func (s *sheet) list(path string) (*spot, error) {
	p, err := s.find(path)
	if err != nil {
		return nil, err
	}
	switch n := p.node; {
	case n == nil:
		return nil, s.fail(p.in(), "there is no %s; create it with set", p.last().key)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, s.shared(n)
	case n.Kind != yaml.SequenceNode:
		return nil, s.fail(n, "the value is %s, not a list", source.Describe(n))
	}
	return p, nil
}

// lay puts lines before those of the entry at an index.
func (s *sheet) lay(c *yaml.Node, slots []slot, index int, lines string) []splice {
	strips := s.strips(c, slots)
	gap := ""
	if i := max(min(index, len(strips)-1), 1); c.Kind == yaml.SequenceNode && i < len(strips) &&
		s.parted(strips[i-1].to, strips[i].from) {
		gap = s.pen.brk
	}
	if index == len(strips) || c.Kind == yaml.MappingNode && index > 0 { // a field belongs to the one before
		at := strips[index-1].to
		return []splice{{at, at, s.pen.brk + gap + lines}}
	}
	at := strips[index].from
	if !strips[index].inline {
		return []splice{{at, at, lines + s.pen.brk + gap}}
	}
	margin := strings.Repeat(" ", s.columnOf(slots[0].from))
	return []splice{{at, at, strings.TrimPrefix(lines, margin) + s.pen.brk + gap + margin}}
}

// parted reports whether there is an empty line between two entries.
func (s *sheet) parted(from, to int) bool {
	for line := s.LineOf(from) + 1; line < s.LineOf(to); line++ {
		if strings.TrimSpace(s.Row(line)) == "" {
			return true
		}
	}
	return false
}

// addField adds a field to a map.
func (s *sheet) addField(p *spot, v newValue, quotes bool) (attempt, error) {
	c := p.in()
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: p.last().key}
	up := p.up()
	if len(c.Content) == 0 {
		return s.set(up.path, newValue{node: among(c, []*yaml.Node{key, v.node})}, quotes)
	}
	slots, err := s.slots(c)
	if err != nil {
		return attempt{}, err
	}
	index := after(c, fieldOrder(up.hops), key.Value)
	content := slices.Insert(slices.Clone(c.Content), 2*index, key, v.node)
	want := s.with(up, among(c, content))
	if c.Style&yaml.FlowStyle != 0 {
		_, text, err := v.text(s.pen, 0, false, manner{flow: true})
		return attempt{s.between(c, slots, index, s.pen.key(key)+": "+text), want}, err
	}
	column := s.columnOf(slots[0].from)
	_, text, err := v.text(s.pen, column, false, manner{quotes: quotes})
	if err != nil {
		return attempt{}, err
	}
	return attempt{s.lay(c, slots, index, s.pen.ended(strings.Repeat(" ", column)+s.pen.key(key)+":"+apart(text))),
		want}, nil
}

// after is the place of a new field in a map: behind the last one that people write
// before it; at the end for one without an order.
func after(c *yaml.Node, order []string, key string) int {
	mine := fieldRank(order, key)
	if mine < 0 {
		return len(c.Content) / 2
	}
	place := 0
	for i := 0; i+1 < len(c.Content); i += 2 {
		if r := fieldRank(order, c.Content[i].Value); r >= 0 && r < mine {
			place = i/2 + 1
		}
	}
	return place
}
