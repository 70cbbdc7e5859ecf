// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
)

// play is one run of a scene.
type play struct {
	*cast
	*scene
	script []scripted.Answer
}

// line is what a stand-in leaves behind.
type line struct {
	words  string
	value  any            // for its output key; of a JSON task not a text
	result map[string]any // fields of a task's result, by path
	leave  bool
}

// scripted is the answer of the config's script for an agent: the n-th one that
// names it is for iteration n, and the last one for those behind it.
func (p *play) scripted(a *definition.Agent, at place) (scripted.Answer, bool) {
	var own []scripted.Answer
	for _, ans := range p.script {
		if ans.Agent == a.Name {
			own = append(own, ans)
		}
	}
	if len(own) == 0 {
		return scripted.Answer{}, false
	}
	return own[min(at.iteration(), len(own))-1], true
}

// line is what an agent says in a place, in the form that is asked of it. Where
// nothing goes wrong a script has the say; else what the fault needs is put into
// what the script has.
func (p *play) line(a *definition.Agent, at place) line {
	form := &form{words: speech(a, at), fields: make(map[string]any)}
	if a.LLM != nil {
		form.schema = a.LLM.OutputSchema
	}
	own, scripted := p.scripted(a, at)
	if scripted {
		form.words = own.Text
		var v any
		if json.Unmarshal([]byte(own.Text), &v) == nil {
			form.base = v
		}
	} else {
		for _, name := range p.vars.fields[a.OutputKey] {
			form.fields[name] = 1.0
		}
	}
	changed := false
	if p.words != nil {
		if other, ok := p.words(a, at); ok {
			form.words, changed = other, true
		}
	}
	out := line{}
	if !scripted || changed || p.never || p.score != nil {
		for l := p.loopAround(a); l != nil; l = p.loopAround(l) {
			out.leave = p.wants(a, l, at, form) || out.leave
		}
	}
	out.value, out.result = form.value(jsonTask(a)), form.results()
	if text, ok := out.value.(string); ok {
		out.words = text
		return out
	}
	out.words = encode(out.value)
	if !jsonTask(a) {
		out.value = out.words
	}
	return out
}

// wants adds to an agent's answer what a loop around it reads there, and reports
// whether it is the agent's part to leave that loop now.
func (p *play) wants(a, l *definition.Agent, at place, f *form) (leave bool) {
	g, n := p.goals[l.Name], at.loops[l.Name]
	w, end := p.wayOf(p.cast, l)
	if s := l.Loop.Score; s != nil && slices.Contains(g.scorers, a) {
		sc := scaleOf(s)
		v := sc.at(0.4) // it stands still
		switch {
		case p.target == l && p.score != nil:
			v = p.score(at)
		case end > 0:
			v = sc.course(w, n, end)
		}
		p.grade(a, s, v, f)
	}
	now := end > 0 && n >= end
	some := g.unmet
	if now && w.reason == loop.ReasonCondition {
		some = g.met
	}
	f.take(a, some)
	some = g.open[a.Name]
	if now && w.by == a {
		some, leave = g.done[a.Name], true
	}
	f.take(a, some)
	return leave
}

// grade puts a score into an answer, where the loop will look for it.
func (p *play) grade(a *definition.Agent, s *loop.Score, v float64, f *form) {
	if s.Expr != "" {
		free := slices.DeleteFunc(paths(s.Expr), func(p path) bool {
			key, _ := p.key()
			return p.root != "state" || key != a.OutputKey
		})
		if some, ok := solveNumber(s.Expr, v, free, conditionVals(p.def.State, 1)); ok {
			f.take(a, some)
		}
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
	case f.schema == nil && f.base == nil && len(f.fields) == 0:
		f.lead = decimal(v)
	case len(s.Dimensions) == 0:
		f.set(field, v)
	}
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// form is how an answer looks: words, or a value with fields.
type form struct {
	words  string
	lead   string // a number, or a label and one, before the words
	schema *genai.Schema
	fields map[string]any // by path
	whole  any
	base   any // what a script has, if that is JSON
}

// take adds the values that are this agent's to leave.
func (f *form) take(a *definition.Agent, some values) {
	for _, p := range some.sorted() {
		key, rest := p.key()
		switch {
		case p.root == "result" && key == "json" && rest != "":
			f.set(rest, some[p])
		case p.root == "result":
			f.set(resultPrefix+p.fields, some[p])
		case key == "" || key != a.OutputKey && key != a.ResultKey:
		case key == a.ResultKey:
			f.set(resultPrefix+rest, some[p])
		case rest == "":
			f.whole = some[p]
		default:
			f.set(rest, some[p])
		}
	}
}

func (f *form) set(field string, v any) {
	if s, ok := f.property(field); ok {
		v = fit(s, v)
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
	case base == nil && f.schema != nil:
		base = instance(f.schema, f.words)
	case f.whole != nil:
		return f.whole
	}
	some := false
	for _, field := range slices.Sorted(maps.Keys(f.fields)) {
		if !strings.HasPrefix(field, resultPrefix) {
			base, some = put(base, field, false, f.fields[field]), true
		}
	}
	if m, ok := base.(map[string]any); ok && f.schema == nil && f.base == nil {
		m["note"] = f.words
	}
	switch {
	case task && base == nil:
		return map[string]any{"note": f.words}
	case task:
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

const resultPrefix = "result."

// results are the fields of a task's result.
func (f *form) results() map[string]any {
	all := make(map[string]any)
	for field, v := range f.fields {
		if own, ok := strings.CutPrefix(field, resultPrefix); ok {
			all[own] = v
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
