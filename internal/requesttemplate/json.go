// SPDX-License-Identifier: Apache-2.0

package requesttemplate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/template"
)

// JSON fills the texts in a JSON value. A text that is one placeholder becomes the value itself,
// such as a number or a list.
type JSON func(lookup func(string) (any, bool)) (any, error)

// JSON parses the templates in a value. Go values that are not maps, lists or texts are
// taken as encoding/json writes them.
func (p Parser) JSON(field string, v any) JSON {
	if _, err := json.Marshal(v); err != nil {
		p.Errorf("%s: %w", field, err)
		return constant(nil)
	}
	return p.json(field, v)
}

func constant(v any) JSON { return func(func(string) (any, bool)) (any, error) { return v, nil } }

func (p Parser) json(field string, v any) JSON {
	switch x := v.(type) {
	case string:
		return p.text(field, x)
	case []any:
		items := make([]JSON, len(x))
		for i, item := range x {
			items[i] = p.json(fmt.Sprintf("%s[%d]", field, i), item)
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
		items := make(map[string]JSON, len(x))
		for _, key := range slices.Sorted(maps.Keys(x)) {
			items[key] = p.json(fmt.Sprintf("%s[%q]", field, key), x[key])
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
	case nil, bool, int, int64, uint64, float64, json.Number:
		return constant(v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return constant(nil) // it was reported
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber() // a number keeps its digits
	var plain any
	if err := d.Decode(&plain); err != nil {
		p.Errorf("%s: %w", field, err)
	}
	return p.json(field, plain)
}

func (p Parser) text(field, text string) JSON {
	t := p.Template(field, text)
	only := onlyKey(text, t)
	return func(lookup func(string) (any, bool)) (any, error) {
		if only != "" {
			if v, ok := valueOf(only, lookup); ok {
				return v, nil
			}
		}
		return Fill(field, t, lookup)
	}
}

// onlyKey is the key of a text that consists of one placeholder.
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
