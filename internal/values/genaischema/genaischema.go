// SPDX-License-Identifier: Apache-2.0

// Package genaischema translates the schemas of a request into JSON Schema. The schemas are genai's, or any value
// that marshals to JSON Schema.
//
//	schema := genaischema.Of(agent.OutputSchema) // to check a value
//	parameters, err := genaischema.Parameters(declaration) // to tell a provider
package genaischema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"
)

// Of converts a genai schema to JSON Schema. It returns nil for nil.
func Of(s *genai.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	out := &jsonschema.Schema{
		Title: s.Title, Description: s.Description, Pattern: s.Pattern,
		Minimum: s.Minimum, Maximum: s.Maximum,
		MinLength: size(s.MinLength), MaxLength: size(s.MaxLength),
		MinItems: size(s.MinItems), MaxItems: size(s.MaxItems),
		MinProperties: size(s.MinProperties), MaxProperties: size(s.MaxProperties),
		Items: Of(s.Items), Required: s.Required,
	}
	kind := genai.Type(strings.ToUpper(string(s.Type))) // some callers write it in lower case
	nullable := s.Nullable != nil && *s.Nullable
	if kind != "" && kind != genai.TypeUnspecified {
		out.Type = strings.ToLower(string(kind))
		if nullable {
			out.Types, out.Type = []string{out.Type, "null"}, ""
		}
	}
	if s.Format != "enum" { // genai marks an enum of strings with this format
		out.Format = s.Format
	}
	if s.Default != nil {
		out.Default, _ = json.Marshal(s.Default) // a value from JSON
	}
	for _, e := range s.Enum {
		out.Enum = append(out.Enum, enumValue(kind, e))
	}
	if nullable && out.Enum != nil {
		out.Enum = append(out.Enum, nil)
	}
	for _, sub := range s.AnyOf {
		out.AnyOf = append(out.AnyOf, Of(sub))
	}
	if nullable && out.AnyOf != nil {
		out.AnyOf = append(out.AnyOf, &jsonschema.Schema{Type: "null"})
	}
	if kind == genai.TypeObject || len(s.Properties) > 0 {
		out.Properties, out.PropertyOrder = make(map[string]*jsonschema.Schema), propertyOrder(s)
	}
	for name, sub := range s.Properties {
		out.Properties[name] = Of(sub)
	}
	return out
}

func size(n *int64) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}

// enumValue returns the value of an enum in its own type; genai writes all of them as strings.
func enumValue(t genai.Type, text string) any {
	if t == genai.TypeString || t == "" || t == genai.TypeUnspecified {
		return text
	}
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	return v
}

// propertyOrder returns the order in which a schema's properties are written. Models fill in properties in this
// order, so that reasons can come before scores.
func propertyOrder(s *genai.Schema) []string {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	place := func(name string) int {
		for _, order := range [][]string{s.PropertyOrdering, s.Required} {
			if i := slices.Index(order, name); i >= 0 {
				return i
			}
		}
		return len(s.Properties) + len(s.PropertyOrdering)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return names
}
