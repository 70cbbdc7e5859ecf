// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
)

// schemaTypes are what JSON Schema calls its types.
var schemaTypes = []string{"object", "array", "string", "integer", "number", "boolean", "null"}

// schemaWords are the keywords that every provider can be told.
var schemaWords = []string{
	"type", "title", "description", "format", "default", "enum", "const", "nullable", "anyOf",
	"properties", "required", "additionalProperties", "minProperties", "maxProperties", "items", "minItems", "maxItems",
	"minimum", "maximum", "minLength", "maxLength", "pattern", "example", "examples", "$schema", "$id", "$comment",
}

// otherSchemaWords are keywords of JSON Schema that not every provider takes,
// and what to write in their place.
var otherSchemaWords = map[string]string{
	"oneOf": "write anyOf", "allOf": "write what is in it as one schema", "not": "", "if": "", "then": "", "else": "",
	"$ref": "write the schema where it is used", "$defs": "write the schema where it is used", "definitions": "write the schema where it is used",
	"exclusiveMinimum": "write minimum", "exclusiveMaximum": "write maximum", "multipleOf": "", "uniqueItems": "",
	"prefixItems": "write items", "additionalItems": "", "contains": "", "minContains": "", "maxContains": "", "unevaluatedItems": "",
	"patternProperties": "name the properties", "propertyNames": "name the properties", "unevaluatedProperties": "", "dependentRequired": "", "dependentSchemas": "",
	"contentEncoding": "", "contentMediaType": "", "contentSchema": "", "deprecated": "", "readOnly": "", "writeOnly": "",
}

// schema reads a JSON Schema of what all providers can be told; nil if there is
// a problem in it. Properties keep the order of the file, in which models fill
// them in.
func (r *reader) schema(n *yaml.Node, what string) *jsonschema.Schema {
	n = source.Deref(n)
	if n.Kind != yaml.MappingNode {
		r.wrong(n, what, "a JSON Schema, which is a map")
		return nil
	}
	before := len(r.problems)
	s := &schemaReader{reader: r, node: n, what: what, at: make(map[string]*yaml.Node)}
	ps, _ := r.pairs(n, what)
	for _, p := range ps {
		s.at[p.key] = p.value
		s.keyword(p)
	}
	if len(r.problems) == before {
		s.whole()
	}
	if len(r.problems) > before {
		return nil
	}
	return &s.out
}

// schemaReader reads one schema, not those in it.
type schemaReader struct {
	*reader
	node     *yaml.Node
	what     string // where it stands
	at       map[string]*yaml.Node
	nullable bool
	out      jsonschema.Schema
}

func (s *schemaReader) keyword(p pair) {
	f, n, out := s.what+"."+p.key, p.value, &s.out
	switch p.key {
	case "type":
		s.types(n, f)
	case "title":
		out.Title, _ = s.text(n, f)
	case "description":
		out.Description, _ = s.text(n, f)
	case "format":
		out.Format, _ = s.text(n, f)
	case "pattern":
		out.Pattern, _ = s.text(n, f)
		if _, err := regexp.Compile(out.Pattern); err != nil {
			s.report(s.src.Of(n), CodeValue, "%s is no regular expression: %v", f, err).err = err
		}
	case "default":
		if v, ok := s.any(n, f); ok {
			out.Default, _ = json.Marshal(v)
		}
	case "example", "$schema", "$id", "$comment": // for readers of the file
	case "examples":
		s.items(n, f)
	case "enum":
		s.enum(n, f)
	case "const":
		if v, ok := s.any(n, f); ok {
			out.Enum = []any{v}
		}
	case "nullable":
		s.nullable, _ = s.boolean(n, f)
	case "anyOf":
		items, ok := s.items(n, f)
		if ok && len(items) == 0 {
			s.report(s.src.Of(n), CodeValue, "%s is an empty list", f)
		}
		for i, item := range items {
			out.AnyOf = append(out.AnyOf, s.schema(item, index(f, i)))
		}
	case "items":
		out.Items = s.schema(n, f)
	case "properties":
		s.properties(n, f)
	case "required":
		out.Required = s.list(n, f, s.text)
	case "additionalProperties":
		if open, ok := s.boolean(n, f); ok && open {
			s.report(s.src.Of(n), CodeValue, "%s cannot be true: answers have the properties that the schema names", f).Hint = "leave it out"
		}
	case "minimum":
		out.Minimum = s.numberPointer(n, f)
	case "maximum":
		out.Maximum = s.numberPointer(n, f)
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		s.size(p.key, n, f)
	default:
		s.unknown(p)
	}
}

func (s *schemaReader) unknown(p pair) {
	if instead, ok := otherSchemaWords[p.key]; ok {
		s.report(s.src.Of(p.at), CodeField, "%s: not every provider takes %q in a schema", s.what, p.key).Hint = instead
		return
	}
	s.report(s.src.Of(p.at), CodeField, "%s: JSON Schema has no %q", s.what, p.key).
		Hint = didYouMean(p.key, schemaWords, "%q", "what describes a value stands in properties, under its name")
}

// types reads one type, or one and "null".
func (s *schemaReader) types(n *yaml.Node, f string) {
	all := []string{}
	if n.Kind == yaml.SequenceNode {
		all = s.list(n, f, s.text)
	} else if text, ok := s.text(n, f); ok {
		all = []string{text}
	}
	for i, t := range all {
		if !slices.Contains(schemaTypes, t) && t != "" {
			at := n
			if n.Kind == yaml.SequenceNode {
				at = source.Deref(n.Content[i])
			}
			s.report(s.src.Of(at), CodeValue, "%s: JSON Schema has no type %q", s.what, t).
				Hint = typeNamed(t, schemaTypes, "the types are "+strings.Join(schemaTypes, ", "))
			return
		}
	}
	if i := slices.Index(all, "null"); i >= 0 && len(all) > 1 {
		s.nullable = true
		all = slices.Delete(all, i, i+1)
	}
	if len(all) > 1 {
		s.report(s.src.Of(n), CodeValue, "%s can be one type, or one and null", f).Hint = fmt.Sprintf("write anyOf: [{type: %s}, {type: %s}]", all[0], all[1])
		return
	}
	s.out.Type = strings.Join(all, "")
}

func (s *schemaReader) enum(n *yaml.Node, f string) {
	items, ok := s.items(n, f)
	if ok && len(items) == 0 {
		s.report(s.src.Of(n), CodeValue, "%s is an empty list", f)
	}
	for i, item := range items {
		if v, ok := s.any(item, index(f, i)); ok {
			s.out.Enum = append(s.out.Enum, v)
		}
	}
}

func (s *schemaReader) properties(n *yaml.Node, f string) {
	ps, ok := s.pairs(n, f)
	if ok && len(ps) == 0 {
		s.report(s.src.Of(n), CodeMissing, "%s is empty: an object needs properties", f)
	}
	s.out.Properties = make(map[string]*jsonschema.Schema, len(ps))
	for _, p := range ps {
		s.out.Properties[p.key] = s.schema(p.value, f+"."+p.key)
		s.out.PropertyOrder = append(s.out.PropertyOrder, p.key)
	}
}

func (s *schemaReader) size(key string, n *yaml.Node, f string) {
	v, ok := s.count(n, f)
	if !ok {
		return
	}
	size := new(int(v))
	switch key {
	case "minLength":
		s.out.MinLength = size
	case "maxLength":
		s.out.MaxLength = size
	case "minItems":
		s.out.MinItems = size
	case "maxItems":
		s.out.MaxItems = size
	case "minProperties":
		s.out.MinProperties = size
	case "maxProperties":
		s.out.MaxProperties = size
	}
}
