// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

// loopField reads a field that only loops have, and reports whether it is one.
func (r *reader) loopField(a *Agent, p pair) bool {
	own := p.key == "instructions" && a.Type == TypeLoop
	if !own && !slices.Equal(fieldNamed(p.key).Types, []Type{TypeLoop}) {
		return false
	}
	l := loopOf(a)
	switch p.key {
	case "goal":
		l.Goal, _ = r.text(p.value, p.key)
	case "instructions":
		l.Instructions, _ = r.text(p.value, p.key)
	case "max_iterations":
		var ok bool
		if l.MaxIterations, ok = r.count(p.value, p.key); !ok {
			l.MaxIterations = DefaultMaxIterations
		}
	case "max_consecutive_failures":
		l.MaxConsecutiveFailures, _ = r.count(p.value, p.key)
	case "stop_check":
		r.stopCheck(l, p.value)
	case "order":
		r.order(a, p.value)
	case "stop_when":
		l.StopWhen = r.condition(a, p.value, "stop_when")
	case "score":
		l.Score = r.score(a, p.value)
	default:
		r.limitField(a, p)
	}
	return true
}

func (r *reader) stopCheck(l *Loop, n *yaml.Node) {
	moments := []string{string(loop.EachIteration), string(loop.EachStep)}
	text, ok := r.text(n, "stop_check")
	if ok && !slices.Contains(moments, text) {
		r.report(r.src.of(n), CodeValue, "stop_check must be iteration or step, got %q", text).
			Hint = didYouMean(text, moments, "%q", "")
		return
	}
	l.StopCheck = loop.StopCheck(text)
}

func (r *reader) order(a *Agent, n *yaml.Node) {
	items, good := r.items(n, "order")
	for i, item := range items {
		field := fmt.Sprintf("order[%d]", i)
		name, ok := r.text(item, field)
		good = good && ok
		a.nodes[field] = item
		a.Loop.Order = append(a.Loop.Order, name)
	}
	if !good {
		a.Loop.Order = nil
	}
}

// condition reads an expression, or a map of one of when, any, all and not,
// perhaps with for, or of a phrase and who
// says it; nil if it cannot be read.
func (r *reader) condition(a *Agent, n *yaml.Node, field string) *loop.Condition {
	a.nodes[field] = n
	if n.Kind == yaml.ScalarNode {
		text, ok := r.words(n, field)
		if !ok {
			return nil
		}
		if text == "" {
			r.report(r.src.of(n), CodeValue, "%s is an empty expression", field)
			return nil
		}
		return &loop.Condition{Expr: text}
	}
	ps, ok := r.pairs(n, field)
	if !ok {
		return nil
	}
	if slices.ContainsFunc(ps, func(p pair) bool { return p.key == "text" || p.key == "of" }) {
		return r.said(a, n, field, ps)
	}
	c, given := &loop.Condition{}, []string{}
	for _, p := range ps {
		f := field + "." + p.key
		switch p.key {
		case "when":
			if inner := r.condition(a, p.value, f); inner != nil && p.value.Kind == yaml.ScalarNode {
				c.Expr = inner.Expr
				a.nodes[field] = p.value
			} else if inner != nil {
				r.wrong(p.value, f, "an expression")
				ok = false
			}
		case "any":
			c.Any = r.conditions(a, p.value, f)
		case "all":
			c.All = r.conditions(a, p.value, f)
		case "not":
			c.Not = r.condition(a, p.value, f)
		case "for":
			c.For, _ = r.count(p.value, f)
			continue
		default:
			keys := []string{"when", "any", "all", "not", "for", "text", "of"}
			r.report(r.src.of(p.at), CodeField, "unknown field %q of a condition", p.key).
				Hint = didYouMean(p.key, keys, "%q", "a condition has when, any, all or not, and for; or text and of")
			ok = false
			continue
		}
		given = append(given, p.key)
	}
	if len(given) != 1 && ok {
		r.report(r.src.of(n), CodeStop, "%s needs exactly one of when, any, all and not", field)
	}
	if len(given) != 1 || c.Expr == "" && len(c.Any) == 0 && len(c.All) == 0 && c.Not == nil {
		return nil
	}
	return c
}

func (r *reader) conditions(a *Agent, n *yaml.Node, field string) []loop.Condition {
	a.nodes[field] = n
	items, ok := r.items(n, field)
	if ok && len(items) == 0 {
		r.report(r.src.of(n), CodeStop, "%s is an empty list", field)
	}
	var cs []loop.Condition
	for i, item := range items {
		c := r.condition(a, item, fmt.Sprintf("%s[%d]", field, i))
		if c == nil {
			c = &loop.Condition{Expr: "false"} // keeps the places of the others
		}
		cs = append(cs, *c)
	}
	return cs
}

// conditionVariables are what loop's expressions can read; see loop.Condition.
var conditionVariables = []expr.Var{
	{Name: "state", Type: expr.Map},
	{Name: "score"},
	{Name: "scores", Type: expr.ListDouble},
	{Name: "iteration", Type: expr.Int},
	{Name: "usage", Type: expr.Map},
	{Name: "elapsed", Type: expr.Double},
}
