// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// SchemaID is where the newest schema is kept, for an editor that is told by
//
//	# yaml-language-server: $schema=https://raw.githubusercontent.com/refrain-dev/refrain/main/definition/schema.json
const SchemaID = "https://raw.githubusercontent.com/refrain-dev/refrain/main/definition/schema.json"

// Schema is the JSON Schema of a definition, draft 2020-12, made of the same table
// as [Fields]. It is what editors complete and check by. It knows the structure:
// fields, and the types and ranges of their values. What only [Load] knows, such
// as which keys are written, it lets pass.
func Schema() []byte {
	s := agentSchema("root")
	s.ID, s.Schema = SchemaID, "https://json-schema.org/draft/2020-12/schema"
	s.Title, s.Description = "Definition", "A loop of agents in a file, for refrain run."
	// Each part is on a line of its own: that is half the size, and what has
	// changed is seen in a diff.
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(string(asJSON(s)), "}") + ",\n\"$defs\": {")
	all := defs()
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n%q: %s", name, asJSON(all[name]))
	}
	b.WriteString("\n}}\n")
	return []byte(b.String())
}

// asJSON is a schema without what only HTML needs.
func asJSON(s shape) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // of a table in this package
	}
	return bytes.TrimSpace(b.Bytes())
}

// defs are the parts that others refer to: a field by its name, an agent by its
// type, and what has itself in it.
func defs() map[string]*jsonschema.Schema {
	all := map[string]*jsonschema.Schema{
		"agent": agentSchema("agent"), "step": stepSchema(), "condition": conditionSchema(), "tool": toolSchema(), "mcp": mcpParts.shape(), "callback": callbackParts.shape(), "answer": answerShape(),
	}
	for _, f := range fields {
		all["field."+f.Name] = described(shapes()[f.Name], f.Doc)
	}
	for _, t := range typeNames() {
		for _, f := range fields {
			if s, ok := shapes()[t+" "+f.Name]; ok {
				all["field."+t+"."+f.Name] = described(s, f.Doc)
			}
		}
		all["agent."+t], all["root."+t] = typeSchema(Type(t), false), typeSchema(Type(t), true)
		all["config."+t] = propertiesOf(Type(t), true)
	}
	for _, kind := range []string{"agent", "root"} {
		all[kind+".untyped"], all[kind+".unknown"] = untypedSchema(kind), unknownSchema(kind)
	}
	all["tool.command"] = typeSchema(TypeCommand, false)
	set(all["tool.command"], "parameters", &jsonschema.Schema{
		Ref: "#/$defs/answer", Description: "what the model gives: {{NAME}} in the command, or JSON on standard input",
		Properties: map[string]*jsonschema.Schema{"type": {Enum: []any{"object"}}},
	})
	return all
}

func described(s shape, doc string) shape {
	if s == nil {
		s = &jsonschema.Schema{}
	}
	s = s.CloneSchemas()
	s.Description = doc
	return s
}

func set(s shape, name string, value shape) {
	if s.Properties == nil {
		s.Properties = make(map[string]*jsonschema.Schema)
	}
	s.Properties[name] = value
	s.PropertyOrder = append(s.PropertyOrder, name)
}

// propertiesOf is a map of the fields of a type and of no others; of all fields
// if there is no type.
func propertiesOf(t Type, root bool) shape {
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: nothing()}
	for _, f := range fields {
		if t != "" && !f.has(t) || f.Root && !root {
			continue
		}
		def := "field." + f.Name
		if _, own := shapes()[string(t)+" "+f.Name]; own {
			def = "field." + string(t) + "." + f.Name
		}
		set(s, f.Name, by(def))
	}
	return s
}

// typeSchema is an agent of a type. What it needs can stand in its config.
func typeSchema(t Type, root bool) shape {
	s := propertiesOf(t, root)
	set(s, "config", &jsonschema.Schema{Ref: "#/$defs/config." + string(t),
		Description: "fields of the agent, as other products write them"})
	required := []string{"name"}
	switch field, needed := needs[t]; {
	case needed:
		required = append(required, field)
	case t.Workflow():
		required = append(required, "sub_agents")
	}
	both := &jsonschema.Schema{}
	for _, field := range required {
		both.AllOf = append(both.AllOf, has(field))
	}
	s.If, s.Then, s.Else = &jsonschema.Schema{Required: []string{"config"}}, both,
		&jsonschema.Schema{Required: required}
	if t == TypeExpression {
		s.AnyOf = []*jsonschema.Schema{given("set", &jsonschema.Schema{MinProperties: new(1)}), has("value"),
			has("exit_when")}
	}
	return s
}

// has is what an agent with a field is, be it in its config.
func has(field string) shape { return given(field, nil) }

func given(field string, value shape) shape {
	is := &jsonschema.Schema{Required: []string{field}}
	if value != nil {
		is.Properties = map[string]*jsonschema.Schema{field: value}
	}
	inside := &jsonschema.Schema{Required: []string{"config"},
		Properties: map[string]*jsonschema.Schema{"config": is.CloneSchemas()}}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{is, inside}}
}

// agentSchema leads from the type that an agent gives to that type's schema. The
// kind is agent or root.
func agentSchema(kind string) shape {
	s := &jsonschema.Schema{Type: "object"}
	for _, t := range typeNames() {
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: given("type", &jsonschema.Schema{Enum: []any{t}}),
			Then: by(kind + "." + t)})
	}
	s.AllOf = append(s.AllOf, &jsonschema.Schema{If: given("type", oneOf(typeNames()...)),
		Else: by(kind + ".untyped")})
	return s
}

// untypedSchema tells the type of an agent that does not give it as a reader does.
func untypedSchema(kind string) shape {
	of := func(t Type) shape { return by(kind + "." + string(t)) }
	s := by(kind + ".unknown")
	then := func(condition, then shape) { s = &jsonschema.Schema{If: condition, Then: then, Else: s} }

	// From the last that is looked at to the first.
	asked := &jsonschema.Schema{}
	for _, field := range asking {
		asked.AnyOf = append(asked.AnyOf, has(field))
	}
	then(asked, of(TypeLLM))
	for _, t := range slices.Backward(typeNames()) {
		only := &jsonschema.Schema{}
		for _, f := range fields {
			if len(f.Types) == 1 && f.Types[0] == Type(t) && !alsoMeant(f.Name) {
				only.AnyOf = append(only.AnyOf, has(f.Name))
			}
		}
		if only.AnyOf != nil {
			then(only, of(Type(t)))
		}
	}
	for _, k := range slices.Backward(kinds) {
		for _, field := range slices.Backward(k.tells) {
			then(has(field), of(k.is))
		}
	}
	then(has("type"), by(kind+".unknown"))
	return s
}

// unknownSchema refuses an agent of which nothing tells the type, and lists all
// fields for an editor to offer.
func unknownSchema(kind string) shape {
	s := propertiesOf("", kind == "root")
	set(s, "config", &jsonschema.Schema{Type: "object"})
	s.Required = []string{"type"}
	return s
}

// stepSchema is an agent, or the file that it is in, with what can stand beside that.
func stepSchema() shape {
	entries := []entry{{"ref", "the file of the agent, in the same folder or below", text()}}
	for _, name := range besideRef {
		entries = append(entries, entry{name, fieldNamed(name).Doc, by("field." + name)})
	}
	s := settings(entries, "ref")
	return &jsonschema.Schema{If: &jsonschema.Schema{Type: "object", Required: []string{"ref"}}, Then: s,
		Else: by("agent"), Type: "object"}
}

// shape says in JSON Schema what the value of a field can be. The shapes are
// what the readers take the names within a field from, what [Schema] gives to
// editors, and what the reference of the fields is made of.
type shape = *jsonschema.Schema

// form is the map that a value can be, with its names; nil if it is none.
func form(s shape) shape {
	if s == nil || s.PropertyOrder != nil {
		return s
	}
	if f := form(s.AdditionalProperties); f != nil && f.PropertyOrder != nil {
		return f
	}
	for _, list := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		for _, alt := range list {
			if f := form(alt); f != nil && f.PropertyOrder != nil {
				return f
			}
		}
	}
	return nil
}

// What follows makes shapes. The title is what a person calls such a value.

func text() shape { return &jsonschema.Schema{Type: "string", Title: "text"} }

// anyText is text where a number or true is read as text too.
func anyText() shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, Title: "text"}
}

// expression is CEL, which is never empty.
func expression() shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, MinLength: new(1), Title: "expression"}
}

func yesNo() shape { return &jsonschema.Schema{Type: "boolean", Title: "true or false"} }

func number() shape { return &jsonschema.Schema{Type: "number", Title: "number"} }

// whole is a whole number of at least so much.
func whole(least float64) shape {
	return &jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: new(float64(1<<31 - 1)), Title: "whole number"}
}

// oneOf is one of some words.
func oneOf(words ...string) shape {
	s := &jsonschema.Schema{Title: "word"}
	for _, w := range words {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// Spans of time are text as Go has it, its units from the largest to the smallest, or seconds. The
// number of digits of each part is limited so that the sum fits in a time.Duration. A time greater
// than zero has a digit other than 0.
const (
	spanPattern = `^[+]?(([0-9]{1,5}(\.[0-9]*)?|\.[0-9]+)h)?(([0-9]{1,7}(\.[0-9]*)?|\.[0-9]+)m)?(([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)s)?(([0-9]{1,12}(\.[0-9]*)?|\.[0-9]+)ms)?(([0-9]{1,15}(\.[0-9]*)?|\.[0-9]+)[uµμ]s)?(([0-9]{1,18}(\.[0-9]*)?|\.[0-9]+)ns)?$|^[+]?([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)$`
	sizePattern = `^\s*([0-9]{1,12}\s*[Bb]?|([0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)\s*[Kk][Ii]?[Bb]|([0-9]{1,6}(\.[0-9]*)?|\.[0-9]+)\s*[Mm][Ii]?[Bb]|([0-9]{1,3}(\.[0-9]*)?|\.[0-9]+)\s*[Gg][Ii]?[Bb])\s*$`
	notNothing  = `[1-9]`
	maxSeconds  = 1e9
	maxBytes    = 1e12
)

// duration is a time greater than zero.
func duration() shape {
	return &jsonschema.Schema{
		Title: "duration", Examples: []any{"30s", "5m"},
		AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: spanPattern, AllOf: []*jsonschema.Schema{{Pattern: notNothing}}},
			{Type: "number", ExclusiveMinimum: new(0.0), Maximum: new(maxSeconds)},
		},
	}
}

// delay is a time of zero or more.
func delay() shape {
	return &jsonschema.Schema{
		Title: "duration", Examples: []any{"500ms", "2s"},
		AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: spanPattern, AllOf: []*jsonschema.Schema{{Pattern: "[0-9]"}}},
			{Type: "number", Minimum: new(0.0), Maximum: new(maxSeconds)},
		},
	}
}

// byteSize is a number of bytes.
func byteSize() shape {
	return &jsonschema.Schema{
		Title: "size", Examples: []any{"64KB", "1MiB"},
		AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: sizePattern, AllOf: []*jsonschema.Schema{{Pattern: notNothing}}},
			{Type: "number", Minimum: new(1.0), Maximum: new(maxBytes)},
		},
	}
}

// list is a list of such values.
func list(of shape) shape {
	s := &jsonschema.Schema{Type: "array", Items: of, Title: "list"}
	if name := plural[valueWords(of)]; name != "" {
		s.Title = "list of " + name
	}
	return s
}

// filled is a list of at least one.
func filled(of shape) shape {
	s := list(of)
	s.MinItems = new(1)
	return s
}

var plural = map[string]string{"text": "texts", "whole number": "whole numbers", "agent": "agents", "tool": "tools",
	"condition": "conditions"}

// mapOf is a map with names of the author's own.
func mapOf(of shape) shape {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: of, Title: "map"}
}

// either is one of several forms.
func either(forms ...shape) shape { return &jsonschema.Schema{AnyOf: forms} }

// entry is one name in a map.
type entry struct {
	name  string
	doc   string
	value shape
}

// settings is a map of known names, some of which are needed.
func settings(entries []entry, needed ...string) shape {
	s := &jsonschema.Schema{Type: "object", Title: "map", Properties: make(map[string]*jsonschema.Schema),
		AdditionalProperties: nothing(), Required: needed}
	for _, e := range entries {
		e.value.Description = e.doc
		s.Properties[e.name] = e.value
		s.PropertyOrder = append(s.PropertyOrder, e.name)
	}
	return s
}

// nothing is what no value is.
func nothing() shape { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// by is a shape of another name in the schema's $defs.
func by(def string) shape { return &jsonschema.Schema{Ref: "#/$defs/" + def} }

// preset gives a shape the value that counts if the field is left out.
func preset(s shape, v any) shape {
	s.Default, _ = json.Marshal(v) // of what is written here
	return s
}

// alternatives are the forms of a value, the simple ones first.
func alternatives(s shape) []shape {
	switch {
	case s == nil:
		return nil
	case s.Title != "" || s.AnyOf == nil:
		return []shape{s}
	}
	var all []shape
	for _, alt := range s.AnyOf {
		all = append(all, alternatives(alt)...)
	}
	return slices.DeleteFunc(all, func(s shape) bool { return s == nil })
}

// without is a map that has one name and not the others.
func without(name string, others ...string) shape {
	s := &jsonschema.Schema{Required: []string{name}, Properties: make(map[string]*jsonschema.Schema)}
	for _, other := range others {
		s.Properties[other] = nothing()
	}
	return s
}

func wordShape() shape { return &jsonschema.Schema{Type: "string", MinLength: new(1), Title: "text"} }

func conditionRef() shape { return by("condition") }
