// SPDX-License-Identifier: Apache-2.0

package genaischema

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"
)

// Form says which part of JSON Schema a provider accepts for structured answers.
type Form int

// The forms.
const (
	// In Closed, objects have no properties that the schema does not name.
	Closed Form = iota
	// Bare is Closed without limits on values, such as minimum. The description states these limits in prose instead.
	// Anthropic's structured answers need Bare.
	Bare
)

// Functions returns the functions of a request's tools. It fails on tools that only Gemini has, such as Google Search.
func Functions(list []*genai.Tool) (all []*genai.FunctionDeclaration, err error) {
	for _, t := range list {
		if t == nil {
			continue
		}
		rest := *t
		rest.FunctionDeclarations = nil
		if !reflect.ValueOf(rest).IsZero() {
			own, err := members(rest)
			if err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("tool %s: only Gemini has it, and this model has only functions; "+
				"use a Gemini model or leave the tool out", strings.Join(slices.Sorted(maps.Keys(own)), ", "))
		}
		all = append(all, t.FunctionDeclarations...)
	}
	return all, nil
}

// Parameters returns the schema of a function's parameters. For a function without parameters it returns an object
// without properties. It fails if the schema does not marshal to a JSON object.
func Parameters(f *genai.FunctionDeclaration) (map[string]any, error) {
	var own any = &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	switch {
	case f.ParametersJsonSchema != nil:
		own = f.ParametersJsonSchema
	case f.Parameters != nil:
		own = Of(f.Parameters)
	}
	schema, err := members(own)
	if err != nil {
		return nil, fmt.Errorf("parameters of function %q: %w", f.Name, err)
	}
	return schema, nil
}

// Answer returns the schema that a config requires of an answer, in the given form; nil if the config requires none.
// A schema that is not genai's is returned unchanged. Answer fails if the schema does not marshal to a JSON object.
func Answer(c *genai.GenerateContentConfig, form Form) (map[string]any, error) {
	own := c.ResponseJsonSchema
	switch {
	case own != nil:
	case c.ResponseSchema != nil:
		s := Of(c.ResponseSchema)
		closeObject(s, form)
		own = s
	default:
		return nil, nil
	}
	schema, err := members(own)
	if err != nil {
		return nil, fmt.Errorf("response %w", err)
	}
	return schema, nil
}

// members returns the members of a value that marshals to an object. The members are not decoded, so that they keep their order.
func members(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("schema is not a JSON object: %w", err)
	}
	out := make(map[string]any, len(raw))
	for name, m := range raw {
		out[name] = m
	}
	return out, nil
}

// closeObject brings a schema and the schemas in it into a form.
func closeObject(s *jsonschema.Schema, form Form) {
	if s == nil {
		return
	}
	if s.Properties != nil {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	if form == Bare {
		for _, l := range limits(s) {
			s.Description = strings.TrimSpace(s.Description + " (" + l + ")")
		}
		s.MinItems, s.MaxItems, s.MinLength, s.MaxLength, s.MinProperties, s.MaxProperties = nil, nil, nil, nil, nil, nil
		s.Minimum, s.Maximum, s.Pattern = nil, nil, ""
	}
	closeObject(s.Items, form)
	for _, sub := range s.AnyOf {
		closeObject(sub, form)
	}
	for _, sub := range s.Properties {
		closeObject(sub, form)
	}
}

// limits returns a schema's limits on values in prose.
func limits(s *jsonschema.Schema) (words []string) {
	for _, l := range []struct {
		name string
		n    *int
	}{
		{"minItems", s.MinItems}, {"maxItems", s.MaxItems}, {"minLength", s.MinLength}, {"maxLength", s.MaxLength},
		{"minProperties", s.MinProperties}, {"maxProperties", s.MaxProperties},
	} {
		if l.n != nil {
			words = append(words, fmt.Sprintf("%s: %d", l.name, *l.n))
		}
	}
	if s.Minimum != nil {
		words = append(words, fmt.Sprintf("minimum: %v", *s.Minimum))
	}
	if s.Maximum != nil {
		words = append(words, fmt.Sprintf("maximum: %v", *s.Maximum))
	}
	if s.Pattern != "" {
		words = append(words, "pattern: "+s.Pattern)
	}
	return words
}

// Strict reports whether a schema meets OpenAI's rules for strict schemas, which are that every property is required
// and that no default or length is given.
func Strict(s *genai.Schema) bool {
	if s == nil {
		return true
	}
	if s.Default != nil || s.MinLength != nil || s.MaxLength != nil || s.MinProperties != nil ||
		s.MaxProperties != nil ||
		len(s.Required) != len(s.Properties) || !Strict(s.Items) {
		return false
	}
	for name, sub := range s.Properties {
		if !slices.Contains(s.Required, name) || !Strict(sub) {
			return false
		}
	}
	return !slices.ContainsFunc(s.AnyOf, func(sub *genai.Schema) bool { return !Strict(sub) })
}
