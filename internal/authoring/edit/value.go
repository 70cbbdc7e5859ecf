// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// YAML is a value for [Editor] that is already written as YAML, such as YAML("# who writes\nname: write\ntext:
// Hello\n").
//
// The Editor keeps its comments, its quotes and the order of its fields, and indents it for its new place. It cannot
// have anchors, aliases and tags.
type YAML string

// newValue is a value to write.
type newValue struct {
	node  *yaml.Node
	asIs  bool   // it is written already, or has an order of its own
	sheet *sheet // of one that is written already and has lines of its own; else nil
}

// give makes a value of what a caller gives.
func give(value any) (g newValue, err error) {
	defer func() {
		// The encoder panics for what it does not know.
		if r := recover(); r != nil {
			err = fmt.Errorf("a value of type %T cannot be written as YAML", value)
		}
	}()
	switch v := value.(type) {
	case YAML:
		return fragment(v)
	case *yaml.Node:
		n := copyNode(v)
		return newValue{node: n, asIs: true}, plainValue(n)
	}
	n := new(yaml.Node)
	if value == nil {
		return newValue{node: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}}, nil
	}
	if err := n.Encode(value); err != nil {
		return newValue{}, err
	}
	return newValue{node: n}, plainValue(n)
}

func copyNode(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = copyNode(c)
	}
	return &out
}

// plainValue makes the values of Go those of a file, and refuses what has none.
func plainValue(n *yaml.Node) error {
	n.Anchor, n.Tag = "", n.ShortTag()
	switch {
	case n.Kind == yaml.AliasNode:
		return errors.New("a value that contains itself cannot be written")
	case n.Kind == yaml.ScalarNode && !utf8.ValidString(n.Value):
		return errors.New("the text is not UTF-8")
	case n.Tag == "!!float":
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("a definition cannot have the number %s", n.Value)
		}
		if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			n.Tag, n.Value = "!!int", strconv.FormatFloat(f, 'f', -1, 64)
		}
	case n.Tag == "!!binary":
		return errors.New("bytes that are not text cannot be written")
	}
	n.Style = 0
	for _, c := range n.Content {
		if err := plainValue(c); err != nil {
			return err
		}
	}
	return nil
}

// fragment reads a value that is written already.
func fragment(text YAML) (newValue, error) {
	s, err := newSheet([]byte(text))
	if err != nil {
		return newValue{}, fmt.Errorf("the value: %v", err)
	}
	if err := s.alone(s.root); err != nil {
		return newValue{}, fmt.Errorf("the value: %v", err)
	}
	if err := untag(s.root); err != nil {
		return newValue{}, err
	}
	g := newValue{node: s.root, asIs: true}
	if s.root.Kind != yaml.ScalarNode && s.root.Style&yaml.FlowStyle == 0 {
		g.sheet = s
	}
	return g, nil
}

func untag(n *yaml.Node) error {
	if n.Style&yaml.TaggedStyle != 0 {
		return fmt.Errorf("the value has the tag %s: leave it out", brief.Printable(n.ShortTag()))
	}
	for _, c := range n.Content {
		if err := untag(c); err != nil {
			return err
		}
	}
	return nil
}

var errComments = errors.New("the value has comments, which cannot be written on one line; remove them")

// hasComment reports whether there are comments with a value.
func hasComment(n *yaml.Node) bool {
	return n.HeadComment != "" || n.LineComment != "" || n.FootComment != "" ||
		slices.ContainsFunc(n.Content, hasComment)
}

// text writes the value behind a key or a dash at a column. Head is what belongs above
// the line of the dash.
func (g newValue) text(p pen, column int, dash bool, m manner) (head, text string, err error) {
	if g.sheet == nil || m.flow || p.json {
		if hasComment(g.node) {
			return "", "", errComments
		}
		if g.node.Kind == yaml.ScalarNode && m.style&blockStyle == 0 && g.node.Style != 0 {
			m.style = g.node.Style
		}
		m.flow = m.flow || p.json
		if g.node.Kind != yaml.ScalarNode && g.node.Style&yaml.FlowStyle != 0 && len(g.node.Content) > 0 {
			m.flow = true
		}
		return "", p.write(g.node, column, dash, m), nil
	}
	to := column + p.step
	switch {
	case dash:
		to = column + 2
	case g.node.Kind == yaml.SequenceNode:
		to = column + p.list
	}
	rows := g.sheet.shifted(to)
	if !dash {
		return "", "\n" + strings.Join(rows, "\n"), nil
	}
	for len(rows) > 0 && (strings.HasPrefix(strings.TrimLeft(rows[0], " \t"), "#") || strings.TrimSpace(rows[0]) == "") {
		if bare := strings.TrimLeft(rows[0], " \t"); bare != "" {
			head += strings.Repeat(" ", column) + bare + "\n"
		}
		rows = rows[1:]
	}
	return head, strings.TrimLeft(strings.Join(rows, "\n"), " "), nil
}

// shifted are the lines of a text, indented so that it begins at a column.
func (s *sheet) shifted(column int) []string {
	was := s.columnOf(s.spans[s.root].body)
	last := s.LineOf(s.spans[s.root].to)
	for line := last + 1; line < len(s.Starts); line++ {
		if _, ok := s.remark(line); ok {
			last = line
		}
	}
	var rows []string
	for line := range last + 1 {
		row := s.Row(line)
		spaces := len(row) - len(strings.TrimLeft(row, " "))
		if row = row[min(spaces, was):]; row != "" {
			row = strings.Repeat(" ", column) + row
		}
		rows = append(rows, row)
	}
	return rows
}

// listed is a list of the value alone.
func (g newValue) listed() (newValue, error) {
	if g.sheet != nil {
		head, text, err := g.text(pen{brk: "\n", step: 2, list: 2}, 0, true, manner{})
		if err != nil {
			return newValue{}, err
		}
		return fragment(YAML(head + "- " + text))
	}
	return newValue{node: &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{g.node}}}, nil
}
