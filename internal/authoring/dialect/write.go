// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/authoring/edit"
	"github.com/refrain-dev/refrain/internal/text/source"
)

// emit writes an agent as a map of a definition, and records the origins of its fields.
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
		var names []string
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
	n := node(fields)
	o[n] = origin{at: a.at}
	o.fields(n, fields, a.from)
	return n
}

// fields records the origins of the fields of a map.
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

// node converts a value to YAML.
func node(v any) *yaml.Node {
	scalar := func(tag, text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text} }
	switch v := v.(type) {
	case *yaml.Node:
		return v
	case lazy:
		return node(v())
	case string:
		return scalar("!!str", v)
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
	case []string:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			n.Content = append(n.Content, node(item))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			n.Content = append(n.Content, node(item))
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

// write writes a value as YAML, with a comment above it. It also returns the value as parsed from the written text.
func write(n *yaml.Node, comment string) (text []byte, read *yaml.Node, err error) {
	e, err := edit.New([]byte("# " + comment + "\n{}\n"))
	if err == nil {
		err = e.Set("", n)
	}
	if err != nil {
		return nil, nil, err
	}
	read, _ = source.Read(bytes.NewReader(e.Bytes()), source.New("", "", 0, ""), new(int))
	return e.Bytes(), read, nil
}

// copyOf copies a value of the imported file without its YAML style.
func copyOf(v value) any { return v.copied("", copiedScalar) }

// copied copies a value. scalar copies each value that is no map and no list, and gets the name of the field around it.
func (v value) copied(name string, scalar func(name string, v value) any) any {
	switch v.all(); {
	case v.isMap():
		var o object
		for _, p := range v.pairs() {
			o = append(o, field{key: p.key, value: p.value.copied(p.key, scalar)})
		}
		return o
	case v.isList():
		list := []any{}
		for _, item := range v.items() {
			list = append(list, item.copied(name, scalar))
		}
		return list
	}
	return scalar(name, v)
}

func copiedScalar(_ string, v value) any {
	if v.isNull() {
		return nil
	}
	if v.ShortTag() == "!!str" || v.ShortTag() == "!!timestamp" || v.ShortTag() == "!!binary" {
		return v.Value
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: v.ShortTag(), Value: v.Value}
}
