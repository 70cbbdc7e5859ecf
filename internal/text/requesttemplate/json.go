// SPDX-License-Identifier: Apache-2.0

package requesttemplate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// JSON fills the strings in a JSON value. If a string consists of one placeholder, the value itself takes its place,
// such as a number or a list.
type JSON func(lookup func(string) (any, bool)) (any, error)

// JSON parses the templates in a value. Go values other than maps, lists and strings are converted as encoding/json writes them.
func (p Parser) JSON(field string, v any) JSON {
	if _, err := json.Marshal(v); err != nil {
		p.report(field, "%w", err)
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
		return constant(nil) // the mistake was reported
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber() // numbers keep all their digits
	var plain any
	if err := d.Decode(&plain); err != nil {
		p.report(field, "%w", err)
	}
	return p.json(field, plain)
}

func (p Parser) text(field, text string) JSON {
	t := p.Template(field, text)
	return func(lookup func(string) (any, bool)) (any, error) {
		if v, ok := t.Value(lookup); ok {
			return v, nil
		}
		return Fill(field, t, lookup)
	}
}
