// SPDX-License-Identifier: Apache-2.0

// Package schema says in JSON Schema what values of a definition can be: those of its fields, for editors, for the reference of the
// fields and for the readers of maps; and the answers that a model is asked for.
//
//	schema.Either(schema.Number(), schema.OneOf("none")) // in words: number or none
package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Shape says in JSON Schema what the value of a field can be. The shapes are
// what the readers take the names within a field from, what definition.Schema gives to
// editors, and what the reference of the fields is made of.
type Shape = *jsonschema.Schema

// Form is the map that a value can be, with its names; nil if it is none.
func Form(s Shape) Shape {
	if s == nil || s.PropertyOrder != nil {
		return s
	}
	if f := Form(s.AdditionalProperties); f != nil && f.PropertyOrder != nil {
		return f
	}
	for _, list := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		for _, alt := range list {
			if f := Form(alt); f != nil && f.PropertyOrder != nil {
				return f
			}
		}
	}
	return nil
}

// What follows makes shapes. The title is what a person calls such a value.

// Text is text.
func Text() Shape { return &jsonschema.Schema{Type: "string", Title: "text"} }

// AnyText is text where a number or true is read as text too.
func AnyText() Shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, Title: "text"}
}

// Expression is CEL, which is never empty.
func Expression() Shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, MinLength: new(1), Title: "expression"}
}

// YesNo is true or false.
func YesNo() Shape { return &jsonschema.Schema{Type: "boolean", Title: "true or false"} }

// Number is any number.
func Number() Shape { return &jsonschema.Schema{Type: "number", Title: "number"} }

// Whole is a whole number of at least so much.
func Whole(least float64) Shape {
	return &jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: new(float64(1<<31 - 1)), Title: "whole number"}
}

// OneOf is one of some words.
func OneOf(words ...string) Shape {
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
	SpanPattern = `^[+]?(([0-9]{1,5}(\.[0-9]*)?|\.[0-9]+)h)?(([0-9]{1,7}(\.[0-9]*)?|\.[0-9]+)m)?(([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)s)?(([0-9]{1,12}(\.[0-9]*)?|\.[0-9]+)ms)?(([0-9]{1,15}(\.[0-9]*)?|\.[0-9]+)[uµμ]s)?(([0-9]{1,18}(\.[0-9]*)?|\.[0-9]+)ns)?$|^[+]?([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)$`
	SizePattern = `^\s*([0-9]{1,12}\s*[Bb]?|([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)\s*[Kk][Ii]?[Bb]|([0-9]{1,6}(\.[0-9]*)?|\.[0-9]+)\s*[Mm][Ii]?[Bb]|([0-9]{1,3}(\.[0-9]*)?|\.[0-9]+)\s*[Gg][Ii]?[Bb])\s*$`
	NotNothing  = `[1-9]`
	MaxSeconds  = 1e9
	MaxBytes    = 1e12
)

// Duration is a time greater than zero.
func Duration() Shape {
	return &jsonschema.Schema{
		Title: "duration", Examples: []any{"30s", "5m"},
		AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: SpanPattern, AllOf: []*jsonschema.Schema{{Pattern: NotNothing}}},
			{Type: "number", ExclusiveMinimum: new(0.0), Maximum: new(MaxSeconds)},
		},
	}
}

// Delay is a time of zero or more.
func Delay() Shape {
	return &jsonschema.Schema{
		Title: "duration", Examples: []any{"500ms", "2s"},
		AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: SpanPattern, AllOf: []*jsonschema.Schema{{Pattern: "[0-9]"}}},
			{Type: "number", Minimum: new(0.0), Maximum: new(MaxSeconds)},
		},
	}
}

// ByteSize is a number of bytes.
func ByteSize() Shape {
	return &jsonschema.Schema{
		Title: "size", Examples: []any{"64KB", "1MiB"},
		AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: SizePattern, AllOf: []*jsonschema.Schema{{Pattern: NotNothing}}},
			{Type: "number", Minimum: new(1.0), Maximum: new(MaxBytes)},
		},
	}
}

// List is a list of such values.
func List(of Shape) Shape {
	s := &jsonschema.Schema{Type: "array", Items: of, Title: "list"}
	if name := plural[Words(of)]; name != "" {
		s.Title = "list of " + name
	}
	return s
}

// Filled is a list of at least one.
func Filled(of Shape) Shape {
	s := List(of)
	s.MinItems = new(1)
	return s
}

var plural = map[string]string{"text": "texts", "whole number": "whole numbers", "agent": "agents", "tool": "tools",
	"condition": "conditions"}

// MapOf is a map with names of the author's own.
func MapOf(of Shape) Shape {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: of, Title: "map"}
}

// Either is one of several forms.
func Either(forms ...Shape) Shape { return &jsonschema.Schema{AnyOf: forms} }

// Entry is one name in a map.
type Entry struct {
	Name, Doc string
	Value     Shape
}

// Named returns the entry of a name, with its explanation.
func Named(name, doc string, value Shape) Entry { return Entry{name, doc, value} }

// Settings is a map of known names, some of which are needed.
func Settings(entries []Entry, needed ...string) Shape {
	s := &jsonschema.Schema{Type: "object", Title: "map", Properties: make(map[string]*jsonschema.Schema),
		AdditionalProperties: Nothing(), Required: needed}
	for _, e := range entries {
		e.Value.Description = e.Doc
		s.Properties[e.Name] = e.Value
		s.PropertyOrder = append(s.PropertyOrder, e.Name)
	}
	return s
}

// Nothing is what no value is.
func Nothing() Shape { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// By is a shape of another name in the schema's $defs.
func By(def string) Shape { return &jsonschema.Schema{Ref: "#/$defs/" + def} }

// Preset gives a shape the value that counts if the field is left out.
func Preset(s Shape, v any) Shape {
	s.Default, _ = json.Marshal(v) // of what is written here
	return s
}

// alternatives are the forms of a value, the simple ones first.
func alternatives(s Shape) []Shape {
	switch {
	case s == nil:
		return nil
	case s.Title != "" || s.AnyOf == nil:
		return []Shape{s}
	}
	var all []Shape
	for _, alt := range s.AnyOf {
		all = append(all, alternatives(alt)...)
	}
	return slices.DeleteFunc(all, func(s Shape) bool { return s == nil })
}

// Without is a map that has one name and not the others.
func Without(name string, others ...string) Shape {
	s := &jsonschema.Schema{Required: []string{name}, Properties: make(map[string]*jsonschema.Schema)}
	for _, other := range others {
		s.Properties[other] = Nothing()
	}
	return s
}

// Word is text that is not empty.
func Word() Shape { return &jsonschema.Schema{Type: "string", MinLength: new(1), Title: "text"} }

// Described returns a copy of a shape with an explanation.
func Described(s Shape, doc string) Shape {
	if s == nil {
		s = &jsonschema.Schema{}
	}
	s = s.CloneSchemas()
	s.Description = doc
	return s
}

// Set adds a name to a map.
func Set(s Shape, name string, value Shape) {
	if s.Properties == nil {
		s.Properties = make(map[string]*jsonschema.Schema)
	}
	s.Properties[name] = value
	s.PropertyOrder = append(s.PropertyOrder, name)
}

// Words names the forms of a value.
func Words(s Shape) string {
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
				if word := fmt.Sprint(v); !slices.Contains(words, word) { // 0 as a number and as a text
					words = append(words, word)
				}
			}
		case alt.Ref != "":
			words = append(words, Words(alt))
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
