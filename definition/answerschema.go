// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"
)

// answerSchema is a schema in genai's words, in which models are asked; nil for
// nil. It knows what [reader.schema] lets pass.
func answerSchema(s *jsonschema.Schema) *genai.Schema {
	if s == nil {
		return nil
	}
	out := &genai.Schema{
		Type: genai.Type(strings.ToUpper(s.Type)), Title: s.Title, Description: s.Description, Format: s.Format, Pattern: s.Pattern,
		Minimum: s.Minimum, Maximum: s.Maximum, MinLength: wide(s.MinLength), MaxLength: wide(s.MaxLength),
		MinItems: wide(s.MinItems), MaxItems: wide(s.MaxItems), MinProperties: wide(s.MinProperties), MaxProperties: wide(s.MaxProperties),
		Items: answerSchema(s.Items), Required: slices.Clone(s.Required), PropertyOrdering: slices.Clone(s.PropertyOrder),
	}
	if len(s.Types) > 0 { // the second is null
		out.Type, out.Nullable = genai.Type(strings.ToUpper(s.Types[0])), new(true)
	}
	if s.Default != nil {
		_ = json.Unmarshal(s.Default, &out.Default) // it was marshalled
	}
	for _, v := range s.Enum {
		if v != nil { // nullable says it
			out.Enum = append(out.Enum, fmt.Sprint(v))
		}
	}
	for _, sub := range s.AnyOf {
		out.AnyOf = append(out.AnyOf, answerSchema(sub))
	}
	for name, sub := range s.Properties {
		if out.Properties == nil {
			out.Properties = make(map[string]*genai.Schema)
		}
		out.Properties[name] = answerSchema(sub)
	}
	return out
}

func wide(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}
