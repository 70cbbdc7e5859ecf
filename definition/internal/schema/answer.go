// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"

	"github.com/google/jsonschema-go/jsonschema"
)

// Types lists the types of JSON Schema, and file and folder, which are strings with a path inside the run's root.
var Types = []string{"object", "array", "string", "integer", "number", "boolean", "null", "file", "folder"}

// Keywords lists the keywords that every provider accepts.
var Keywords = []string{
	"type", "title", "description", "format", "default", "enum", "const", "nullable", "anyOf",
	"properties", "required", "additionalProperties", "minProperties", "maxProperties", "items", "minItems", "maxItems",
	"minimum", "maximum", "minLength", "maxLength", "pattern", "example", "examples", "$schema", "$id", "$comment",
}

// OtherKeywords lists keywords of JSON Schema that some providers reject, with the advice what to write instead.
var OtherKeywords = map[string]string{
	"oneOf": "write anyOf", "allOf": "write what is in it as one schema", "not": "", "if": "", "then": "", "else": "",
	"$ref": "write the schema where it is used", "$defs": "write the schema where it is used", "definitions": "write the schema where it is used",
	"exclusiveMinimum": "write minimum", "exclusiveMaximum": "write maximum", "multipleOf": "", "uniqueItems": "",
	"prefixItems": "write items", "additionalItems": "", "contains": "", "minContains": "", "maxContains": "", "unevaluatedItems": "",
	"patternProperties": "name the properties", "propertyNames": "name the properties", "unevaluatedProperties": "", "dependentRequired": "", "dependentSchemas": "",
	"contentEncoding": "", "contentMediaType": "", "contentSchema": "", "deprecated": "", "readOnly": "", "writeOnly": "",
}

// Answer returns the shape of a schema that every provider accepts.
func Answer() Shape {
	kind := func() Shape { return OneOf(Types...) }
	self := func() Shape { return By("answer") }
	size := func() Shape { return Whole(0) }
	values := map[string]Shape{
		"type": Either(kind(), List(kind())), "title": Text(), "description": Text(), "format": Text(), "pattern": Text(),
		"enum": Filled(scalar()), "const": scalar(), "nullable": YesNo(),
		"anyOf": Filled(self()), "items": self(), "properties": requiredShape(MapOf(self())),
		"required": List(Text()), "additionalProperties": {Enum: []any{false}},
		"minimum": Number(), "maximum": Number(), "examples": {Type: "array"},
		"minLength": size(), "maxLength": size(), "minItems": size(), "maxItems": size(), "minProperties": size(), "maxProperties": size(),
	}
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: Nothing(), Title: "JSON Schema"}
	for _, word := range Keywords {
		Set(s, word, cmp.Or(values[word], &jsonschema.Schema{}))
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

// scalar returns the shape of a value of enum or const.
func scalar() Shape { return &jsonschema.Schema{Types: []string{"string", "number"}} }

// requiredShape returns the shape of a map that is not empty.
func requiredShape(s Shape) Shape {
	s.MinProperties = new(1)
	return s
}

// listedTypes returns the rules for enum and const with each type. They must be strings or numbers of the type; other
// types allow neither keyword, and without a type they must be strings.
func listedTypes() []*jsonschema.Schema {
	values := func(v Shape) Shape {
		return &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"enum": {Items: v}, "const": v}}
	}
	none := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"enum": Nothing(), "const": Nothing()}}
	var all []*jsonschema.Schema
	for _, t := range Types {
		then := none
		switch t {
		case "file", "folder":
			then = values(&jsonschema.Schema{Type: "string"})
		case "string", "integer", "number":
			then = values(&jsonschema.Schema{Type: t})
		}
		one := &jsonschema.Schema{Enum: []any{t}}
		several := &jsonschema.Schema{Type: "array", Contains: one}
		if t == "null" { // in a list of types it only allows null
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
