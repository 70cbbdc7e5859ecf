// SPDX-License-Identifier: Apache-2.0

// Package jsonschema turns the schemas of a request, which are genai's or
// anything that marshals to JSON Schema, into JSON Schema for the providers
// that speak it.
//
//	schema := jsonschema.Of(decl.Parameters, jsonschema.Plain)
package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"
)

// Form is how much of JSON Schema a provider takes in a place.
type Form int

// The forms.
const (
	// Plain is for the parameters of functions.
	Plain Form = iota
	// Closed is for structured answers: objects are closed to properties that
	// they do not name.
	Closed
	// Bare is Closed without limits on values, such as minimum; they are put
	// in words into the description. Anthropic's structured answers need it.
	Bare
)

// Of returns a genai schema as JSON Schema; nil for nil.
func Of(s *genai.Schema, form Form) map[string]any {
	if s == nil {
		return nil
	}
	out := map[string]any{}
	var kind any = strings.ToLower(string(s.Type))
	nullable := s.Nullable != nil && *s.Nullable
	if s.Type == genai.TypeUnspecified || s.Type == "" {
		kind = nil
	} else if nullable {
		kind = []any{kind, "null"}
	}
	set(out, "type", kind, kind != nil)
	set(out, "title", s.Title, s.Title != "")
	set(out, "format", s.Format, s.Format != "" && s.Format != "enum")
	set(out, "default", s.Default, s.Default != nil)
	set(out, "items", Of(s.Items, form), s.Items != nil)
	if len(s.Enum) > 0 {
		out["enum"] = enum(s, nullable)
	}
	if len(s.AnyOf) > 0 {
		var any []any
		for _, sub := range s.AnyOf {
			any = append(any, Of(sub, form))
		}
		out["anyOf"] = any
	}
	if s.Type == genai.TypeObject || len(s.Properties) > 0 {
		out["properties"] = propertiesOf(s, form)
		set(out, "required", s.Required, len(s.Required) > 0)
		set(out, "additionalProperties", false, form != Plain)
	}
	description := s.Description
	for _, l := range limits(s) {
		if form == Bare {
			description = strings.TrimSpace(fmt.Sprintf("%s (%s: %v)", description, l.name, l.value))
		} else {
			out[l.name] = l.value
		}
	}
	set(out, "description", description, description != "")
	return out
}

func set(m map[string]any, key string, value any, ok bool) {
	if ok {
		m[key] = value
	}
}

func enum(s *genai.Schema, nullable bool) []any {
	var out []any
	for _, v := range s.Enum {
		// genai writes enums of numbers as strings.
		if (s.Type == genai.TypeInteger || s.Type == genai.TypeNumber) && json.Valid([]byte(v)) {
			out = append(out, json.RawMessage(v))
			continue
		}
		out = append(out, v)
	}
	if nullable {
		out = append(out, nil)
	}
	return out
}

type limit struct {
	name  string
	value any
}

func limits(s *genai.Schema) []limit {
	var out []limit
	for _, l := range []struct {
		name string
		n    *int64
	}{
		{"minItems", s.MinItems}, {"maxItems", s.MaxItems}, {"minLength", s.MinLength}, {"maxLength", s.MaxLength},
		{"minProperties", s.MinProperties}, {"maxProperties", s.MaxProperties},
	} {
		if l.n != nil {
			out = append(out, limit{l.name, *l.n})
		}
	}
	if s.Minimum != nil {
		out = append(out, limit{"minimum", *s.Minimum})
	}
	if s.Maximum != nil {
		out = append(out, limit{"maximum", *s.Maximum})
	}
	if s.Pattern != "" {
		out = append(out, limit{"pattern", s.Pattern})
	}
	return out
}

// properties keeps its order when it is marshalled: models fill in properties
// in the order in which they are given, so that reasons can come before scores.
type properties struct {
	names   []string
	schemas map[string]any
}

func propertiesOf(s *genai.Schema, form Form) properties {
	p := properties{schemas: map[string]any{}}
	for name, sub := range s.Properties {
		p.schemas[name] = Of(sub, form)
		p.names = append(p.names, name)
	}
	place := func(name string) int {
		for _, order := range [][]string{s.PropertyOrdering, s.Required} {
			if i := slices.Index(order, name); i >= 0 {
				return i
			}
		}
		return len(s.Properties) + len(s.PropertyOrdering)
	}
	slices.SortFunc(p.names, func(a, b string) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return p
}

// MarshalJSON writes the properties in order.
func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range p.names {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p.schemas[name])
		if err != nil {
			return nil, err
		}
		b.Write(append(append(key, ':'), value...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Any returns a JSON Schema that comes as any value that marshals to an object.
// Its members keep their order, as they are not decoded.
func Any(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, fmt.Errorf("schema is not a JSON object: %w", err)
	}
	out := make(map[string]any, len(members))
	for name, m := range members {
		out[name] = m
	}
	return out, nil
}

// Parameters returns the schema of a function's parameters; an object without
// properties if it has none.
func Parameters(f *genai.FunctionDeclaration) (map[string]any, error) {
	switch {
	case f.ParametersJsonSchema != nil:
		schema, err := Any(f.ParametersJsonSchema)
		if err != nil {
			return nil, fmt.Errorf("parameters of function %q: %w", f.Name, err)
		}
		return schema, nil
	case f.Parameters != nil:
		return Of(f.Parameters, Plain), nil
	}
	return map[string]any{"type": "object", "properties": map[string]any{}}, nil
}

// Answer returns the schema that a config asks an answer to have, in a form;
// nil if it asks for none.
func Answer(c *genai.GenerateContentConfig, form Form) (map[string]any, error) {
	if c.ResponseJsonSchema != nil {
		schema, err := Any(c.ResponseJsonSchema)
		if err != nil {
			return nil, fmt.Errorf("response %w", err)
		}
		return schema, nil
	}
	return Of(c.ResponseSchema, form), nil
}

// Strict reports whether a closed schema keeps to what OpenAI demands of strict
// ones: every property is required, and no default or length is given.
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
