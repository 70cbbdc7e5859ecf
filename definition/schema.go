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

	"github.com/refrain-dev/refrain/definition/internal/schema"
)

// SchemaID is where the newest schema is kept, for an editor that is told by
//
//	# yaml-language-server: $schema=https://raw.githubusercontent.com/refrain-dev/refrain/main/definition/schema.json
const SchemaID = "https://raw.githubusercontent.com/refrain-dev/refrain/main/definition/schema.json"

// Schema returns the JSON Schema of a definition, draft 2020-12, made from the same table as [Fields]. Editors
// complete and check files with it. The schema describes the structure: fields, and the types and ranges of their
// values. It accepts mistakes that only [Load] can find, such as a key that no agent writes.
func Schema() []byte {
	s := agentSchema("root")
	s.ID, s.Schema = SchemaID, "https://json-schema.org/draft/2020-12/schema"
	s.Title, s.Description = "Definition", "A loop of agents in a file, for refrain run."
	// Each part is on its own line, which halves the size and keeps diffs small.
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

// asJSON writes a schema without HTML escapes.
func asJSON(s shape) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // of a table in this package
	}
	return bytes.TrimSpace(b.Bytes())
}

// defs returns the parts of the schema that others refer to: fields by name, agents by type, and recursive shapes.
func defs() map[string]*jsonschema.Schema {
	all := map[string]*jsonschema.Schema{
		"agent": agentSchema("agent"), "step": stepSchema(), "condition": conditionSchema(), "tool": toolSchema(),
		"mcp": mcpParts.shape(), "callback": callbackParts.shape(), "answer": schema.Answer(),
	}
	for _, f := range fields {
		all["field."+f.Name] = schema.Described(shapes()[f.Name], f.Doc)
	}
	for _, t := range typeNames() {
		for _, f := range fields {
			if s, ok := shapes()[t+" "+f.Name]; ok {
				all["field."+t+"."+f.Name] = schema.Described(s, f.Doc)
			}
		}
		all["agent."+t], all["root."+t] = typeSchema(Type(t), false), typeSchema(Type(t), true)
		all["config."+t] = propertiesOf(Type(t), true)
	}
	for _, kind := range []string{"agent", "root"} {
		all[kind+".untyped"], all[kind+".unknown"] = untypedSchema(kind), unknownSchema(kind)
	}
	all["tool.command"] = typeSchema(TypeCommand, false)
	schema.Set(all["tool.command"], "parameters", &jsonschema.Schema{
		Ref: "#/$defs/answer", Description: "what the model gives: {{NAME}} in the command, or JSON on standard input",
		Properties: map[string]*jsonschema.Schema{"type": {Enum: []any{"object"}}},
	})
	return all
}

// propertiesOf returns the shape of a map with the fields of a type and no others; with all fields if the type is
// empty.
func propertiesOf(t Type, root bool) shape {
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: schema.Nothing()}
	for _, f := range fields {
		if t != "" && !f.has(t) || f.Root && !root {
			continue
		}
		def := "field." + f.Name
		if _, own := shapes()[string(t)+" "+f.Name]; own {
			def = "field." + string(t) + "." + f.Name
		}
		schema.Set(s, f.Name, schema.By(def))
	}
	return s
}

// typeSchema returns the shape of an agent of a type. Its required fields may stand in its config.
func typeSchema(t Type, root bool) shape {
	s := propertiesOf(t, root)
	schema.Set(s, "config", &jsonschema.Schema{Ref: "#/$defs/config." + string(t),
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

// has returns the shape of an agent with a field, even if the field is in its config.
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

// agentSchema selects the schema of the type that an agent gives. The kind is agent or root.
func agentSchema(kind string) shape {
	s := &jsonschema.Schema{Type: "object"}
	for _, t := range typeNames() {
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: given("type", &jsonschema.Schema{Enum: []any{t}}),
			Then: schema.By(kind + "." + t)})
	}
	s.AllOf = append(s.AllOf, &jsonschema.Schema{If: given("type", schema.OneOf(typeNames()...)),
		Else: schema.By(kind + ".untyped")})
	return s
}

// untypedSchema identifies the type of an agent without a type field, as the reader does.
func untypedSchema(kind string) shape {
	of := func(t Type) shape { return schema.By(kind + "." + string(t)) }
	s := schema.By(kind + ".unknown")
	then := func(condition, then shape) { s = &jsonschema.Schema{If: condition, Then: then, Else: s} }

	// From the last condition to the first.
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
	then(has("type"), schema.By(kind+".unknown"))
	return s
}

// unknownSchema refuses an agent whose type is unknown, and lists all fields, so that an editor can offer them.
func unknownSchema(kind string) shape {
	s := propertiesOf("", kind == "root")
	schema.Set(s, "config", &jsonschema.Schema{Type: "object"})
	s.Required = []string{"type"}
	return s
}

// stepSchema returns the shape of an agent, or of a ref with the fields that can stand beside it.
func stepSchema() shape {
	entries := []schema.Entry{schema.Named("ref", "the file of the agent, in the same folder or below", schema.Text())}
	for _, name := range besideRef {
		entries = append(entries, schema.Named(name, fieldNamed(name).Doc, schema.By("field."+name)))
	}
	s := schema.Settings(entries, "ref")
	return &jsonschema.Schema{If: &jsonschema.Schema{Type: "object", Required: []string{"ref"}}, Then: s,
		Else: schema.By("agent"), Type: "object"}
}

// shape is the JSON Schema of a value.
type shape = schema.Shape

func conditionRef() shape { return schema.By("condition") }
