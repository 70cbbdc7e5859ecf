// SPDX-License-Identifier: Apache-2.0

package study

import (
	"maps"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
)

// need is what is known of a value that a stand-in leaves, from the expressions and texts that read
// it: its kind, its fields, its items. Several names may share one need.
type need struct {
	kind   kind
	fields map[string]*need
	item   *need // of each item of a list
	// parsed means that the value is a text with JSON in it, and that the rest describes the JSON.
	parsed bool
	near   []any         // values that it is compared with
	read   bool          // an expression reads it
	word   bool          // it is a word, such as "done"
	schema *genai.Schema // nil if the file has none
	only   []any         // all possible values; nil means any
}

// kind is the kind of a value. Later kinds are more certain.
type kind uint8

const (
	anything kind = iota
	yesNo
	number
	words
	list
	object
)

// field is the need of a field.
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

// items is the need of the items of a list.
func (n *need) items() *need {
	if n.item == nil {
		n.item = &need{}
		if n.schema != nil {
			n.item.schema = n.schema.Items
		}
	}
	return n.item
}

// take sets the kind of the value, unless it is known.
func (n *need) take(k kind) {
	if n.kind == anything {
		n.kind = k
	}
}

// structured reports whether the value has fields or items.
func (n *need) structured() bool { return n != nil && (len(n.fields) > 0 || n.item != nil) }

// leaves returns the parts of a value that have no parts, in order. A list is a leaf too, as it may
// be empty.
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

// picks are values of leaves that replace the usual ones.
type picks map[*need]any

// value returns a value that meets the need and fits its schema. Its texts are the given one.
func (n *need) value(text string, some picks) any {
	s := n.schema
	v, picked := some[n]
	switch {
	case picked && s != nil:
		v = fit(s, v, text)
	case picked:
	case s != nil:
		v = n.within(instance(s, text), text, some)
	case len(n.fields) > 0:
		v = n.within(nil, text, some)
	case n.item != nil:
		v = []any{n.item.value(text, some)}
	default:
		v = n.usual(text)
	}
	if n.parsed && s == nil {
		return Encode(v)
	}
	return v
}

// bare is the need of the JSON in a text, for a caller that encodes it.
func (n *need) bare() *need {
	own := *n
	own.parsed = false
	return &own
}

// within adds the needed fields and items to a value. Of fields it adds those that the schema has.
func (n *need) within(v any, text string, some picks) any {
	switch m, isMap := v.(map[string]any); {
	case isMap || n.schema == nil:
		if m == nil {
			m = make(map[string]any)
		}
		for name, f := range n.fields {
			if n.schema == nil || f.schema != nil {
				m[name] = f.value(text, some)
			}
		}
		return m
	case n.item != nil:
		if all, isList := v.([]any); isList {
			for i := range all {
				all[i] = n.item.value(text, some)
			}
		}
	}
	return v
}

// usual is the value of a leaf without a pick.
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

// needs are the needs of all stand-ins: of the values of their output keys, and of their results.
type needs struct {
	output, result map[string]*need            // by agent
	Side           map[string]map[string]*need // by agent and key
}

func readNeeds(c *Cast) *needs {
	r := &reading{keys: make(map[string][]*need)}
	n := &needs{output: make(map[string]*need), result: make(map[string]*need), Side: make(map[string]map[string]*need)}
	for _, a := range c.Leaves(c.Def.Root) {
		if !Reaches(a) {
			continue
		}
		out := &need{}
		if a.LLM != nil {
			out.schema = a.LLM.OutputSchema
		}
		if a.Human != nil {
			asks(a, out)
		}
		n.output[a.Name], n.result[a.Name] = out, resultNeed(a, out)
		if a.OutputKey != "" {
			r.keys[a.OutputKey] = append(r.keys[a.OutputKey], out)
		}
		if a.ResultKey != "" {
			r.keys[a.ResultKey] = append(r.keys[a.ResultKey], n.result[a.Name])
		}
	}
	c.sides(r, n)
	for range 3 { // an expression may read what another one computes
		for a := range c.Def.Root.All {
			r.agent(a, n.result[a.Name])
		}
	}
	return n
}

// asks sets the fields of a person's answer.
func asks(a *definition.Agent, out *need) {
	if Approving(a) {
		out.kind = object
		out.field("approved").kind, out.field("reason").kind = yesNo, words
		return
	}
	for _, o := range a.Human.Options {
		out.only = append(out.only, o)
	}
}

// resultNeed is the need of a task's result.
func resultNeed(a *definition.Agent, out *need) *need {
	n := &need{kind: object}
	code := func(name string, codes []int) {
		f := n.field(name)
		f.kind = number
		if len(codes) == 1 { // with any other code the real task fails; its stand-in says "not yet"
			codes = append(slices.Clone(codes), codes[0]+1)
		}
		for _, c := range codes {
			f.only = append(f.only, float64(c))
		}
	}
	switch {
	case a.Command != nil:
		code("exit_code", okCodes(a))
		n.field("stdout").kind, n.field("stderr").kind = words, words
	case a.HTTP != nil:
		code("status", okStatus(a))
		n.field("body").kind, n.field("headers").kind = words, object
	default:
		n.field("text").kind = words
	}
	if jsonTask(a) && a.Human == nil {
		n.fields["json"] = out
	}
	return n
}
