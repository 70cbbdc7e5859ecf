// SPDX-License-Identifier: Apache-2.0

// Package template fills {{key}} placeholders in prompts, commands and URLs.
//
//	t, err := template.Parse("Improve this:\n{{draft}}\n{{#feedback}}Mind: {{.}}\n{{/feedback}}", template.Options{})
//	if err != nil {
//		return err
//	}
//	prompt, err := t.Execute(func(key string) (any, bool) {
//		v, ok := state[key]
//		return v, ok
//	})
//
// What can be written:
//
//	{{key}}  {{ key }}  {{{key}}}  {{&key}}    the value; nothing is ever HTML-escaped
//	{{key?}}                                   the value, and no note if there is none
//	{{best.score}}  {{analysis.score}}         a dotted key, or a field of a map
//	{{app:k}}  {{artifact.notes.md}}           ADK's prefixes, and iteration:
//	{{#key}}…{{/key}}  {{^key}}…{{/key}}       if and for each, if not; {{.}} is the item, {{.name}} its field
//	{{! words }}                               a comment
//	{key}  {key?}  {app:k}  {artifact.name}    ADK's forms, read too
//
// Sections, comments, their white space and the resolution of names follow the
// Mustache specification, but that a whole dotted name comes before its parts.
// Partials, other delimiters and lambdas do not exist. Braces that hold anything
// else, as those of JSON do, are text.
package template

import (
	"strings"
	"sync/atomic"
)

// Dialect says which braces are placeholders.
type Dialect int

const (
	// Canonical reads {{key}} and ADK's {key}.
	Canonical Dialect = iota
	// Mustache leaves single braces alone, for texts full of code.
	Mustache
)

// Options are the options of Parse. The zero value is the canonical dialect.
type Options struct {
	Dialect Dialect
}

// Template is a parsed text. It may be shared, and must not be copied.
type Template struct {
	nodes []node
	refs  []Ref
	size  atomic.Int64 // of the last filled text: the next one has most likely about the same
}

// Ref is one place where a template names a key.
type Ref struct {
	// Name is the key as written: "draft", "prev.draft", "app:tone".
	Name string
	// Optional is set for {{key?}}, which may lack a value.
	Optional bool
	// Section is set for a name that opens a section, {{#key}} or {{^key}}, which tests whether there
	// is a value.
	Section bool
	// Inner is set inside a section whose items may be maps, where the name may be a field of an item
	// and not a key. Names with a prefix never are.
	Inner bool
	// Single is set for a name in single braces, which may also be code by chance.
	Single bool
	// Line and Column are the position of the tag, from 1; Column counts characters.
	Line, Column int
	// From and To are the bytes of the tag in the text. Close is where the closing tag of a section
	// begins.
	From, To, Close int
}

// NameIn returns the offset of the name in the tag that begins at the given byte of the text: From
// or Close.
func (r *Ref) NameIn(text string, tag int) int { return tag + strings.Index(text[tag:], r.Name) }

// Keys lists the names in the template, in the order of the text. A name that occurs twice is
// listed twice. {{.}} and {{.field}} inside a section mean the item and are left out.
func (t *Template) Keys() []Ref {
	return append([]Ref(nil), t.refs...)
}

// Tags describes what the template reads, in the order of the text: each tag as "{{name}}", "{{#name}}" or "{{^name}}", followed by the
// sections around it, from the inside, such as "{{name}} in {{#customers}}". {{.}} and {{.field}} are among them.
func (t *Template) Tags() []string {
	var all []string
	var add func(nodes []node, around string)
	add = func(nodes []node, around string) {
		for _, n := range nodes {
			mark := map[kind]string{kindSection: "#", kindInverted: "^"}[n.kind]
			if n.kind == kindText {
				continue
			}
			tag := "{{" + mark + n.key.name + "}}" + around
			all = append(all, tag)
			add(n.body, " in "+tag)
		}
	}
	add(t.nodes, "")
	return all
}

// kind is the kind of a node.
type kind uint8

const (
	kindText kind = iota
	kindValue
	kindSection
	kindInverted
)

// node is a piece of text, or a tag with the nodes that it encloses.
type node struct {
	kind kind
	text string // kindText: what to write
	key  key    // otherwise: the name
	body []node // of a section
}
