// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
)

// emit writes an agent as a map of a definition, its fields in the order in
// which people write them, and notes where they come from.
func (o origins) emit(a *agent) *yaml.Node {
	fields := object{{key: "name", value: a.name}, {key: "type", value: string(a.typ)}}
	text := func(key, v string) {
		if v != "" {
			fields = append(fields, field{key: key, value: v})
		}
	}
	text("description", a.description)
	text("instructions", a.instructions)
	text("model", a.model)
	text("output_key", a.outputKey)
	if a.exit != nil {
		fields = append(fields, field{key: "can_exit_loop", value: *a.exit})
	}
	fields = append(fields, a.extra...)
	if len(a.order) > 0 {
		var names []any
		for _, sub := range a.order {
			names = append(names, sub.name)
		}
		fields = append(fields, field{key: "order", value: names})
	}
	if len(a.tools) > 0 {
		var tools []any
		for _, t := range a.tools {
			if t.agent != nil {
				t.value = object{{key: "agent", value: o.emit(t.agent)}}
			}
			n := node(t.value)
			o.put(n, t.from)
			tools = append(tools, n)
		}
		fields = append(fields, field{key: "tools", value: tools})
	}
	if len(a.subs) > 0 {
		var subs []any
		for _, sub := range a.subs {
			subs = append(subs, o.emit(sub))
		}
		fields = append(fields, field{key: "sub_agents", value: subs})
	}
	order := definition.Fields()
	place := func(f field) int {
		if f.key == "sub_agents" {
			return len(order) // what is long comes last
		}
		return slices.IndexFunc(order, func(o definition.Field) bool { return o.Name == f.key })
	}
	slices.SortStableFunc(fields, func(f, g field) int { return place(f) - place(g) })
	n := node(fields)
	o[n] = origin{at: a.at}
	o.fields(n, fields, a.from)
	return n
}

// fields notes where the fields of a map come from.
func (o origins) fields(n *yaml.Node, fields object, from map[string][]value) {
	for k, f := range fields {
		key, val := n.Content[2*k], n.Content[2*k+1]
		came := from[f.key]
		if f.from != nil {
			came = f.from
		}
		o.put(key, came...)
		if inner, ok := f.value.(object); ok && val.Kind == yaml.MappingNode {
			o.fields(val, inner, nil)
		}
		o.put(val, came...)
	}
}

// node makes YAML of a value.
func node(v any) *yaml.Node {
	scalar := func(tag, text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text} }
	switch v := v.(type) {
	case *yaml.Node:
		return v
	case lazy:
		return node(v())
	case string:
		n := scalar("!!str", v)
		switch {
		case odd(v):
			n.Style = yaml.DoubleQuotedStyle
		case strings.Contains(v, "\n"):
			n.Style = yaml.LiteralStyle
		}
		return n
	case bool:
		return scalar("!!bool", strconv.FormatBool(v))
	case int:
		return scalar("!!int", strconv.Itoa(v))
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if _, err := strconv.Atoi(text); err == nil {
			return scalar("!!int", text)
		}
		return scalar("!!float", text)
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		plain := true
		for _, item := range v {
			c := node(item)
			plain = plain && c.Kind == yaml.ScalarNode && !strings.Contains(c.Value, "\n")
			n.Content = append(n.Content, c)
		}
		if plain {
			n.Style = yaml.FlowStyle
		}
		return n
	case object:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, f := range v {
			n.Content = append(n.Content, node(f.key), node(f.value))
		}
		return n
	}
	return scalar("!!null", "null")
}

// odd reports whether a text has something in it that YAML wants escaped.
func odd(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return r != '\n' && unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || r == 0xfeff
	})
}

var errUnwritable = errors.New("YAML cannot say it")

// write writes a value as YAML, with a comment above it, and makes sure that
// what is read again is the same. It returns that as well.
func write(n *yaml.Node, comment string) (text []byte, read *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil { // the writer is somebody else's
			text, err = nil, errUnwritable
		}
	}()
	stand := newStandIns(n)
	for range 2 {
		text, err = yaml.Dump(stand.in(clone(n)), yaml.WithIndent(2), yaml.WithCompactSeqIndent(false),
			yaml.WithLineWidth(-1), yaml.WithUnicode(true))
		if err != nil {
			return nil, nil, err
		}
		text = append([]byte("# "+comment+"\n"), stand.out(text)...)
		var back yaml.Node
		if yaml.Load(text, &back) == nil && len(back.Content) == 1 && same(n, back.Content[0]) {
			return text, back.Content[0], nil
		}
		quote(n)
	}
	return nil, nil, errUnwritable
}

// clone copies a value: the writer takes the tags off what it is given.
func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for k := range n.Content {
		c.Content[k] = clone(n.Content[k])
	}
	return &c
}

// same reports whether two values mean the same.
func same(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Value == b.Value && (a.Kind != yaml.ScalarNode || a.ShortTag() == b.ShortTag()) &&
		slices.EqualFunc(a.Content, b.Content, same)
}

// quote writes all texts in quotes, where nothing is folded or cut.
func quote(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		quote(c)
	}
}

// copied is a value of a foreign file as one of ours, without its style.
func copied(v value) any {
	v.all()
	switch {
	case v.isMap():
		var o object
		for _, p := range v.pairs() {
			o = append(o, field{key: p.key, value: copied(p.value)})
		}
		return o
	case v.isList():
		list := []any{}
		for _, item := range v.items() {
			list = append(list, copied(item))
		}
		return list
	case v.isNull():
		return nil
	}
	if v.ShortTag() == "!!str" || v.ShortTag() == "!!timestamp" || v.ShortTag() == "!!binary" {
		return v.Value
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: v.ShortTag(), Value: v.Value}
}

func list(s []string) []any {
	out := make([]any, len(s))
	for n := range s {
		out[n] = s[n]
	}
	return out
}

// standIns take the place of characters such as 🚀 while YAML is written: the
// writer knows only those of 16 bits, and would make a prompt with one of the
// others a single long line full of escapes.
type standIns struct {
	there, back map[rune]rune
}

// newStandIns finds a character of the private area for each that needs one.
func newStandIns(n *yaml.Node) standIns {
	seen := make(map[rune]bool)
	runes(n, seen)
	s := standIns{there: make(map[rune]rune), back: make(map[rune]rune)}
	free := rune(0xe000)
	for r := range seen {
		if r <= 0xffff {
			continue
		}
		for seen[free] {
			free++
		}
		if free > 0xf8ff {
			break // the rest is written as escapes
		}
		s.there[r], s.back[free] = free, r
		free++
	}
	return s
}

func runes(n *yaml.Node, seen map[rune]bool) {
	for _, r := range n.Value {
		seen[r] = true
	}
	for _, c := range n.Content {
		runes(c, seen)
	}
}

func swap(s string, with map[rune]rune) string {
	return strings.Map(func(r rune) rune {
		if to, ok := with[r]; ok {
			return to
		}
		return r
	}, s)
}

// in puts them into a value, out takes them out of a text.
func (s standIns) in(n *yaml.Node) *yaml.Node {
	n.Value = swap(n.Value, s.there)
	for _, c := range n.Content {
		s.in(c)
	}
	return n
}

func (s standIns) out(text []byte) []byte {
	if len(s.back) == 0 {
		return text
	}
	return []byte(swap(string(text), s.back))
}
