// SPDX-License-Identifier: Apache-2.0

package form

import (
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/definition/edit"
)

// Field describes a field and its input in a form.
type Field struct {
	Name  string            `json:"name"`
	Types []definition.Type `json:"types,omitzero"` // nil: every agent
	Root  bool              `json:"root,omitzero"`
	Doc   string            `json:"doc"`
	// Beside says that it can stand beside a ref.
	Beside bool `json:"beside,omitzero"`
	// Docs explain the field for one type of agent, where Doc is about several.
	Docs map[definition.Type]string `json:"docs,omitzero"`
	Control
	// Parts are the names in it, if it can be a map. Short is the one that a plain value stands for.
	Parts []Part `json:"parts,omitzero"`
	Short string `json:"short,omitzero"`
	// Keyed says that it is a map of maps: people choose the names, and each has the parts.
	Keyed bool `json:"keyed,omitzero"`
}

// Part is a name in a field that can be a map.
type Part struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	Control
	// Needed says that the map has to have it.
	Needed bool `json:"needed,omitzero"`
}

// Control says what a value can be, and so what a form shows for it.
type Control struct {
	// Value says in words what it can be.
	Value string `json:"value"`
	// Choices are the words that it can be; Bool says that it is true or false, Text that it is a
	// text, which is written with quotes where it needs them, and Long that it can have lines.
	Choices []string `json:"choices,omitzero"`
	Bool    bool     `json:"bool,omitzero"`
	Text    bool     `json:"text,omitzero"`
	Long    bool     `json:"long,omitzero"`
}

func controlOf(name, value string) Control {
	c := Control{Value: value, Text: value == "text" || value == "name", Bool: value == "true or false", Long: slices.Contains(long, name)}
	if name == "type" || oneWord(value) {
		c.Choices = choices(value)
	}
	return c
}

// keyed are the fields that are maps of maps.
var keyed = []string{"inputs", "shapes", "prices"}

// long are the texts that people write in lines.
var long = []string{"instructions", "text", "question", "goal", "query", "stdin"}

// Fields returns all fields, in the order in which people write them.
func Fields() []Field {
	var out []Field
	for _, f := range definition.Fields() {
		ff := Field{
			Name: f.Name, Types: f.Types, Root: f.Root, Doc: f.Doc, Beside: f.BesideRef(), Docs: docsOf(f), Control: controlOf(f.Name, f.Value()),
			Short: edit.Shorthand(f.Name), Keyed: slices.Contains(keyed, f.Name),
		}
		for _, p := range f.Parts() {
			ff.Parts = append(ff.Parts, Part{p.Name, p.Doc, controlOf("", p.Value), p.Needed})
		}
		out = append(out, ff)
	}
	return out
}

// kinds are words for values that are not the values themselves.
var kinds = []string{"text", "name", "map", "list", "number", "whole number", "duration", "any value", "expression",
	"true or false", "size", "list of texts", "condition", "true", "false"}

// oneWord reports whether a value is one of some words: "stop, skip_step or next_iteration".
func oneWord(value string) bool {
	c := choices(value)
	return len(c) > 1 && !slices.ContainsFunc(c, func(w string) bool { return slices.Contains(kinds, w) || strings.ContainsAny(w, " {[\"<") })
}

func choices(value string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(value, " or ", ", "), func(r rune) bool { return r == ',' || r == ' ' })
}
