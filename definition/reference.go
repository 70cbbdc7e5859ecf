// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Part is one name in a field that can be a map.
type Part struct {
	Name string
	// Value says what it can be, in words; Doc what it is.
	Value, Doc string
	// Needed says that the map has to have it.
	Needed bool
}

// Value says in words what the field's value can be, such as "duration" or "whole
// number or none".
func (f Field) Value() string { return valueWords(shapes[f.Name]) }

// Parts are the names in the map that the field's value can be; nil if it is none,
// or one with names of the author's own.
func (f Field) Parts() []Part {
	s := form(shapes[f.Name])
	if s == nil {
		return nil
	}
	var parts []Part
	for _, name := range s.PropertyOrder {
		p := s.Properties[name]
		parts = append(parts, Part{name, valueWords(p), p.Description, slices.Contains(s.Required, name)})
	}
	return parts
}

// valueWords names the forms of a value.
func valueWords(s shape) string {
	if s == nil {
		return "any value"
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		return refWords[name]
	}
	var words []string
	for _, alt := range alternatives(s) {
		switch {
		case alt.Enum != nil:
			for _, v := range alt.Enum {
				words = append(words, fmt.Sprint(v))
			}
		case alt.Ref != "":
			words = append(words, valueWords(alt))
		case alt.Title != "" && !slices.Contains(words, alt.Title):
			words = append(words, alt.Title)
		}
	}
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	if len(words) == 0 {
		return "any value"
	}
	return words[0]
}

// refWords are what the parts of the schema are called that have a name there.
var refWords = map[string]string{
	"condition": "expression or map", "answer": "JSON Schema", "step": "agent", "tool": "tool", "mcp": "map", "callback": "map",
}

// SortedCodes are the codes of [Codes] in their order.
func SortedCodes() []string { return slices.Sorted(maps.Keys(Codes)) }
