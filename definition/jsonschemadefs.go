// SPDX-License-Identifier: Apache-2.0

package definition

import "github.com/google/jsonschema-go/jsonschema"

// stepSchema is an agent, or the file that it is in.
func stepSchema() shape {
	s := settings([]entry{{"ref", "the file of the agent, in the same folder or below", text()}}, "ref")
	return &jsonschema.Schema{If: &jsonschema.Schema{Type: "object", Required: []string{"ref"}}, Then: s, Else: by("agent"), Type: "object"}
}

// conditionKeys are what a condition can be, each alone or with for.
var conditionKeys = []string{"when", "any", "all", "not"}

// conditionSchema is an expression, a phrase that somebody says, or a
// combination.
func conditionSchema() shape {
	running := func() entry { return entry{"for", "how many iterations running", whole(0)} }
	values := map[string]entry{
		"when": {"when", "an expression", expression()},
		"any":  {"any", "one of them holds", filled(by("condition"))},
		"all":  {"all", "all of them hold", filled(by("condition"))},
		"not":  {"not", "it does not hold", by("condition")},
	}
	s := either(expression(), settings([]entry{
		{"text", "what the step says, and nothing else", anyText()}, {"of", "the step that says it", text()}, running(),
	}, "text", "of"))
	for _, key := range conditionKeys {
		s.AnyOf = append(s.AnyOf, settings([]entry{values[key], running()}, key))
	}
	return s
}

// toolSchema is the name of a tool, or one that is described.
func toolSchema() shape {
	name := text()
	name.Examples = []any{"exit_loop"}
	s := &jsonschema.Schema{Type: "object", Required: []string{"command"}}
	s = &jsonschema.Schema{If: s, Then: by("tool.command"), Else: either(
		settings([]entry{{"func", "the name of a Go function", text()}}, "func"),
		settings([]entry{{"agent", "an agent, or the file that it is in", by("step")}}, "agent"),
		settings([]entry{{"mcp", "a server of tools", by("mcp")}}, "mcp"),
	)}
	return &jsonschema.Schema{If: &jsonschema.Schema{Type: "object"}, Then: s, Else: name}
}

// answerShape is the part of JSON Schema that every provider can be told.
func answerShape() shape {
	kind := func() shape { return oneOf(schemaTypes...) }
	self := func() shape { return by("answer") }
	size := func() shape { return whole(0) }
	values := map[string]shape{
		"type": either(kind(), list(kind())), "title": text(), "description": text(), "format": text(), "pattern": text(),
		"enum": filled(listed()), "const": listed(), "nullable": yesNo(), "anyOf": filled(self()), "items": self(), "properties": needed(mapOf(self())),
		"required": list(text()), "additionalProperties": {Enum: []any{false}},
		"minimum": number(), "maximum": number(), "examples": {Type: "array"},
		"minLength": size(), "maxLength": size(), "minItems": size(), "maxItems": size(), "minProperties": size(), "maxProperties": size(),
	}
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: nothing(), Title: "JSON Schema"}
	for _, word := range schemaWords {
		v := values[word]
		if v == nil {
			v = &jsonschema.Schema{}
		}
		set(s, word, v)
	}
	for _, word := range []string{"type", "properties", "items", "anyOf", "enum", "const"} {
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Required: []string{word}})
	}
	s.AllOf = append(s.AllOf, listedTypes()...)
	for _, of := range [][2]string{{"array", "items"}, {"object", "properties"}} {
		is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"type": {Enum: []any{of[0]}}}, Required: []string{"type"}}
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: is, Then: &jsonschema.Schema{Required: []string{of[1]}}})
	}
	return s
}

// listed is a value of enum or const.
func listed() shape { return &jsonschema.Schema{Types: []string{"string", "number"}} }

// needed is a map that is not empty.
func needed(s shape) shape {
	s.MinProperties = new(1)
	return s
}

// listedTypes say what enum and const can be with each type: with one that is no
// text and no number there is none, and without one it is text.
func listedTypes() []*jsonschema.Schema {
	values := func(v shape) shape {
		return &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"enum": {Items: v}, "const": v}}
	}
	none := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"enum": nothing(), "const": nothing()}}
	var all []*jsonschema.Schema
	for _, t := range schemaTypes {
		then := none
		if t == "string" || t == "integer" || t == "number" {
			then = values(&jsonschema.Schema{Type: t})
		}
		one := &jsonschema.Schema{Enum: []any{t}}
		several := &jsonschema.Schema{Type: "array", Contains: one}
		if t == "null" { // beside another one it says that null is allowed
			several = nothing()
		}
		is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"type": {AnyOf: []*jsonschema.Schema{one, several}}}, Required: []string{"type"}}
		all = append(all, &jsonschema.Schema{If: is, Then: then})
	}
	untyped := &jsonschema.Schema{Required: []string{"anyOf"}, Not: &jsonschema.Schema{Required: []string{"type"}}}
	all = append(all, &jsonschema.Schema{If: untyped, Then: none})
	return append(all, &jsonschema.Schema{If: &jsonschema.Schema{Required: []string{"type"}}, Else: values(&jsonschema.Schema{Type: "string"})})
}
