// SPDX-License-Identifier: Apache-2.0

package functiontool

import (
	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/genaischema"
)

// Shape checks values against a schema, and reports what is wrong in a text that a model can
// act on.
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

// Check returns what is wrong with a value that was read from JSON, a line for each problem, or
// nil if the value fits. It removes optional properties that are null from v, as models write null
// for a missing value.
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

// SchemaOf converts a genai schema to JSON Schema. It returns nil for nil.
func SchemaOf(s *genai.Schema) *jsonschema.Schema { return genaischema.Of(s) }
