// SPDX-License-Identifier: Apache-2.0

package form

import (
	"slices"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/edit"
)

// Field describes a field and its input in a form.
type Field struct {
	Name  string            `json:"name"`
	Types []definition.Type `json:"types,omitzero"` // nil: every agent
	Root  bool              `json:"root,omitzero"`
	Doc   string            `json:"doc"`
	// Beside is true if the field can be next to a ref.
	Beside bool `json:"beside,omitzero"`
	// Docs explains the field for one type of agent, if Doc covers several types.
	Docs map[definition.Type]string `json:"docs,omitzero"`
	Control
	// Parts lists the names in the field, if its value can be a map. Short is the name that a plain value stands for.
	Parts []Part `json:"parts,omitzero"`
	Short string `json:"short,omitzero"`
	// Keyed is true for a map of maps in which people choose the names, and each inner map has the parts.
	Keyed bool `json:"keyed,omitzero"`
}

// Part is a name in a field that can be a map.
type Part struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	Control
	// Needed is true if the map requires the name.
	Needed bool `json:"needed,omitzero"`
}

// Control describes the possible values, from which a form chooses the input.
type Control struct {
	// Value describes the possible values in words.
	Value string `json:"value"`
	// Choices lists the possible words. Bool is true if the value is true or false, Text if it is a string, which
	// gets quotes where YAML needs them, and Long if the string can have several lines.
	Choices []string `json:"choices,omitzero"`
	Bool    bool     `json:"bool,omitzero"`
	Text    bool     `json:"text,omitzero"`
	Long    bool     `json:"long,omitzero"`
}

func controlOf(name, value string, choices []string) Control {
	return Control{
		Value: value, Choices: choices, Text: value == "text" || value == "name", Bool: value == "true or false", Long: slices.Contains(long, name),
	}
}

// keyed lists the fields that are maps of maps.
var keyed = []string{"inputs", "shapes", "prices"}

// long lists the fields whose text usually has several lines.
var long = []string{"instructions", "text", "question", "goal", "query", "stdin", "output_schema"}

// Fields returns all fields in their usual order.
func Fields() []Field {
	var out []Field
	for _, f := range definition.Fields() {
		ff := Field{
			Name: f.Name, Types: f.Types, Root: f.Root, Doc: f.Doc, Beside: f.BesideRef(), Docs: docsOf(f), Control: controlOf(f.Name, f.Value(), f.Choices()),
			Short: edit.Shorthand(f.Name), Keyed: slices.Contains(keyed, f.Name),
		}
		for _, p := range f.Parts() {
			ff.Parts = append(ff.Parts, Part{p.Name, p.Doc, controlOf("", p.Value, p.Choices), p.Needed})
		}
		out = append(out, ff)
	}
	return out
}
