// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition/internal/source"
)

// whole looks at how the keywords go together.
func (s *schemaReader) whole() {
	out := &s.out
	if s.at["const"] != nil && s.at["enum"] != nil {
		s.report(s.src.Of(s.node), CodeConflict, "%s has const and enum; give one of them", s.what)
		return
	}
	if out.Type == "" {
		out.Type = s.meant()
	}
	here := s.src.Of(s.node)
	switch {
	case out.Type == "" && out.AnyOf == nil:
		s.report(here, CodeMissing, "%s needs a type", s.what).Hint = "the types are " + strings.Join(schemaTypes, ", ")
	case out.Type == "array" && out.Items == nil:
		s.report(here, CodeMissing, "%s is an array and needs items", s.what).Hint = "write items: {type: string}, say"
	case out.Type == "object" && len(out.Properties) == 0:
		s.report(here, CodeMissing, "%s is an object and needs properties", s.what)
	}
	for i, name := range out.Required {
		if _, ok := out.Properties[name]; !ok {
			s.report(s.src.Of(source.Deref(s.at["required"].Content[i])), CodeValue, "%s requires %q, which is not among its properties", s.what, name).
				Hint = didYouMean(name, slices.Sorted(slices.Values(out.PropertyOrder)), "%q", "")
		}
	}
	s.values()
	if s.nullable && out.Type != "" && out.Type != "null" {
		out.Type, out.Types = "", []string{out.Type, "null"}
		if out.Enum != nil {
			out.Enum = append(out.Enum, nil)
		}
	}
	s.fallback()
}

// fallback looks whether the default is a value of the schema.
func (s *schemaReader) fallback() {
	if s.out.Default == nil {
		return
	}
	resolved, err := s.out.CloneSchemas().Resolve(nil)
	if err != nil {
		return
	}
	var v any
	if err := json.Unmarshal(s.out.Default, &v); err == nil && resolved.Validate(v) != nil {
		s.report(s.src.Of(s.at["default"]), CodeValue, "%s: the default is not what the schema describes", s.what)
	}
}

// meant is the type that goes without saying.
func (s *schemaReader) meant() string {
	_, text := first(s.out.Enum).(string)
	switch {
	case s.out.AnyOf != nil:
	case s.out.Properties != nil:
		return "object"
	case s.out.Items != nil:
		return "array"
	case text:
		return "string"
	}
	return ""
}

func first(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// values looks whether the values of enum are of the type. That null is one is
// said by the type.
func (s *schemaReader) values() {
	for i, v := range s.out.Enum {
		f, ok := v.(float64)
		n, whole := v.(int64)
		if whole {
			f, ok = float64(n), true
			s.out.Enum[i] = f // as in JSON
		}
		_, text := v.(string)
		if text && s.out.Type == "string" || ok && s.out.Type == "number" || ok && f == math.Trunc(f) && s.out.Type == "integer" {
			continue
		}
		at, hint := s.at["const"], ""
		if list := s.at["enum"]; list != nil {
			at = source.Deref(list.Content[i])
		}
		switch {
		case v == nil:
			hint = "write nullable: true in its place"
		case !slices.Contains([]string{"string", "number", "integer"}, s.out.Type):
			s.report(s.src.Of(at), CodeValue, "%s: only strings and numbers can be listed", s.what)
			return
		}
		s.report(s.src.Of(at), CodeValue, "%s: %s is no %s", s.what, source.Describe(at), s.out.Type).Hint = hint
	}
}
