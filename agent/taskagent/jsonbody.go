// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/template"
)

// node is a JSON value whose texts are templates.
type node interface {
	fill(lookup func(string) (any, bool)) (any, error)
}

type (
	constNode struct{ value any }
	listNode  []node
	mapNode   map[string]node
	textNode  struct {
		field string
		text  *template.Template
		only  string // the key, if the text is nothing but its placeholder
	}
)

// json parses the templates in a JSON value.
func (s *source) json(field string, v any) node {
	switch x := v.(type) {
	case string:
		t := s.template(field, x, template.Mustache)
		return &textNode{field: field, text: t, only: onlyKey(x, t)}
	case []any:
		list := make(listNode, len(x))
		for i, item := range x {
			list[i] = s.json(fmt.Sprintf("%s[%d]", field, i), item)
		}
		return list
	case map[string]any:
		m := make(mapNode, len(x))
		for _, key := range slices.Sorted(maps.Keys(x)) {
			m[key] = s.json(fmt.Sprintf("%s[%q]", field, key), x[key])
		}
		return m
	case []string:
		list := make([]any, len(x))
		for i := range x {
			list[i] = x[i]
		}
		return s.json(field, list)
	case map[string]string:
		m := make(map[string]any, len(x))
		for key := range x {
			m[key] = x[key]
		}
		return s.json(field, m)
	}
	return constNode{v}
}

// onlyKey is the key of a text that is nothing but a placeholder.
func onlyKey(text string, t *template.Template) string {
	refs := t.Keys()
	if len(refs) != 1 || refs[0].Section {
		return ""
	}
	tag := strings.ReplaceAll(text, " ", "")
	if name := refs[0].Name; tag == "{{"+name+"}}" || tag == "{{"+name+"?}}" {
		return name
	}
	return ""
}

func (n constNode) fill(func(string) (any, bool)) (any, error) { return n.value, nil }

func (n listNode) fill(lookup func(string) (any, bool)) (any, error) {
	list := make([]any, len(n))
	for i := range n {
		v, err := n[i].fill(lookup)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func (n mapNode) fill(lookup func(string) (any, bool)) (any, error) {
	m := make(map[string]any, len(n))
	for key := range n {
		v, err := n[key].fill(lookup)
		if err != nil {
			return nil, err
		}
		m[key] = v
	}
	return m, nil
}

func (n *textNode) fill(lookup func(string) (any, bool)) (any, error) {
	if n.only != "" {
		if v, ok := valueOf(n.only, lookup); ok {
			return v, nil
		}
	}
	return fill(n.field, n.text, lookup)
}

// valueOf finds the value of a name as a template does: the full name, or ever
// shorter beginnings of it and from there down through maps.
func valueOf(name string, lookup func(string) (any, bool)) (any, bool) {
	for head, rest := name, ""; ; {
		if v, ok := lookup(head); ok {
			return descend(v, rest)
		}
		i := strings.LastIndexByte(head, '.')
		if i < 0 {
			return nil, false
		}
		head, rest = head[:i], name[i+1:]
	}
}

func descend(v any, path string) (any, bool) {
	for path != "" {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		var key string
		key, path, _ = strings.Cut(path, ".")
		if v, ok = m[key]; !ok {
			return nil, false
		}
	}
	return v, true
}
