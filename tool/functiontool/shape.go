// SPDX-License-Identifier: Apache-2.0

package functiontool

import (
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"
)

// Shape checks values against a schema and says what is wrong in words that a model can act on.
type Shape struct {
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// NewShape returns the shape that a schema describes. It fails on an invalid schema, such as one
// with an invalid pattern, an unresolved reference, or a default that does not fit.
func NewShape(schema *jsonschema.Schema) (*Shape, error) {
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, err
	}
	return &Shape{schema: schema, resolved: resolved}, nil
}

// Check lists what is wrong with a value that was read from JSON, a line for each problem; nil if
// it fits. It removes optional properties that are null from v, as models write null for a missing
// value.
func (s *Shape) Check(v any) []string {
	var c checker
	return s.check(&c, v)
}

func (s *Shape) check(c *checker, v any) []string {
	c.value(s.schema, v, "")
	if len(c.problems) == 0 {
		// What the checker does not look at, such as patterns and alternatives.
		if err := s.resolved.Validate(v); err != nil {
			c.problems = []string{err.Error()}
		}
	}
	return c.problems
}

// SchemaOf converts a genai schema to JSON Schema; nil for nil.
func SchemaOf(s *genai.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	out := &jsonschema.Schema{
		Title: s.Title, Description: s.Description, Pattern: s.Pattern,
		Minimum: s.Minimum, Maximum: s.Maximum,
		MinLength: size(s.MinLength), MaxLength: size(s.MaxLength),
		MinItems: size(s.MinItems), MaxItems: size(s.MaxItems),
		MinProperties: size(s.MinProperties), MaxProperties: size(s.MaxProperties),
		Items: SchemaOf(s.Items), Required: s.Required, PropertyOrder: s.PropertyOrdering,
	}
	kind := genai.Type(strings.ToUpper(string(s.Type))) // some write it in small letters
	nullable := s.Nullable != nil && *s.Nullable
	if kind != "" && kind != genai.TypeUnspecified {
		out.Type = strings.ToLower(string(kind))
		if nullable {
			out.Types, out.Type = []string{out.Type, "null"}, ""
		}
	}
	if s.Format != "enum" { // genai's word for an enum of strings
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
		out.AnyOf = append(out.AnyOf, SchemaOf(sub))
	}
	if nullable && out.AnyOf != nil {
		out.AnyOf = append(out.AnyOf, &jsonschema.Schema{Type: "null"})
	}
	for name, sub := range s.Properties {
		if out.Properties == nil {
			out.Properties = make(map[string]*jsonschema.Schema)
		}
		out.Properties[name] = SchemaOf(sub)
	}
	return out
}

func size(n *int64) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}

// enumValue is an enum's value, which genai writes as a string whatever it is.
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
