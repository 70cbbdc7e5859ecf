// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// kinds are the names of the kinds of checks.
var kinds = func() (all []string) {
	for _, k := range check.Kinds {
		all = append(all, string(k))
	}
	return all
}()

// alone are the kinds that need no value.
var alone = []check.Kind{check.Rouge1, check.Calls, check.Completed, check.Equals, check.Contains, check.Agrees, check.Pairwise}

// checks reads a list of checks. The result is never nil.
func (r *reader) checks(n *source.Node, what string) []check.Spec {
	all := make([]check.Spec, 0, len(n.Content))
	for _, item := range r.list(n, what) {
		if s, ok := r.check(item); ok {
			all = append(all, s)
		}
	}
	return all
}

// check reads one check, and reports what is wrong with it.
func (r *reader) check(n *source.Node) (s check.Spec, ok bool) {
	before := len(*r.problems)
	at := map[string]*source.Node{"kind": n}
	if n.Kind == source.Scalar {
		s.Kind = check.Kind(r.text(n, "a check"))
		if slices.Contains(check.Kinds, s.Kind) && !slices.Contains(alone, s.Kind) {
			r.report(n, definition.CodeMissing, "the check %s needs a value", s.Kind).Hint = fmt.Sprintf("write {%s: …}", s.Kind)
			return s, false
		}
	} else if !r.checkFields(n, &s, at) {
		return s, false
	}
	if len(*r.problems) > before {
		return s, false
	}
	if _, err := check.Compile(s); err != nil {
		r.specError(n, at, err)
		return s, false
	}
	return s, true
}

// checkFields reads a check that is a map: its kind with a value, and the fields that all checks have.
func (r *reader) checkFields(n *source.Node, s *check.Spec, at map[string]*source.Node) bool {
	pairs, ok := r.pairs(n, "a check")
	if !ok {
		return false
	}
	for _, p := range pairs {
		if slices.Contains(kinds, p.Key.Value) {
			if s.Kind != "" {
				r.report(p.Key, definition.CodeConflict, "a check has one kind, got %s and %s", s.Kind, p.Key.Value).Hint = "write two checks"
				return false
			}
			s.Kind = check.Kind(p.Key.Value)
		}
	}
	of := fields{
		{"name", func(n *source.Node) { s.Name = r.text(n, "name") }},
		{"weight", func(n *source.Node) { s.Weight = r.weight(n) }},
		{"min", func(n *source.Node) { s.Min = r.least(n, "min") }},
		{"not", func(n *source.Node) { s.Not = r.boolean(n, "not") }},
		{"informational", func(n *source.Node) { s.Informational = r.boolean(n, "informational") }},
		{"of", func(n *source.Node) { s.Of = r.text(n, "of") }},
	}
	if s.Kind == "" {
		for _, p := range pairs {
			if of.index(p.Key.Value) < 0 {
				r.report(p.Key, definition.CodeField, "there is no check %q", p.Key.Value).Hint = unknownCheck(p.Key.Value)
				return false
			}
		}
		r.report(n, definition.CodeMissing, "a check needs its kind").Hint = "there are " + strings.Join(kinds, ", ")
		return false
	}
	of = append(fields{{string(s.Kind), func(n *source.Node) { r.checkValue(n, s) }}}, of...)
	if s.Kind == check.Calls {
		of = append(of, fields{
			{"args", func(n *source.Node) { s.IgnoreArgs = !r.boolean(n, "args") }},
			{"ignore", func(n *source.Node) { s.Ignore = r.texts(n, "ignore") }},
		}...)
	}
	if s.Judged() {
		of = append(of, r.judgeFields(&s.Model, &s.Samples)...)
	}
	given := r.read(n, "the check "+string(s.Kind), of)
	maps.Copy(at, given)
	if v := given[string(s.Kind)]; v != nil && source.IsNull(v) && !slices.Contains(alone, s.Kind) {
		r.report(v, definition.CodeMissing, "the check %s needs a value", s.Kind)
	}
	return true
}

// unknownCheck returns the hint for a name that no check has.
func unknownCheck(name string) string {
	switch name {
	case "judge", "question", "llm-rubric":
		return "write rubric, with statements that are true of a good answer"
	case "regex", "regexp":
		return "write matches"
	case "icontains":
		return "write matches: (?i)…"
	case "javascript", "python":
		return "write expr, with an expression in CEL"
	}
	return suggest.Hint(name, kinds)
}

// least reads the least value that passes.
func (r *reader) least(n *source.Node, what string) float64 {
	v := r.number(n, what, 0, true)
	if v > 1 {
		r.report(n, definition.CodeValue, "%s must be at most 1, got %s", what, n.Value)
	}
	return v
}

// checkValue reads the value of a check's kind.
func (r *reader) checkValue(n *source.Node, s *check.Spec) {
	kind := string(s.Kind)
	switch s.Kind {
	case check.Equals, check.Contains, check.Matches, check.Rubric:
		s.Texts = r.texts(n, kind)
	case check.Schema:
		s.Schema = r.value(n, kind)
		if n.Kind != source.Map && n.ShortTag() != "!!bool" {
			r.wrong(n, kind, "a JSON Schema")
		}
		r.schema(n)
	case check.Rouge1:
		switch {
		case n.Kind == source.Map:
			r.read(n, kind, fields{{"min", func(n *source.Node) { s.Min = r.least(n, "rouge1.min") }}})
		case n.ShortTag() == "!!bool":
			r.on(n, kind)
		default:
			s.Min = r.least(n, kind)
		}
	case check.Expr:
		s.Expr = r.text(n, kind)
	case check.Calls:
		s.Order = check.Order(r.choice(n, kind, []string{string(check.Exact), string(check.InOrder), string(check.AnyOrder)}))
	case check.Stop:
		s.Reasons = r.texts(n, kind)
	case check.Max:
		l := &check.Limits{}
		s.Max = l
		whole := func(name string, to **int64) func(*source.Node) {
			return func(n *source.Node) { *to = new(r.whole(n, "max."+name, 0, math.MaxInt64)) }
		}
		r.read(n, kind, fields{
			{"cost", func(n *source.Node) { l.Cost = new(r.number(n, "max.cost", 0, false)) }},
			{"seconds", func(n *source.Node) { l.Seconds = new(r.number(n, "max.seconds", 0, false)) }},
			{"tokens", whole("tokens", &l.Tokens)},
			{"calls", whole("calls", &l.Calls)},
			{"iterations", whole("iterations", &l.Iterations)},
		})
	case check.Completed, check.Agrees:
		r.on(n, kind)
	case check.Pairwise:
		if n.ShortTag() == "!!bool" {
			r.on(n, kind)
		} else {
			s.Texts = []string{r.text(n, kind)}
		}
	}
}

// judgeFields are the fields that say who judges.
func (r *reader) judgeFields(model *string, samples *int) fields {
	return fields{
		{"model", func(n *source.Node) {
			if *model = r.text(n, "model"); !strings.Contains(*model, "/") {
				r.report(n, definition.CodeValue, "the model of a judge is a provider and a name, got %q", *model).Hint = "write openai/gpt-5-mini"
			}
		}},
		{"samples", func(n *source.Node) { *samples = int(r.whole(n, "samples", 1, check.MaxSamples)) }},
	}
}

// on reads the value of a check that is only switched on.
func (r *reader) on(n *source.Node, kind string) {
	if !r.boolean(n, kind) {
		r.report(n, definition.CodeValue, "%s cannot be false", kind).Hint = "leave the check out, or write not: true"
	}
}

// specError reports why a check cannot be compiled, at the field that is wrong.
func (r *reader) specError(n *source.Node, at map[string]*source.Node, err error) {
	e, ok := errors.AsType[*check.Error](err)
	if !ok {
		r.report(n, definition.CodeValue, "%v", err)
		return
	}
	field, rest, indexed := strings.Cut(strings.TrimSuffix(e.Field, "]"), "[")
	field, part, _ := strings.Cut(field, ".")
	v, code := at[field], definition.CodeValue
	if v == nil {
		v = n
	}
	if i, err := strconv.Atoi(rest); indexed && err == nil && v.Kind == source.List && i < len(v.Content) {
		v = source.Deref(v.Content[i])
	}
	for _, p := range source.Pairs(v) {
		if p.Key.Value == part {
			v = source.Deref(p.Value)
			break
		}
	}
	place := r.src.Of(v)
	if e.Field == "expr" {
		if code = definition.CodeExpr; e.Line > 0 {
			place = r.src.Within(v, e.Line, e.Column)
		}
	}
	p := r.at(place, code, "%s", e.Message)
	if p.Hint = e.Hint; field == "kind" {
		p.Code, p.Hint = definition.CodeField, unknownCheck(v.Value)
	}
}
