// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/template"
)

// parser parses the templates of a config and notes everything that is wrong.
type parser struct{ errs []error }

func (p *parser) errorf(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(format, args...))
}

// template parses a template. It never returns nil.
func (p *parser) template(field, text string) *template.Template {
	t, err := template.Parse(text, template.Options{Dialect: template.Mustache})
	if err != nil {
		p.errorf("%s: %w", field, err)
		return new(template.Template)
	}
	return t
}

func fill(field string, t *template.Template, lookup func(string) (any, bool)) (string, error) {
	text, err := t.Execute(lookup)
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return text, nil
}

// node is a value in which texts are templates.
type node func(lookup func(string) (any, bool)) (any, error)

// node parses the templates in a value of JSON's types. It takes other values for
// what JSON makes of them.
func (p *parser) node(field string, v any) node {
	switch x := v.(type) {
	case string:
		return p.text(field, x)
	case []any:
		items := make([]node, len(x))
		for i, item := range x {
			items[i] = p.node(fmt.Sprintf("%s[%d]", field, i), item)
		}
		return func(lookup func(string) (any, bool)) (any, error) {
			list := make([]any, len(items))
			for i, item := range items {
				var err error
				if list[i], err = item(lookup); err != nil {
					return nil, err
				}
			}
			return list, nil
		}
	case map[string]any:
		items := make(map[string]node, len(x))
		for _, key := range slices.Sorted(maps.Keys(x)) {
			items[key] = p.node(fmt.Sprintf("%s[%q]", field, key), x[key])
		}
		return func(lookup func(string) (any, bool)) (any, error) {
			m := make(map[string]any, len(items))
			for key, item := range items {
				var err error
				if m[key], err = item(lookup); err != nil {
					return nil, err
				}
			}
			return m, nil
		}
	case nil, bool, int, int64, uint64, float64:
		return func(func(string) (any, bool)) (any, error) { return v, nil }
	}
	text, err := json.Marshal(v)
	var plain any
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		p.errorf("%s: %w", field, err)
	}
	return p.node(field, plain)
}

func (p *parser) text(field, text string) node {
	t := p.template(field, text)
	only := onlyKey(text, t)
	return func(lookup func(string) (any, bool)) (any, error) {
		if only != "" && field != "Payload" {
			if v, ok := valueOf(only, lookup); ok {
				return v, nil
			}
		}
		return fill(field, t, lookup)
	}
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
