// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// The keywords of JSON Schema by what they hold. A keyword that is misspelt would otherwise ask for nothing.
var (
	schemaKeywords = []string{
		"type", "title", "description", "format", "default", "example", "enum", "const", "required", "minProperties", "maxProperties", "minItems", "maxItems",
		"minimum", "maximum", "minLength", "maxLength", "pattern", "examples", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems",
		"minContains", "maxContains", "dependentRequired", "contentEncoding", "contentMediaType", "deprecated", "readOnly", "writeOnly",
		"$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary", "$comment",
	}
	schemaParts = []string{
		"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "additionalItems", "unevaluatedItems",
		"unevaluatedProperties", "contentSchema",
	}
	schemaLists = []string{"anyOf", "allOf", "oneOf", "prefixItems"}
	schemaMaps  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	schemaTypes = []string{"object", "array", "string", "integer", "number", "boolean", "null"}
)

// schema reports the keywords and types that JSON Schema does not have.
func (r *reader) schema(n *source.Node) {
	if n = source.Deref(n); n.Kind != source.Map {
		return // true, false, or what the compiler refuses
	}
	for _, p := range source.Pairs(n) {
		v := source.Deref(p.Value)
		switch key := p.Key.Value; {
		case key == "type":
			r.schemaType(v)
		case slices.Contains(schemaKeywords, key), strings.HasPrefix(key, "x-"):
		case slices.Contains(schemaParts, key):
			r.schema(v)
		case slices.Contains(schemaLists, key):
			for _, part := range items(v) {
				r.schema(part)
			}
		case slices.Contains(schemaMaps, key):
			for _, of := range source.Pairs(v) {
				r.schema(of.Value)
			}
		case key == "nullable":
			r.report(p.Key, definition.CodeField, `JSON Schema has no "nullable"`).Hint = `write a list of types, such as type: [string, "null"]`
		default:
			r.report(p.Key, definition.CodeField, "JSON Schema has no %q", key).Hint = schemaHint(key)
		}
	}
}

// schemaHint returns the keyword that was probably meant.
func schemaHint(key string) string {
	if near := suggest.Nearest(key, slices.Concat(schemaKeywords, schemaParts, schemaLists, schemaMaps)); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "describe each value in properties, under its name"
}

// schemaType reports a type that JSON Schema does not have.
func (r *reader) schemaType(n *source.Node) {
	all := items(n)
	if n.Kind == source.Scalar {
		all = []*source.Node{n}
	}
	for _, t := range all {
		if t.Kind == source.Scalar && !slices.Contains(schemaTypes, t.Value) {
			r.report(t, definition.CodeValue, "JSON Schema has no type %q", t.Value).Hint = typeHint(t)
		}
	}
}

func typeHint(t *source.Node) string {
	if source.IsNull(t) {
		return `write "null", in quotes`
	}
	return suggest.Hint(strings.ToLower(t.Value), schemaTypes)
}
