// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/genaischema"
)

// OutputOf returns the schema of a Go type for [Config.OutputSchema]:
//
//	type Review struct {
//		Reason string `json:"reason" jsonschema:"what is still missing"`
//		Score  int    `json:"score"`
//	}
//	critic, err := llmagent.New(llmagent.Config{Name: "critic", OutputSchema: llmagent.OutputOf[Review](), …})
//
// The model fills in the fields in the order of the struct. A field is required unless its tag has omitempty or
// omitzero, and may be null if it is a pointer. The tag jsonschema describes a field. OutputOf panics for a type
// that a model cannot be asked for, such as a map, a function, or a type that contains itself.
func OutputOf[T any]() *genai.Schema {
	of := reflect.TypeFor[T]()
	s, err := jsonschema.ForType(of, nil)
	if err == nil {
		err = checkOutput(s, of.String())
	}
	if err != nil {
		panic(fmt.Sprintf("llmagent.OutputOf[%s]: %v", of, err))
	}
	return genaischema.From(s)
}

// checkOutput returns an error for objects without fixed properties. It removes null from the types of lists, because a
// model writes an empty list instead.
func checkOutput(s *jsonschema.Schema, at string) error {
	if slices.Contains(s.Types, "array") {
		s.Type, s.Types = "array", nil
	}
	if (s.Type == "object" || slices.Contains(s.Types, "object")) && len(s.Properties) == 0 {
		return fmt.Errorf("%s has no fixed fields; use a struct, or a list of structs with a name and a value", at)
	}
	if s.Items != nil {
		return checkOutput(s.Items, at+"[]")
	}
	for _, name := range s.PropertyOrder {
		if err := checkOutput(s.Properties[name], at+"."+name); err != nil {
			return err
		}
	}
	return nil
}
