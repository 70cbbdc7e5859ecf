// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"github.com/google/jsonschema-go/jsonschema"
)

func shareShape() shape {
	return &jsonschema.Schema{
		Title: "share", Examples: []any{"10%", 0.1},
		AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: `^\s*(0*[0-9]{0,2}(\.[0-9]*)?\s*%|0*\.[0-9]+)\s*$`, AllOf: []*jsonschema.Schema{{Pattern: notNothing}}},
			{Type: "number", ExclusiveMinimum: new(0.0), ExclusiveMaximum: new(1.0)},
		},
	}
}

// inputKinds are what JSON Schema calls the types of inputs.
var inputKinds = map[InputType]string{
	InputString: "string", InputInt: "integer", InputNumber: "number", InputBool: "boolean", InputList: "array", InputMap: "object", InputPath: "string",
}

// inputShape is {type, default, description}, or a default alone.
func inputShape() shape {
	long := settings([]entry{
		{"type", "type of the value; string if there is no default", oneOf(inputTypes...)},
		{"default", "value if the run gives none; without a default the input is required", &jsonschema.Schema{}},
		{"description", "text that explains the input", text()},
	})
	for _, name := range inputTypes {
		is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"type": {Enum: []any{name}}}, Required: []string{"type"}}
		fits := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"default": {Types: []string{inputKinds[InputType(name)], "null"}}}}
		long.AllOf = append(long.AllOf, &jsonschema.Schema{If: is, Then: fits})
	}
	return either(&jsonschema.Schema{Not: &jsonschema.Schema{Type: "object"}, Title: "value"}, long)
}

// mcpShape is a server of tools. Whether it is started or called, it is one of them.
func mcpShape() shape {
	variables := list(text())
	variables.Items.Pattern = `^[A-Za-z_][A-Za-z0-9_]*(=|$)`
	s := settings([]entry{
		{"command", "the program to start, with its arguments", filled(anyText())},
		{"env", "its environment: NAME passes a variable on, NAME=value sets it; or a map", either(variables, mapOf(anyText()))},
		{"url", "where a server runs already", text()},
		{"headers", "request headers", mapOf(anyText())},
		{"only", "the tools that the model is given; all if left out", unique(filled(text()))},
		{"prefix", "what is put before the names that the model sees", text()},
		{"confirm", "the tools that a person has to consent to, or true for all", either(yesNo(), unique(filled(text())))},
		{"effect", "what calls do to the world outside; what the server says if left out", oneOf(effects...)},
	})
	s.OneOf = []*jsonschema.Schema{without("command", "headers"), without("url", "env")}
	return s
}

// without is a map that has one name and not another.
func without(name, other string) shape {
	return &jsonschema.Schema{Required: []string{name}, Properties: map[string]*jsonschema.Schema{other: nothing()}}
}

func unique(s shape) shape {
	s.UniqueItems = true
	return s
}
