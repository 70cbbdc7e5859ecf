// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// shape says in JSON Schema what the value of a field can be. The shapes are
// what the readers take the names within a field from, what [Schema] gives to
// editors, and what the reference of the fields is made of.
type shape = *jsonschema.Schema

// form is the map that a value can be, with its names; nil if it is none.
func form(s shape) shape {
	if s == nil || s.PropertyOrder != nil {
		return s
	}
	if f := form(s.AdditionalProperties); f != nil && f.PropertyOrder != nil {
		return f
	}
	for _, list := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		for _, alt := range list {
			if f := form(alt); f != nil && f.PropertyOrder != nil {
				return f
			}
		}
	}
	return nil
}

// What follows makes shapes. The title is what a person calls such a value.

func text() shape { return &jsonschema.Schema{Type: "string", Title: "text"} }

// anyText is text where a number or true is read as text too.
func anyText() shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, Title: "text"}
}

// expression is CEL, which is never empty.
func expression() shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, MinLength: new(1), Title: "expression"}
}

func yesNo() shape { return &jsonschema.Schema{Type: "boolean", Title: "true or false"} }

func number() shape { return &jsonschema.Schema{Type: "number", Title: "number"} }

// whole is a whole number of at least so much.
func whole(least float64) shape {
	return &jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: new(float64(1<<31 - 1)), Title: "whole number"}
}

// oneOf is one of some words.
func oneOf(words ...string) shape {
	s := &jsonschema.Schema{Title: "word"}
	for _, w := range words {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// Spans of time are text as Go has it, its units from the largest to the smallest, or seconds. The
// number of digits of each part is limited so that the sum fits in a time.Duration. A time greater
// than zero has a digit other than 0.
const (
	spanPattern = `^[+]?(([0-9]{1,5}(\.[0-9]*)?|\.[0-9]+)h)?(([0-9]{1,7}(\.[0-9]*)?|\.[0-9]+)m)?(([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)s)?(([0-9]{1,12}(\.[0-9]*)?|\.[0-9]+)ms)?(([0-9]{1,15}(\.[0-9]*)?|\.[0-9]+)[uµμ]s)?(([0-9]{1,18}(\.[0-9]*)?|\.[0-9]+)ns)?$|^[+]?([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)$`
	sizePattern = `^\s*([0-9]{1,12}\s*[Bb]?|([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)\s*[Kk][Ii]?[Bb]|([0-9]{1,6}(\.[0-9]*)?|\.[0-9]+)\s*[Mm][Ii]?[Bb]|([0-9]{1,3}(\.[0-9]*)?|\.[0-9]+)\s*[Gg][Ii]?[Bb])\s*$`
	notNothing  = `[1-9]`
	maxSeconds  = 1e9
	maxBytes    = 1e12
)

// duration is a time greater than zero.
func duration() shape {
	return &jsonschema.Schema{
		Title: "duration", Examples: []any{"30s", "5m"},
		AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: spanPattern, AllOf: []*jsonschema.Schema{{Pattern: notNothing}}},
			{Type: "number", ExclusiveMinimum: new(0.0), Maximum: new(maxSeconds)},
		},
	}
}

// delay is a time of zero or more.
func delay() shape {
	return &jsonschema.Schema{
		Title: "duration", Examples: []any{"500ms", "2s"},
		AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: spanPattern, AllOf: []*jsonschema.Schema{{Pattern: "[0-9]"}}},
			{Type: "number", Minimum: new(0.0), Maximum: new(maxSeconds)},
		},
	}
}

// byteSize is a number of bytes.
func byteSize() shape {
	return &jsonschema.Schema{
		Title: "size", Examples: []any{"64KB", "1MiB"},
		AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: sizePattern, AllOf: []*jsonschema.Schema{{Pattern: notNothing}}},
			{Type: "number", Minimum: new(1.0), Maximum: new(maxBytes)},
		},
	}
}

// list is a list of such values.
func list(of shape) shape {
	s := &jsonschema.Schema{Type: "array", Items: of, Title: "list"}
	if name := plural[valueWords(of)]; name != "" {
		s.Title = "list of " + name
	}
	return s
}

// filled is a list of at least one.
func filled(of shape) shape {
	s := list(of)
	s.MinItems = new(1)
	return s
}

var plural = map[string]string{"text": "texts", "whole number": "whole numbers", "agent": "agents", "tool": "tools",
	"condition": "conditions"}

// mapOf is a map with names of the author's own.
func mapOf(of shape) shape {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: of, Title: "map"}
}

// either is one of several forms.
func either(forms ...shape) shape { return &jsonschema.Schema{AnyOf: forms} }

// entry is one name in a map.
type entry struct {
	name  string
	doc   string
	value shape
}

// settings is a map of known names, some of which are needed.
func settings(entries []entry, needed ...string) shape {
	s := &jsonschema.Schema{Type: "object", Title: "map", Properties: make(map[string]*jsonschema.Schema),
		AdditionalProperties: nothing(), Required: needed}
	for _, e := range entries {
		e.value.Description = e.doc
		s.Properties[e.name] = e.value
		s.PropertyOrder = append(s.PropertyOrder, e.name)
	}
	return s
}

// nothing is what no value is.
func nothing() shape { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// by is a shape of another name in the schema's $defs.
func by(def string) shape { return &jsonschema.Schema{Ref: "#/$defs/" + def} }

// preset gives a shape the value that counts if the field is left out.
func preset(s shape, v any) shape {
	s.Default, _ = json.Marshal(v) // of what is written here
	return s
}

// alternatives are the forms of a value, the simple ones first.
func alternatives(s shape) []shape {
	switch {
	case s == nil:
		return nil
	case s.Title != "" || s.AnyOf == nil:
		return []shape{s}
	}
	var all []shape
	for _, alt := range s.AnyOf {
		all = append(all, alternatives(alt)...)
	}
	return slices.DeleteFunc(all, func(s shape) bool { return s == nil })
}

// without is a map that has one name and not the others.
func without(name string, others ...string) shape {
	s := &jsonschema.Schema{Required: []string{name}, Properties: make(map[string]*jsonschema.Schema)}
	for _, other := range others {
		s.Properties[other] = nothing()
	}
	return s
}

func wordShape() shape { return &jsonschema.Schema{Type: "string", MinLength: new(1), Title: "text"} }

func conditionRef() shape { return by("condition") }
