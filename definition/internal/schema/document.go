// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Document has the parts of the JSON Schema of a definition, which are the fields and the types of agents.
type Document struct {
	ID, Title, Description string
	Fields                 []Field
	Types                  []AgentType // in the order of the documentation
	// Asking lists the fields that determine the type Asker if no other field determines a type.
	Asking []string
	Asker  string
	// BesideRef lists the fields that can be next to a ref.
	BesideRef []string
	// Parts has further shapes, to which others refer with [By].
	Parts map[string]Shape
}

// Field is a field of agents.
type Field struct {
	Name, Doc string
	Types     []string // nil for all
	Root      bool     // only the root agent has it
	Tells     bool     // determines the type of its agent
	Shape     Shape
	Own       map[string]Shape // by type, for types in which the field has another shape
}

// AgentType is a type of agent.
type AgentType struct {
	Name  string
	Tells []string // the fields each of which determines the type, the clearest first
	Needs []string // the required fields besides the name
	Some  []Shape  // the agent must match at least one of these; nil if there is no such rule
}

// JSON returns the schema, draft 2020-12. Each part is on its own line, which halves the size and keeps diffs
// small.
func (d *Document) JSON() []byte {
	s := d.agent("root")
	s.ID, s.Schema = d.ID, "https://json-schema.org/draft/2020-12/schema"
	s.Title, s.Description = d.Title, d.Description
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(string(asJSON(s)), "}") + ",\n\"$defs\": {")
	all := d.defs()
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
func asJSON(s Shape) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a mistake in a table of package definition
	}
	return bytes.TrimSpace(b.Bytes())
}

// defs returns the parts of the schema to which others refer: fields by name, agents by type, and recursive shapes.
func (d *Document) defs() map[string]Shape {
	all := maps.Clone(d.Parts)
	all["agent"], all["step"] = d.agent("agent"), d.step()
	for _, f := range d.Fields {
		all["field."+f.Name] = Described(f.Shape, f.Doc)
		for t, s := range f.Own {
			all["field."+t+"."+f.Name] = Described(s, f.Doc)
		}
	}
	for i := range d.Types {
		t := &d.Types[i]
		all["agent."+t.Name], all["root."+t.Name] = d.Agent(t, false), d.Agent(t, true)
		all["config."+t.Name] = d.properties(t.Name, true)
	}
	for _, kind := range []string{"agent", "root"} {
		all[kind+".untyped"], all[kind+".unknown"] = d.untyped(kind), d.unknown(kind)
	}
	for name, s := range all {
		if s.Title == "" {
			titled := *s
			titled.Title = title(name, s)
			all[name] = &titled
		}
	}
	return all
}

// title returns the words for a part of the schema. An editor shows them in place of the part's name, as in "want a loop agent".
func title(name string, s Shape) string {
	kind, of, _ := strings.Cut(name, ".")
	switch {
	case kind == "field":
		return Words(s)
	case of == "" || of == "unknown" || of == "untyped":
		return strings.Replace(kind, "root", "agent", 1)
	case kind == "config":
		return "config of " + of
	case kind == "root":
		kind = "agent"
	}
	return of + " " + kind
}

// properties returns the shape of a map with the fields of a type and no others, or with all fields if the type is empty.
func (d *Document) properties(t string, root bool) Shape {
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: Nothing()}
	for _, f := range d.Fields {
		if t != "" && f.Types != nil && !slices.Contains(f.Types, t) || f.Root && !root {
			continue
		}
		def := "field." + f.Name
		if f.Own[t] != nil {
			def = "field." + t + "." + f.Name
		}
		Set(s, f.Name, By(def))
	}
	return s
}

// Agent returns the shape of an agent of a type. Required fields may be in its config.
func (d *Document) Agent(t *AgentType, root bool) Shape {
	s := d.properties(t.Name, root)
	Set(s, "config", &jsonschema.Schema{Ref: "#/$defs/config." + t.Name,
		Description: "fields of the agent, as other products write them"})
	required := append([]string{"name"}, t.Needs...)
	both := &jsonschema.Schema{}
	for _, field := range required {
		both.AllOf = append(both.AllOf, Has(field, nil))
	}
	s.If, s.Then, s.Else = &jsonschema.Schema{Required: []string{"config"}}, both,
		&jsonschema.Schema{Required: required}
	s.AnyOf = t.Some
	return s
}

// Has returns the shape of an agent that has a field, including in its config. A nil value accepts any value.
func Has(field string, value Shape) Shape {
	is := &jsonschema.Schema{Required: []string{field}}
	if value != nil {
		is.Properties = map[string]*jsonschema.Schema{field: value}
	}
	inside := &jsonschema.Schema{Required: []string{"config"},
		Properties: map[string]*jsonschema.Schema{"config": is.CloneSchemas()}}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{is, inside}}
}

// agent selects the schema by the type of an agent. The kind is agent or root.
func (d *Document) agent(kind string) Shape {
	s := &jsonschema.Schema{Type: "object"}
	var names []string
	for _, t := range d.Types {
		names = append(names, t.Name)
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: Has("type", &jsonschema.Schema{Enum: []any{t.Name}}),
			Then: By(kind + "." + t.Name)})
	}
	s.AllOf = append(s.AllOf, &jsonschema.Schema{If: Has("type", OneOf(names...)), Else: By(kind + ".untyped")})
	return s
}

// untyped determines the type of an agent without a type field, by the same rules as the reader.
func (d *Document) untyped(kind string) Shape {
	s := By(kind + ".unknown")
	then := func(condition, then Shape) { s = &jsonschema.Schema{If: condition, Then: then, Else: s} }

	// From the last condition to the first.
	asked := &jsonschema.Schema{}
	for _, field := range d.Asking {
		asked.AnyOf = append(asked.AnyOf, Has(field, nil))
	}
	then(asked, By(kind+"."+d.Asker))
	for _, t := range slices.Backward(d.Types) {
		only := &jsonschema.Schema{}
		for _, f := range d.Fields {
			if f.Tells && f.Types[0] == t.Name {
				only.AnyOf = append(only.AnyOf, Has(f.Name, nil))
			}
		}
		if only.AnyOf != nil {
			then(only, By(kind+"."+t.Name))
		}
	}
	for _, t := range slices.Backward(d.Types) {
		for _, field := range slices.Backward(t.Tells) {
			then(Has(field, nil), By(kind+"."+t.Name))
		}
	}
	then(Has("type", nil), By(kind+".unknown"))
	return s
}

// unknown rejects an agent of an unknown type, and lists all fields so that an editor can offer them.
func (d *Document) unknown(kind string) Shape {
	s := d.properties("", kind == "root")
	Set(s, "config", &jsonschema.Schema{Type: "object"})
	s.Required = []string{"type"}
	return s
}

// step returns the shape of an agent, or of a ref with the fields that can be next to it.
func (d *Document) step() Shape {
	entries := []Entry{Named("ref", "the file of the agent, in the same folder or below", Text())}
	for _, name := range d.BesideRef {
		i := slices.IndexFunc(d.Fields, func(f Field) bool { return f.Name == name })
		entries = append(entries, Named(name, d.Fields[i].Doc, By("field."+name)))
	}
	s := Settings(entries, "ref")
	return &jsonschema.Schema{If: &jsonschema.Schema{Type: "object", Required: []string{"ref"}}, Then: s,
		Else: By("agent"), Type: "object"}
}
