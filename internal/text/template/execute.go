// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"slices"
	"strings"
)

// MaxText is the largest size of a filled template in bytes. The limit stops a key whose new text
// holds its old text twice from doubling in every iteration.
const MaxText = 16 << 20

// maxAhead limits the memory that Fill allocates in advance, in bytes.
const maxAhead = 64 << 10

// maxWork limits the tags and items of sections that one call of Fill visits, so that nested lists
// without output end too.
const maxWork = 2_000_000

// Result is a filled template.
type Result struct {
	Text string
	// Unset lists the names without a value, which were replaced by nothing, each once, in the order of the text. It
	// leaves out optional names and names of sections.
	Unset []string
}

// Execute fills the template as [Template.Fill] does, without the list of names that had no value.
func (t *Template) Execute(lookup func(key string) (any, bool)) (string, error) {
	res, err := t.Fill(lookup)
	return res.Text, err
}

// Value returns the value of a template that consists of one name, as Fill looks it up. ok is false for another
// template, and for a name without a value.
func (t *Template) Value(lookup func(key string) (any, bool)) (v any, ok bool) {
	if len(t.nodes) != 1 || t.nodes[0].kind != kindValue {
		return nil, false
	}
	return (&filler{lookup: lookup}).resolve(t.nodes[0].key)
}

// Fill returns the text with every name replaced by its value. Braces in a value stay as they are.
// A text without tags is returned unchanged, without allocation.
//
// Outside sections, lookup is called with the full name ("best.score"), then with shorter
// beginnings of it ("best"); the rest of the name is looked up in the maps and structs of the
// value. Inside a section the items come first, the innermost before the others: the first word of
// the name is looked up in an item, and the rest in its value. {{.}} outside sections calls lookup
// with ".".
//
// Strings are written as they are; numbers without an exponent unless they are very large or small
// (7.6, 3); nil as nothing; maps, slices and structs as compact JSON. (ADK prints Go's %v for
// those: map[k:1].)
//
// A section is left out for a missing value, nil, false, "" and an empty list;
// zero and an empty map are values.
//
// Fill fails only if JSON cannot express a value, if the text would be larger than [MaxText] or
// needs millions of repetitions, or if lookup returns an error that has a method Unfillable().
func (t *Template) Fill(lookup func(key string) (any, bool)) (Result, error) {
	return t.FillChecked(lookup, nil)
}

// FillChecked fills the template as [Template.Fill] does, but only with values that check returns. It
// calls check with each value before it writes it, with the name as written and the text before it,
// and with the value of each section before it writes the section; what check returns for a section
// has no effect. {{.}} has the name of its section. A name without a value, and nil, are not checked.
// An error of check ends the filling.
func (t *Template) FillChecked(lookup func(key string) (any, bool), check func(name string, v any, before string) (any, error)) (Result, error) {
	switch {
	case len(t.nodes) == 0:
		return Result{}, nil
	case len(t.nodes) == 1 && t.nodes[0].kind == kindText:
		return Result{Text: t.nodes[0].text}, nil
	}
	if lookup == nil {
		lookup = func(string) (any, bool) { return nil, false }
	}
	f := filler{lookup: lookup, check: check}
	f.out.Grow(int(min(t.size.Load(), maxAhead)))
	err := f.write(t.nodes)
	t.size.Store(int64(f.out.Len()))
	return Result{Text: f.out.String(), Unset: f.unset}, err
}

// filler has the data of one execution.
type filler struct {
	lookup func(string) (any, bool)
	check  func(name string, v any, before string) (any, error) // nil allows every value
	items  []any                                                // what the sections around have pushed, innermost last
	names  []string                                             // of the sections that have pushed them
	out    strings.Builder
	unset  []string
	work   int
}

func (f *filler) write(nodes []node) error {
	if f.work += 1 + len(nodes); f.work > maxWork {
		return fmt.Errorf("its sections repeat their contents more than %d times: use shorter lists, or fewer nested "+
			"sections", maxWork)
	}
	for _, n := range nodes {
		var err error
		switch n.kind {
		case kindText:
			err = f.add(n.text)
		case kindValue:
			err = f.value(n.key)
		case kindSection:
			err = f.section(n)
		case kindInverted:
			if v, _ := f.resolve(n.key); len(elements(v)) == 0 {
				err = f.write(n.body)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) value(k key) error {
	v, ok := f.resolve(k)
	if !ok && !k.optional && !slices.Contains(f.unset, k.name) {
		f.unset = append(f.unset, k.name)
	}
	v, err := f.allowed(k, v)
	if err != nil {
		return err
	}
	s, err := text(v)
	if err != nil {
		return fmt.Errorf("fill in {{%s}}: %w", k.name, err)
	}
	if err := f.add(s); err != nil {
		return fmt.Errorf("fill in {{%s}}: %w", k.name, err)
	}
	return nil
}

// allowed returns the value that check returns for a value.
func (f *filler) allowed(k key, v any) (any, error) {
	if f.check == nil || v == nil {
		return v, nil
	}
	name := k.name
	if k.item && len(k.parts) == 0 && len(f.names) > 0 {
		name = f.names[len(f.names)-1]
	}
	return f.check(name, v, f.out.String())
}

func (f *filler) add(s string) error {
	if f.out.Len()+len(s) > MaxText {
		return fmt.Errorf("the text is larger than %d MiB, the limit for templates: keep less in the state, or use a "+
			"command that works on files", MaxText>>20)
	}
	f.out.WriteString(s)
	return nil
}

func (f *filler) section(n node) error {
	v, _ := f.resolve(n.key)
	if _, err := f.allowed(n.key, v); err != nil {
		return err
	}
	for _, item := range elements(v) {
		f.items, f.names = append(f.items, item), append(f.names, n.key.name)
		err := f.write(n.body)
		f.items, f.names = f.items[:len(f.items)-1], f.names[:len(f.names)-1]
		if err != nil {
			return err
		}
	}
	return nil
}

// resolve finds the value of a name.
func (f *filler) resolve(k key) (any, bool) {
	if k.item {
		if len(f.items) > 0 {
			return descend(f.items[len(f.items)-1], k.parts)
		}
		if len(k.parts) > 0 {
			return nil, false
		}
		return f.lookup(k.name)
	}
	for _, item := range slices.Backward(f.items) {
		if v, ok := field(item, k.parts[0]); ok {
			return descend(v, k.parts[1:])
		}
	}
	name := k.name
	for n := len(k.parts); n > 0; n-- {
		if v, ok := f.lookup(name); ok {
			return descend(v, k.parts[n:])
		}
		if n > 1 {
			name = name[:len(name)-len(k.parts[n-1])-1]
		}
	}
	return nil, false
}
