// SPDX-License-Identifier: Apache-2.0

package study

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

// Form is the form of an answer: words, or a value with fields.
type Form struct {
	Words  string
	lead   string // before the words: a number, or a label and a number
	schema *genai.Schema
	Need   *need          // what others read of it; nil if that does not matter
	result *need          // what others read of a task's result
	Picks  picks          // values that parts of it must have
	Fields map[string]any // by path
	Base   any            // the JSON of the script
}

// Pick adds values that parts of answers must have, of this agent and of others.
func (f *Form) Pick(some picks) {
	if f.Picks == nil {
		f.Picks = make(picks)
	}
	maps.Copy(f.Picks, some)
}

// Say makes the answer one of a script.
func (f *Form) Say(text string) {
	f.Need, f.Words = nil, text
	_ = json.Unmarshal([]byte(text), &f.Base) // a text without JSON has no base
}

func (f *Form) set(field string, v any) {
	if s, ok := f.property(field); ok {
		v = fit(s, v, f.Words)
	}
	f.Fields[field] = v
}

// property is the schema of a field; ok is false if it has none.
func (f *Form) property(field string) (s *genai.Schema, ok bool) {
	s = f.schema
	for name := range strings.SplitSeq(field, ".") {
		if s == nil {
			return nil, false
		}
		s = s.Properties[name]
	}
	return s, s != nil
}

// value is the answer. A JSON value is written as text, except for a task with json: true.
func (f *Form) value(task bool) any {
	base := f.Base
	switch {
	case base != nil:
	case f.schema != nil:
		base = f.compose(f.Need)
	case f.Picks[f.Need] != nil:
		base = f.Picks[f.Need]
	case f.Need != nil && (len(f.Need.only) > 0 || f.Need.word):
		base = f.Need.usual(f.Words)
	case f.Need.structured() || task && f.Need != nil && f.Need.kind != anything:
		base = f.compose(f.Need.bare())
	}
	some := false
	for _, field := range slices.Sorted(maps.Keys(f.Fields)) {
		base, some = put(base, field, f.Fields[field]), true
	}
	if m, ok := base.(map[string]any); ok && f.schema == nil && f.Base == nil {
		if _, done := lengthen(m, nil, f.Words, f.Words); !done { // it has no words yet
			m["note"] = f.Words
		}
	}
	switch {
	case task && base == nil:
		return map[string]any{"note": f.Words}
	case task:
		return base
	case f.lead == "" && !some && isText(base) && f.schema == nil:
		return base
	case f.lead != "" && some:
		return f.lead + "\n" + Encode(base)
	case f.lead != "":
		return f.lead + "\n" + f.Words
	case base != nil:
		return Encode(base)
	}
	return f.Words
}

// longText is the length, in bytes, above which a text appears only once in an answer.
const longText = 1 << 10

// compose returns an answer with fields, in the form of a need or, without one, of the schema.
func (f *Form) compose(n *need) any {
	if n == nil {
		n = &need{schema: f.schema}
	}
	if len(f.Words) <= longText {
		return n.value(f.Words, f.Picks)
	}
	short := f.Words[:strings.IndexAny(f.Words, ".!?")+1]
	v, _ := lengthen(n.value(short, f.Picks), n.schema, short, f.Words)
	return v
}

// lengthen replaces the first text that equals short by long, and reports whether there was one.
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
		for _, name := range SortedKeys(v) {
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

// results are the chosen fields of a task's result, without json.
func (f *Form) results() map[string]any {
	all := make(map[string]any)
	if f.result != nil {
		for field, n := range f.result.fields {
			if v, ok := f.Picks[n]; ok && field != "json" {
				all[field] = v
			}
		}
	}
	return all
}

func Encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// Form is the form of an agent's answer before a loop asks anything of it.
func (c *Cast) Form(a *definition.Agent, at Place) *Form {
	f := &Form{Words: Speech(a, at), Need: c.Needs.output[a.Name], result: c.Needs.result[a.Name],
		Fields: make(map[string]any)}
	if a.LLM != nil {
		f.schema = a.LLM.OutputSchema
	}
	return f
}

// Grade puts a score into the answer, where the loop reads it.
func (f *Form) Grade(s *loop.Score, v float64) {
	if s.Expr != "" { // the study chooses the values that it is computed from
		return
	}
	if f.schema != nil && (typeOf(f.schema) == genai.TypeNumber || typeOf(f.schema) == genai.TypeInteger) {
		f.Base = within(f.schema, v)
		return
	}
	if s.Label != "" {
		f.lead = s.Label + " " + Decimal(v)
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
	case f.schema == nil && f.Base == nil && len(f.Fields) == 0 && !f.Need.structured():
		f.lead = Decimal(v)
	case len(s.Dimensions) == 0:
		f.set(field, v)
	}
}

// Line is the answer in this form.
func (f *Form) Line(a *definition.Agent) Line {
	out := Line{Value: f.value(jsonTask(a)), result: f.results()}
	if text, ok := out.Value.(string); ok {
		out.Words = text
		if a.LLM != nil && a.LLM.OutputSchema != nil {
			_ = json.Unmarshal([]byte(text), &out.Value) // the state has the value; an answer of a script may be no JSON
		}
		return out
	}
	out.Words = Encode(out.Value)
	switch m, _ := out.Value.(map[string]any); {
	case Approving(a) && m["approved"] == true:
		out.Words = "approved"
	case Approving(a):
		out.Words = "rejected"
	case !jsonTask(a):
		out.Value = out.Words
	}
	return out
}

// put returns a value with one field set. If the value is a text, the field is set in its JSON.
func put(old any, field string, v any) any {
	if text, ok := old.(string); ok {
		var inner any
		_ = json.Unmarshal([]byte(text), &inner) // a text without JSON is replaced
		old = inner
	}
	m, _ := old.(map[string]any)
	m = maps.Clone(m)
	if m == nil {
		m = make(map[string]any)
	}
	first, rest, deeper := strings.Cut(field, ".")
	if deeper {
		v = put(m[first], rest, v)
	}
	m[first] = v
	return m
}
