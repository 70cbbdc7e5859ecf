// SPDX-License-Identifier: Apache-2.0

package form

import (
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// Field is how a form asks for a field.
type Field struct {
	Name  string            `json:"name"`
	Types []definition.Type `json:"types,omitzero"` // nil: every agent
	Root  bool              `json:"root,omitzero"`
	Doc   string            `json:"doc"`
	// Value says in words what it can be.
	Value string `json:"value"`
	// Choices are the words that it can be; Bool says that it is true or false, Text that it is a
	// text, which is written with quotes where it needs them, and Long that it can have lines.
	Choices []string `json:"choices,omitzero"`
	Bool    bool     `json:"bool,omitzero"`
	Text    bool     `json:"text,omitzero"`
	Long    bool     `json:"long,omitzero"`
	Parts   []Part   `json:"parts,omitzero"`
}

// Part is a name in a field that can be a map.
type Part struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Doc   string `json:"doc"`
	// Needed says that the map has to have it.
	Needed bool `json:"needed,omitzero"`
}

// long are the texts that people write in lines.
var long = []string{"instructions", "text", "question", "goal", "query", "stdin"}

// Fields are all fields, in the order in which people write them.
func Fields() []Field {
	var out []Field
	for _, f := range definition.Fields() {
		v := f.Value()
		ff := Field{
			Name: f.Name, Types: f.Types, Root: f.Root, Doc: f.Doc, Value: v,
			Text: v == "text" || v == "name", Bool: v == "true or false", Long: slices.Contains(long, f.Name),
		}
		if f.Name == "type" || oneWord(v) {
			ff.Choices = choices(v)
		}
		for _, p := range f.Parts() {
			ff.Parts = append(ff.Parts, Part{p.Name, p.Value, p.Doc, p.Needed})
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
