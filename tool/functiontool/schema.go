// SPDX-License-Identifier: Apache-2.0

package functiontool

import (
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// empty reports whether a schema describes objects without any property.
func empty(s *jsonschema.Schema) bool {
	return s.Type == "object" && len(s.Properties) == 0 && isClosed(s) && len(s.PatternProperties) == 0
}

// isClosed reports whether an object may have only the properties that the schema
// names.
func isClosed(s *jsonschema.Schema) bool {
	return s.AdditionalProperties != nil && reflect.DeepEqual(s.AdditionalProperties,
		&jsonschema.Schema{Not: &jsonschema.Schema{}})
}

// types lists the JSON types that a schema admits; empty is all.
func types(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

// admitsNull reports whether null is, as far as the type says, a value.
func admitsNull(s *jsonschema.Schema) bool {
	all := types(s)
	return len(all) == 0 || slices.Contains(all, "null")
}
