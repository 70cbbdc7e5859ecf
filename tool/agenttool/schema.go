// SPDX-License-Identifier: Apache-2.0

package agenttool

import (
	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// inputSchema returns the schema of an agent's arguments; nil means text. It refuses unknown names,
// because a misspelled argument would otherwise be missing.
func inputSchema(a agent.Agent) *jsonschema.Schema {
	has, ok := a.(interface{ InputSchema() *genai.Schema })
	if !ok || has.InputSchema() == nil {
		return nil
	}
	s := functiontool.SchemaOf(has.InputSchema())
	s.AdditionalProperties = nothing()
	return s
}

// outputSchema returns the schema of an agent's answer; nil means text.
func outputSchema(a agent.Agent) *jsonschema.Schema {
	has, ok := a.(interface{ OutputSchema() *genai.Schema })
	if !ok {
		return nil
	}
	return functiontool.SchemaOf(has.OutputSchema())
}

// object describes an object with one text.
func object(key, description string) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", Required: []string{key}, AdditionalProperties: nothing(),
		Properties: map[string]*jsonschema.Schema{key: {Type: "string", Description: description}},
	}
}

// nothing is a schema that no value fits.
func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }
