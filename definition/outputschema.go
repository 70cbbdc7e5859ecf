// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/internal/source"
)

// schemaTypes are what JSON Schema calls its types, and file: a string that is a path inside the run's root.
var schemaTypes = []string{"object", "array", "string", "integer", "number", "boolean", "null", "file"}

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
func (r *reader) schema(n *source.Node, what string) *jsonschema.Schema {
	n = source.Deref(n)
	if n.Kind != source.Map {
		r.wrong(n, what, "a JSON Schema, which is a map")
		return nil
	}
	before := len(r.problems)
	s := &schemaReader{reader: r, node: n, what: what, at: make(map[string]*source.Node)}
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
	node     *source.Node
	what     string // where it stands
	at       map[string]*source.Node
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
			s.report(s.src.Of(n), CodeValue, "%s is not a regular expression: %v", f, err).err = err
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
			s.report(s.src.Of(n), CodeValue, "%s cannot be true: an answer has only the properties that the "+
				"schema names", f).Hint = "leave it out"
		}
	case "minimum":
		out.Minimum = s.numberPointer(n, f)
	case "maximum":
		out.Maximum = s.numberPointer(n, f)
	default:
		size := map[string]**int{
			"minLength": &out.MinLength, "maxLength": &out.MaxLength, "minItems": &out.MinItems, "maxItems": &out.MaxItems,
			"minProperties": &out.MinProperties, "maxProperties": &out.MaxProperties,
		}[p.key]
		if size == nil {
			s.unknown(p)
		} else if v, ok := s.count(n, f); ok {
			*size = new(int(v))
		}
	}
}

func (s *schemaReader) unknown(p pair) {
	if instead, ok := otherSchemaWords[p.key]; ok {
		s.report(s.src.Of(p.at), CodeField, "%s: not every provider takes %q in a schema", s.what, p.key).Hint = instead
		return
	}
	problem := s.report(s.src.Of(p.at), CodeField, "%s: JSON Schema has no %q", s.what, p.key)
	t := p.value.Value
	if also := alsoTypes[t]; also != nil && !slices.Contains(schemaTypes, t) {
		t = also[len(also)-1]
	}
	if source.PlainText(p.value) && slices.Contains(schemaTypes, t) {
		problem.Hint = fmt.Sprintf("write properties: {%s: {type: %s}}", p.key, t)
		return
	}
	problem.Hint = meant.Hint(p.key, schemaWords, "describe each value in properties, under its name")
}

// types reads one type, or one and "null".
func (s *schemaReader) types(n *source.Node, f string) {
	all := []string{}
	if n.Kind == source.List {
		all = s.list(n, f, s.text)
	} else if text, ok := s.text(n, f); ok {
		all = []string{text}
	}
	for i, t := range all {
		if !slices.Contains(schemaTypes, t) && t != "" {
			at := n
			if n.Kind == source.List {
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
	if s.out.Type = strings.Join(all, ""); s.out.Type == "file" {
		s.out.Type = "string"
		if s.def.files == nil {
			s.def.files = make(map[*jsonschema.Schema]bool)
		}
		s.def.files[&s.out] = true
	}
}

func (s *schemaReader) enum(n *source.Node, f string) {
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

func (s *schemaReader) properties(n *source.Node, f string) {
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
		s.report(here, CodeMissing, "%s is an array and needs items", s.what).Hint = "write items, such as items: " +
			"{type: string}"
	case out.Type == "object" && len(out.Properties) == 0:
		s.report(here, CodeMissing, "%s is an object and needs properties", s.what)
	}
	for i, name := range out.Required {
		if _, ok := out.Properties[name]; !ok {
			s.report(s.src.Of(source.Deref(s.at["required"].Content[i])), CodeValue,
				"%s requires %q, which is not among its properties", s.what, name).
				Hint = meant.Hint(name, slices.Sorted(slices.Values(out.PropertyOrder)), "")
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
		s.report(s.src.Of(s.at["default"]), CodeValue, "%s: the default does not match the schema", s.what)
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
		if text && s.out.Type == "string" || ok && s.out.Type == "number" ||
			ok && f == math.Trunc(f) && s.out.Type == "integer" {
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
			s.report(s.src.Of(at), CodeValue, "%s: enum and const can have only strings and numbers", s.what)
			return
		}
		s.report(s.src.Of(at), CodeValue, "%s: %s is not of type %s", s.what, source.Describe(at), s.out.Type).Hint = hint
	}
}

// answerSchema is a schema in genai's words, in which models are asked; nil for
// nil. It knows what [reader.schema] lets pass.
func answerSchema(s *jsonschema.Schema) *genai.Schema {
	if s == nil {
		return nil
	}
	out := &genai.Schema{
		Type: genai.Type(strings.ToUpper(s.Type)), Title: s.Title, Description: s.Description, Format: s.Format,
		Pattern: s.Pattern,
		Minimum: s.Minimum, Maximum: s.Maximum, MinLength: wide(s.MinLength), MaxLength: wide(s.MaxLength),
		MinItems: wide(s.MinItems), MaxItems: wide(s.MaxItems), MinProperties: wide(s.MinProperties),
		MaxProperties: wide(s.MaxProperties),
		Items:         answerSchema(s.Items), Required: slices.Clone(s.Required),
		PropertyOrdering: slices.Clone(s.PropertyOrder),
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

// answerShape is the part of JSON Schema that every provider can be told.
func answerShape() shape {
	kind := func() shape { return oneOf(schemaTypes...) }
	self := func() shape { return by("answer") }
	size := func() shape { return whole(0) }
	values := map[string]shape{
		"type": either(kind(), list(kind())), "title": text(), "description": text(), "format": text(), "pattern": text(),
		"enum": filled(listed()), "const": listed(), "nullable": yesNo(), "anyOf": filled(self()), "items": self(), "properties": needed(mapOf(self())),
		"required": list(text()), "additionalProperties": {Enum: []any{false}},
		"minimum": number(), "maximum": number(), "examples": {Type: "array"},
		"minLength": size(), "maxLength": size(), "minItems": size(), "maxItems": size(), "minProperties": size(), "maxProperties": size(),
	}
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: nothing(), Title: "JSON Schema"}
	for _, word := range schemaWords {
		v := values[word]
		if v == nil {
			v = &jsonschema.Schema{}
		}
		set(s, word, v)
	}
	for _, word := range []string{"type", "properties", "items", "anyOf", "enum", "const"} {
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Required: []string{word}})
	}
	s.AllOf = append(s.AllOf, listedTypes()...)
	for _, of := range [][2]string{{"array", "items"}, {"object", "properties"}} {
		is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"type": {Enum: []any{of[0]}}},
			Required: []string{"type"}}
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: is, Then: &jsonschema.Schema{Required: []string{of[1]}}})
	}
	return s
}

// listed is a value of enum or const.
func listed() shape { return &jsonschema.Schema{Types: []string{"string", "number"}} }

// needed is a map that is not empty.
func needed(s shape) shape {
	s.MinProperties = new(1)
	return s
}

// listedTypes say what enum and const can be with each type: with one that is no
// text and no number there is none, and without one it is text.
func listedTypes() []*jsonschema.Schema {
	values := func(v shape) shape {
		return &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"enum": {Items: v}, "const": v}}
	}
	none := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"enum": nothing(), "const": nothing()}}
	var all []*jsonschema.Schema
	for _, t := range schemaTypes {
		then := none
		switch t {
		case "file":
			then = values(&jsonschema.Schema{Type: "string"})
		case "string", "integer", "number":
			then = values(&jsonschema.Schema{Type: t})
		}
		one := &jsonschema.Schema{Enum: []any{t}}
		several := &jsonschema.Schema{Type: "array", Contains: one}
		if t == "null" { // beside another one it says that null is allowed
			several = nothing()
		}
		is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"type": {AnyOf: []*jsonschema.Schema{one,
			several}}}, Required: []string{"type"}}
		all = append(all, &jsonschema.Schema{If: is, Then: then})
	}
	untyped := &jsonschema.Schema{Required: []string{"anyOf"}, Not: &jsonschema.Schema{Required: []string{"type"}}}
	all = append(all, &jsonschema.Schema{If: untyped, Then: none})
	return append(all, &jsonschema.Schema{If: &jsonschema.Schema{Required: []string{"type"}},
		Else: values(&jsonschema.Schema{Type: "string"})})
}
