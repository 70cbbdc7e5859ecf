// SPDX-License-Identifier: Apache-2.0

package genaischema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"
)

// From converts a JSON Schema with the keywords that genai has. It returns nil for nil.
func From(s *jsonschema.Schema) *genai.Schema {
	if s == nil {
		return nil
	}
	out := &genai.Schema{
		Type: genai.Type(strings.ToUpper(s.Type)), Title: s.Title, Description: s.Description, Format: s.Format,
		Pattern: s.Pattern,
		Minimum: s.Minimum, Maximum: s.Maximum, MinLength: wide(s.MinLength), MaxLength: wide(s.MaxLength),
		MinItems: wide(s.MinItems), MaxItems: wide(s.MaxItems), MinProperties: wide(s.MinProperties),
		MaxProperties: wide(s.MaxProperties),
		Items:         From(s.Items), Required: slices.Clone(s.Required),
		PropertyOrdering: slices.Clone(s.PropertyOrder),
	}
	for _, t := range s.Types { // one, and null
		if t == "null" {
			out.Nullable = new(true)
		} else {
			out.Type = genai.Type(strings.ToUpper(t))
		}
	}
	if s.Default != nil {
		_ = json.Unmarshal(s.Default, &out.Default) // the value was marshalled by this program
	}
	for _, v := range s.Enum {
		if v != nil { // Nullable covers null
			out.Enum = append(out.Enum, fmt.Sprint(v))
		}
	}
	for _, sub := range s.AnyOf {
		out.AnyOf = append(out.AnyOf, From(sub))
	}
	for name, sub := range s.Properties {
		if out.Properties == nil {
			out.Properties = make(map[string]*genai.Schema)
		}
		out.Properties[name] = From(sub)
	}
	return out
}

func wide(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}
