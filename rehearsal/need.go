// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"maps"
	"slices"

	"google.golang.org/genai"
)

// need is what the expressions and texts of a definition take a value for that a
// stand-in leaves: its kind, its fields, what is in the list. Several names may
// stand for the same one.
type need struct {
	kind   kind
	fields map[string]*need
	item   *need // of a list
	// parsed says that it is a text which holds JSON, and that the rest is about
	// what is in it.
	parsed bool
	near   []any         // what it is compared with
	read   bool          // an expression reads it
	word   bool          // it is one of a few words, such as "done"
	schema *genai.Schema // that it has to fit; nil if the file has none
	only   []any         // all that it can be; nil for anything
}

// kind is what a value is taken for. The later ones are known better.
type kind uint8

const (
	anything kind = iota
	yesNo
	number
	words
	list
	object
)

// field is the need of a part.
func (n *need) field(name string) *need {
	if n.fields == nil {
		n.fields = make(map[string]*need)
	}
	f := n.fields[name]
	if f == nil {
		f = &need{}
		if n.schema != nil {
			f.schema = n.schema.Properties[name]
		}
		n.fields[name] = f
	}
	return f
}

// items is the need of what is in a list.
func (n *need) items() *need {
	if n.item == nil {
		n.item = &need{}
		if n.schema != nil {
			n.item.schema = n.schema.Items
		}
	}
	return n.item
}

// take notes for what the value is taken.
func (n *need) take(k kind) {
	if n.kind == anything {
		n.kind = k
	}
}

// structured reports whether the value has parts.
func (n *need) structured() bool { return n != nil && (len(n.fields) > 0 || n.item != nil) }

// leaves are the parts of a value that have none themselves, in order; of a list
// also the list itself, which may be empty.
func (n *need) leaves() []*need {
	if !n.structured() {
		return []*need{n}
	}
	var all []*need
	for _, name := range slices.Sorted(maps.Keys(n.fields)) {
		all = append(all, n.fields[name].leaves()...)
	}
	if n.item != nil {
		all = append(append(all, n), n.item.leaves()...)
	}
	return all
}

// picks are the values of leaves that are not left to what is usual.
type picks map[*need]any

// value is one that the need is met by, and the schema: words where a text is asked
// for.
func (n *need) value(s *genai.Schema, text string, some picks) any {
	if n == nil {
		return instance(s, text)
	}
	v, picked := some[n]
	switch {
	case picked && s != nil:
		v = fit(s, v, text)
	case picked:
	case s != nil:
		v = n.within(instance(s, text), s, text, some)
	case len(n.fields) > 0:
		v = n.within(nil, nil, text, some)
	case n.item != nil:
		v = []any{n.item.value(nil, text, some)}
	default:
		v = n.usual(text)
	}
	if n.parsed && s == nil {
		return encode(v)
	}
	return v
}

// bare is the need of what is in a text, where that is made a text by others.
func (n *need) bare() *need {
	own := *n
	own.parsed = false
	return &own
}

// within puts the parts that are needed into a value.
func (n *need) within(v any, s *genai.Schema, text string, some picks) any {
	of := func(name string) *genai.Schema {
		if s == nil {
			return nil
		}
		return s.Properties[name]
	}
	switch m, isMap := v.(map[string]any); {
	case isMap || s == nil:
		if m == nil {
			m = make(map[string]any)
		}
		for name, f := range n.fields {
			if sub := of(name); sub != nil || s == nil {
				m[name] = f.value(sub, text, some)
			}
		}
		return m
	case n.item != nil:
		if all, isList := v.([]any); isList {
			for i := range all {
				all[i] = n.item.value(s.Items, text, some)
			}
		}
	}
	return v
}

// usual is what a leaf is if nothing asks for something else.
func (n *need) usual(text string) any {
	switch {
	case len(n.only) > 0:
		return n.only[0]
	case n.kind == words && n.word:
		return "made up"
	case n.kind == words:
		return text
	case n.kind == yesNo:
		return false
	case n.kind == list:
		return []any{text}
	case n.kind == object:
		return map[string]any{}
	}
	return 1.0
}
