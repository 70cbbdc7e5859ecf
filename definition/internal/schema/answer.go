// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"
)

// Types are what JSON Schema calls its types, and file: a string that is a path inside the run's root.
var Types = []string{"object", "array", "string", "integer", "number", "boolean", "null", "file"}

// Keywords are the keywords that every provider can be told.
var Keywords = []string{
	"type", "title", "description", "format", "default", "enum", "const", "nullable", "anyOf",
	"properties", "required", "additionalProperties", "minProperties", "maxProperties", "items", "minItems", "maxItems",
	"minimum", "maximum", "minLength", "maxLength", "pattern", "example", "examples", "$schema", "$id", "$comment",
}

// OtherKeywords are keywords of JSON Schema that not every provider takes,
// and what to write in their place.
var OtherKeywords = map[string]string{
	"oneOf": "write anyOf", "allOf": "write what is in it as one schema", "not": "", "if": "", "then": "", "else": "",
	"$ref": "write the schema where it is used", "$defs": "write the schema where it is used", "definitions": "write the schema where it is used",
	"exclusiveMinimum": "write minimum", "exclusiveMaximum": "write maximum", "multipleOf": "", "uniqueItems": "",
	"prefixItems": "write items", "additionalItems": "", "contains": "", "minContains": "", "maxContains": "", "unevaluatedItems": "",
	"patternProperties": "name the properties", "propertyNames": "name the properties", "unevaluatedProperties": "", "dependentRequired": "", "dependentSchemas": "",
	"contentEncoding": "", "contentMediaType": "", "contentSchema": "", "deprecated": "", "readOnly": "", "writeOnly": "",
}

// Genai is a schema in genai's words, in which models are asked; nil for
// nil. It knows what a definition lets pass.
func Genai(s *jsonschema.Schema) *genai.Schema {
	if s == nil {
		return nil
	}
	out := &genai.Schema{
		Type: genai.Type(strings.ToUpper(s.Type)), Title: s.Title, Description: s.Description, Format: s.Format,
		Pattern: s.Pattern,
		Minimum: s.Minimum, Maximum: s.Maximum, MinLength: wide(s.MinLength), MaxLength: wide(s.MaxLength),
		MinItems: wide(s.MinItems), MaxItems: wide(s.MaxItems), MinProperties: wide(s.MinProperties),
		MaxProperties: wide(s.MaxProperties),
		Items:         Genai(s.Items), Required: slices.Clone(s.Required),
		PropertyOrdering: slices.Clone(s.PropertyOrder),
	}
	if len(s.Types) > 0 { // the second is null
		out.Type, out.Nullable = genai.Type(strings.ToUpper(s.Types[0])), new(true)
	}
	if s.Default != nil {
		_ = json.Unmarshal(s.Default, &out.Default) // it was marshalled
	}
	for _, v := range s.Enum {
		if v != nil { // nullable says it
			out.Enum = append(out.Enum, fmt.Sprint(v))
		}
	}
	for _, sub := range s.AnyOf {
		out.AnyOf = append(out.AnyOf, Genai(sub))
	}
	for name, sub := range s.Properties {
		if out.Properties == nil {
			out.Properties = make(map[string]*genai.Schema)
		}
		out.Properties[name] = Genai(sub)
	}
	return out
}

func wide(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}

// Answer is the part of JSON Schema that every provider can be told.
func Answer() Shape {
	kind := func() Shape { return OneOf(Types...) }
	self := func() Shape { return By("answer") }
	size := func() Shape { return Whole(0) }
	values := map[string]Shape{
		"type": Either(kind(), List(kind())), "title": Text(), "description": Text(), "format": Text(), "pattern": Text(),
		"enum": Filled(listed()), "const": listed(), "nullable": YesNo(),
		"anyOf": Filled(self()), "items": self(), "properties": needed(MapOf(self())),
		"required": List(Text()), "additionalProperties": {Enum: []any{false}},
		"minimum": Number(), "maximum": Number(), "examples": {Type: "array"},
		"minLength": size(), "maxLength": size(), "minItems": size(), "maxItems": size(), "minProperties": size(), "maxProperties": size(),
	}
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: Nothing(), Title: "JSON Schema"}
	for _, word := range Keywords {
		v := values[word]
		if v == nil {
			v = &jsonschema.Schema{}
		}
		Set(s, word, v)
	}
	for _, word := range []string{"type", "properties", "items", "anyOf", "enum", "const"} {
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Required: []string{word}})
	}
	s.AllOf = append(s.AllOf, listedTypes()...)
	for _, of := range [][2]string{{"array", "items"}, {"object", "properties"}} {
		is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"type": {Enum: []any{of[0]}}},
			Required: []string{"type"}}
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: is, Then: &jsonschema.Schema{Required: []string{of[1]}}})
	}
	return s
}

// listed is a value of enum or const.
func listed() Shape { return &jsonschema.Schema{Types: []string{"string", "number"}} }

// needed is a map that is not empty.
func needed(s Shape) Shape {
	s.MinProperties = new(1)
	return s
}

// listedTypes say what enum and const can be with each type: with one that is no
// text and no number there is none, and without one it is text.
func listedTypes() []*jsonschema.Schema {
	values := func(v Shape) Shape {
		return &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"enum": {Items: v}, "const": v}}
	}
	none := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"enum": Nothing(), "const": Nothing()}}
	var all []*jsonschema.Schema
	for _, t := range Types {
		then := none
		switch t {
		case "file":
			then = values(&jsonschema.Schema{Type: "string"})
		case "string", "integer", "number":
			then = values(&jsonschema.Schema{Type: t})
		}
		one := &jsonschema.Schema{Enum: []any{t}}
		several := &jsonschema.Schema{Type: "array", Contains: one}
		if t == "null" { // beside another one it says that null is allowed
			several = Nothing()
		}
		is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"type": {AnyOf: []*jsonschema.Schema{one,
			several}}}, Required: []string{"type"}}
		all = append(all, &jsonschema.Schema{If: is, Then: then})
	}
	untyped := &jsonschema.Schema{Required: []string{"anyOf"}, Not: &jsonschema.Schema{Required: []string{"type"}}}
	all = append(all, &jsonschema.Schema{If: untyped, Then: none})
	return append(all, &jsonschema.Schema{If: &jsonschema.Schema{Required: []string{"type"}},
		Else: values(&jsonschema.Schema{Type: "string"})})
}
