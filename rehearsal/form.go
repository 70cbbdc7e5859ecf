// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
)

// form is how an answer looks: words, or a value with fields.
type form struct {
	words  string
	lead   string // a number, or a label and one, before the words
	schema *genai.Schema
	need   *need          // what is read of it; nil if that does not matter
	result *need          // the same of a task's result
	picks  picks          // what parts of it are to be
	fields map[string]any // by path
	base   any            // what a script has, if that is JSON
}

// pick takes choices, of this agent and of others.
func (f *form) pick(some picks) {
	if f.picks == nil {
		f.picks = make(picks)
	}
	maps.Copy(f.picks, some)
}

func (f *form) set(field string, v any) {
	if s, ok := f.property(field); ok {
		v = fit(s, v, f.words)
	}
	f.fields[field] = v
}

// property is the schema of a field; ok is false if there is none.
func (f *form) property(field string) (s *genai.Schema, ok bool) {
	s = f.schema
	for name := range strings.SplitSeq(field, ".") {
		if s == nil {
			return nil, false
		}
		s = s.Properties[name]
	}
	return s, s != nil
}

// value is the answer. One that is JSON is a text, unless it is a JSON task's.
func (f *form) value(task bool) any {
	base := f.base
	switch {
	case base != nil:
	case f.schema != nil:
		base = f.compose(f.need, f.schema)
	case f.picks[f.need] != nil:
		base = f.picks[f.need]
	case f.need != nil && (len(f.need.only) > 0 || f.need.word):
		base = f.need.usual(f.words)
	case f.need.structured() || task && f.need != nil && f.need.kind != anything:
		base = f.compose(f.need.bare(), nil)
	}
	some := false
	for _, field := range slices.Sorted(maps.Keys(f.fields)) {
		base, some = put(base, field, f.fields[field]), true
	}
	if m, ok := base.(map[string]any); ok && f.schema == nil && f.base == nil {
		if _, done := lengthen(m, nil, f.words, f.words); !done { // it says nothing yet
			m["note"] = f.words
		}
	}
	switch {
	case task && base == nil:
		return map[string]any{"note": f.words}
	case task:
		return base
	case f.lead == "" && !some && isText(base) && f.schema == nil:
		return base
	case f.lead != "" && some:
		return f.lead + "\n" + encode(base)
	case f.lead != "":
		return f.lead + "\n" + f.words
	case base != nil:
		return encode(base)
	}
	return f.words
}

// A text of more bytes than that stands only once in an answer that has several.
const longText = 1 << 10

// compose is an answer with parts.
func (f *form) compose(n *need, s *genai.Schema) any {
	if len(f.words) <= longText {
		return n.value(s, f.words, f.picks)
	}
	short := f.words[:strings.IndexAny(f.words, ".!?")+1]
	v, _ := lengthen(n.value(s, short, f.picks), s, short, f.words)
	return v
}

// lengthen puts a long text in place of the first short one.
func lengthen(v any, s *genai.Schema, short, long string) (any, bool) {
	part := func(name string) *genai.Schema {
		if s == nil {
			return nil
		}
		return s.Properties[name]
	}
	switch v := v.(type) {
	case string:
		switch {
		case v != short:
		case s == nil:
			return long, true
		default:
			return spell(s, long), true
		}
	case map[string]any:
		for _, name := range sortedKeys(v) {
			if own, done := lengthen(v[name], part(name), short, long); done {
				v[name] = own
				return v, true
			}
		}
	case []any:
		var items *genai.Schema
		if s != nil {
			items = s.Items
		}
		for i := range v {
			if own, done := lengthen(v[i], items, short, long); done {
				v[i] = own
				return v, true
			}
		}
	}
	return v, false
}

func isText(v any) bool {
	_, text := v.(string)
	return text
}

// results are the fields of a task's result.
func (f *form) results() map[string]any {
	all := make(map[string]any)
	if f.result != nil {
		for field, n := range f.result.fields {
			if v, ok := f.picks[n]; ok && field != "json" {
				all[field] = v
			}
		}
	}
	return all
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// form is how an agent's answer looks before anything is asked of it.
func (c *cast) form(a *definition.Agent, at place) *form {
	f := &form{words: speech(a, at), need: c.needs.output[a.Name], result: c.needs.result[a.Name], fields: make(map[string]any)}
	if a.LLM != nil {
		f.schema = a.LLM.OutputSchema
	}
	return f
}

// grade puts a score into an answer, where the loop will look for it.
func (c *cast) grade(a *definition.Agent, s *loop.Score, v float64, f *form) {
	if s.Expr != "" { // the study sees to it
		return
	}
	if f.schema != nil && (typeOf(f.schema) == genai.TypeNumber || typeOf(f.schema) == genai.TypeInteger) {
		f.base = within(f.schema, v)
		return
	}
	if s.Label != "" {
		f.lead = s.Label + " " + decimal(v)
	}
	inside := ""
	if f.schema != nil && f.schema.Properties["dimensions"] != nil {
		inside = "dimensions."
	}
	for _, name := range s.Dimensions {
		f.set(inside+name, v)
	}
	if s.DimensionTarget != nil && len(s.Dimensions) == 0 {
		f.set("dimensions.quality", v)
	}
	field := s.Field
	if field == "" {
		field = "score"
	}
	_, named := f.property(field)
	switch {
	case named, s.Field != "":
		f.set(field, v)
	case f.schema != nil && len(s.Dimensions) > 0, s.Label != "":
	case f.schema == nil && f.base == nil && len(f.fields) == 0 && !f.need.structured():
		f.lead = decimal(v)
	case len(s.Dimensions) == 0:
		f.set(field, v)
	}
}

// line is what comes of a form.
func (f *form) line(a *definition.Agent) line {
	out := line{value: f.value(jsonTask(a)), result: f.results()}
	if text, ok := out.value.(string); ok {
		out.words = text
		return out
	}
	out.words = encode(out.value)
	switch m, _ := out.value.(map[string]any); {
	case approving(a) && m["approved"] == true:
		out.words = "approved"
	case approving(a):
		out.words = "rejected"
	case !jsonTask(a):
		out.value = out.words
	}
	return out
}
