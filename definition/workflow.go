// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/loop"
)

func conditionRef() shape { return by("condition") }

// condition reads an expression, or a map of one of when, any, all and not,
// perhaps with for, or of a phrase and who
// says it; nil if it cannot be read.
func (r *reader) condition(a *Agent, n *yaml.Node, field string) (*loop.Condition, bool) {
	c := r.conditionOf(a, n, field)
	return c, c != nil
}

func (r *reader) conditionOf(a *Agent, n *yaml.Node, field string) *loop.Condition {
	a.nodes[field] = n
	if n.Kind == yaml.ScalarNode {
		text, ok := r.words(n, field)
		if !ok {
			return nil
		}
		if text == "" {
			r.report(r.src.Of(n), CodeValue, "%s is an empty expression", field)
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
			if inner := r.conditionOf(a, p.value, f); inner != nil && p.value.Kind == yaml.ScalarNode {
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
			c.Not = r.conditionOf(a, p.value, f)
		case "for":
			c.For, _ = r.count(p.value, f)
			continue
		default:
			keys := []string{"when", "any", "all", "not", "for", "text", "of"}
			r.report(r.src.Of(p.at), CodeField, "unknown field %q of a condition", p.key).
				Hint = didYouMean(p.key, keys, "%q", "a condition has when, any, all or not, and for; or text and of")
			ok = false
			continue
		}
		given = append(given, p.key)
	}
	if len(given) != 1 && ok {
		r.report(r.src.Of(n), CodeStop, "%s needs exactly one of when, any, all and not", field)
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
		r.report(r.src.Of(n), CodeStop, "%s is an empty list", field)
	}
	var cs []loop.Condition
	for i, item := range items {
		c := r.conditionOf(a, item, fmt.Sprintf("%s[%d]", field, i))
		if c == nil {
			c = &loop.Condition{Expr: "false"} // keeps the places of the others
		}
		cs = append(cs, *c)
	}
	return cs
}
