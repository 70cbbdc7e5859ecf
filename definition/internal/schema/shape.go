// SPDX-License-Identifier: Apache-2.0

// Package schema describes the values of a definition in JSON Schema. Editors, the reference of the fields and the
// readers of maps use the schemas of fields, and models get the schemas of answers.
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

// Shape is the JSON Schema of a field's value. The readers take the names within a field from it, definition.Schema
// passes it to editors, and the reference of the fields is generated from it.
type Shape = *jsonschema.Schema

// Form returns the map in a shape that has known names, or nil if there is none.
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

// The following functions return shapes. The title is the name of such a value for people.

// Text returns the shape of a text.
func Text() Shape { return &jsonschema.Schema{Type: "string", Title: "text"} }

// AnyText returns the shape of a text for which numbers and booleans are accepted too.
func AnyText() Shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, Title: "text"}
}

// Expression returns the shape of a CEL expression, which is never empty.
func Expression() Shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, MinLength: new(1), Title: "expression"}
}

// YesNo returns the shape of true or false.
func YesNo() Shape { return &jsonschema.Schema{Type: "boolean", Title: "true or false"} }

// Number returns the shape of a number.
func Number() Shape { return &jsonschema.Schema{Type: "number", Title: "number"} }

// Whole returns the shape of a whole number of at least least.
func Whole(least float64) Shape {
	return &jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: new(float64(1<<31 - 1)), Title: "whole number"}
}

// OneOf returns the shape of one of the words.
func OneOf(words ...string) Shape {
	s := &jsonschema.Schema{Title: "word"}
	for _, w := range words {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// A duration is text in the format of Go with its units in descending order, or a number of seconds. The pattern
// limits the digits of each part so that the sum fits in a time.Duration. NotNothing matches a digit other than 0,
// which a duration greater than zero has.
const (
	SpanPattern = `^[+]?(([0-9]{1,5}(\.[0-9]*)?|\.[0-9]+)h)?(([0-9]{1,7}(\.[0-9]*)?|\.[0-9]+)m)?(([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)s)?(([0-9]{1,12}(\.[0-9]*)?|\.[0-9]+)ms)?(([0-9]{1,15}(\.[0-9]*)?|\.[0-9]+)[uµμ]s)?(([0-9]{1,18}(\.[0-9]*)?|\.[0-9]+)ns)?$|^[+]?([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)$`
	SizePattern = `^\s*([0-9]{1,12}\s*[Bb]?|([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)\s*[Kk][Ii]?[Bb]|([0-9]{1,6}(\.[0-9]*)?|\.[0-9]+)\s*[Mm][Ii]?[Bb]|([0-9]{1,3}(\.[0-9]*)?|\.[0-9]+)\s*[Gg][Ii]?[Bb])\s*$`
	NotNothing  = `[1-9]`
	MaxSeconds  = 1e9
	MaxBytes    = 1e12
)

// Quantity returns the schema of a value that is a number, or a text with a unit which matches both patterns.
func Quantity(title, pattern, and string, number Shape, examples ...any) Shape {
	number.Type = "number"
	text := &jsonschema.Schema{Type: "string", Pattern: pattern, AllOf: []*jsonschema.Schema{{Pattern: and}}}
	return &jsonschema.Schema{Title: title, Examples: examples, AnyOf: []*jsonschema.Schema{text, number}}
}

// Duration returns the shape of a time greater than zero.
func Duration() Shape {
	number := &jsonschema.Schema{ExclusiveMinimum: new(0.0), Maximum: new(MaxSeconds)}
	return Quantity("duration", SpanPattern, NotNothing, number, "30s", "5m")
}

// Delay returns the shape of a time of zero or more.
func Delay() Shape {
	number := &jsonschema.Schema{Minimum: new(0.0), Maximum: new(MaxSeconds)}
	return Quantity("duration", SpanPattern, "[0-9]", number, "500ms", "2s")
}

// ByteSize returns the shape of a number of bytes.
func ByteSize() Shape {
	number := &jsonschema.Schema{Minimum: new(1.0), Maximum: new(MaxBytes)}
	return Quantity("size", SizePattern, NotNothing, number, "64KB", "1MiB")
}

// List returns the shape of a list of such values.
func List(of Shape) Shape {
	s := &jsonschema.Schema{Type: "array", Items: of, Title: "list"}
	if name := plural[Words(of)]; name != "" {
		s.Title = "list of " + name
	}
	return s
}

// Filled returns the shape of a list with at least one value.
func Filled(of Shape) Shape {
	s := List(of)
	s.MinItems = new(1)
	return s
}

var plural = map[string]string{"text": "texts", "whole number": "whole numbers", "agent": "agents", "tool": "tools",
	"condition": "conditions"}

// MapOf returns the shape of a map whose names the author chooses.
func MapOf(of Shape) Shape {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: of, Title: "map"}
}

// Either returns the shape of a value that has one of several forms.
func Either(forms ...Shape) Shape { return &jsonschema.Schema{AnyOf: forms} }

// Entry is one name in a map.
type Entry struct {
	Name, Doc string
	Value     Shape
}

// Named returns the entry of a name, with its explanation.
func Named(name, doc string, value Shape) Entry { return Entry{name, doc, value} }

// Settings returns the shape of a map with known names, some of which are required.
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

// Nothing returns a shape that accepts no value.
func Nothing() Shape { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// By returns a reference to a shape in the schema's $defs.
func By(def string) Shape { return &jsonschema.Schema{Ref: "#/$defs/" + def} }

// Preset sets the default value of a shape.
func Preset(s Shape, v any) Shape {
	s.Default, _ = json.Marshal(v) // only values of this program
	return s
}

// alternatives returns the forms of a value in the order of the shape.
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

// Without returns the shape of a map that has one name and none of the others.
func Without(name string, others ...string) Shape {
	s := &jsonschema.Schema{Required: []string{name}, Properties: make(map[string]*jsonschema.Schema)}
	for _, other := range others {
		s.Properties[other] = Nothing()
	}
	return s
}

// Word returns the shape of a text that is not empty.
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

// Set adds a name to the shape of a map.
func Set(s Shape, name string, value Shape) {
	if s.Properties == nil {
		s.Properties = make(map[string]*jsonschema.Schema)
	}
	s.Properties[name] = value
	s.PropertyOrder = append(s.PropertyOrder, name)
}

// Words describes the forms of a value in words.
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
				if word := fmt.Sprint(v); !slices.Contains(words, word) { // 0 can be a number and a text
					words = append(words, word)
				}
			}
		case alt.Ref != "":
			words = append(words, Words(alt))
		case alt.Title != "" && !slices.Contains(words, alt.Title):
			words = append(words, alt.Title)
		}
	}
	if len(words) == 0 {
		return "any value"
	}
	return Join(words, "or")
}

// Choices returns the words of a value that is one of several words; nil if it can also be something else than a word
// or a map.
func Choices(s Shape) []string {
	var words []string
	for _, alt := range alternatives(s) {
		if alt.Ref != "" || alt.Enum == nil && alt.Title != "" {
			return nil
		}
		for _, v := range alt.Enum {
			word, ok := v.(string)
			if !ok {
				return nil
			}
			words = append(words, word)
		}
	}
	if len(words) < 2 {
		return nil
	}
	return words
}

// Join lists words with commas, and with a word such as or before the last one.
func Join[T ~string](words []T, last string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" " + last + " ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// refWords describes the values of the shapes in $defs.
var refWords = map[string]string{
	"condition": "expression or map", "answer": "JSON Schema", "step": "agent", "tool": "tool", "mcp": "map", "callback": "map",
}
