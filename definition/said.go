// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// said reads a condition of a phrase and the step that says it, perhaps with
// for; nil if it cannot be read. It becomes says(state.KEY, "phrase").
func (r *reader) said(a *Agent, n *yaml.Node, field string, ps []pair) *loop.Condition {
	var phrase, key string
	c, before := &loop.Condition{}, len(r.problems)
	given := make(map[string]bool)
	for _, p := range ps {
		f := field + "." + p.key
		given[p.key] = true
		switch p.key {
		case "text":
			if phrase, _ = r.words(p.value, f); !expr.Says(phrase, phrase) && p.value.Kind == yaml.ScalarNode {
				r.report(r.src.Of(p.value), CodeStop, "%s has no letter and no digit in it, so nobody says it", f)
			}
		case "of":
			key = r.saidBy(a, p.value, f)
		case "for":
			c.For, _ = r.count(p.value, f)
		case "when", "any", "all", "not":
			r.report(r.src.Of(p.at), CodeStop, "%s cannot stand beside text and of", p.key).Hint = "put both into any or all"
		default:
			r.report(r.src.Of(p.at), CodeField, "unknown field %q of a condition", p.key).
				Hint = didYouMean(p.key, []string{"text", "of", "for"}, "%q", "a phrase has text and of, and for")
		}
	}
	switch {
	case !given["of"]:
		r.report(r.src.Of(n), CodeMissing, "%s needs of: the step that says the text", field)
	case !given["text"]:
		r.report(r.src.Of(n), CodeMissing, "%s needs text: what the step says", field)
	}
	if len(r.problems) > before {
		return nil
	}
	// Both are literals of CEL as Go quotes them.
	c.Expr = "says(state[" + strconv.Quote(key) + "], " + strconv.Quote(phrase) + ")"
	return c
}

// saidBy is the state key of what an agent of a loop says; "" if it has none,
// which is reported.
func (r *reader) saidBy(a *Agent, n *yaml.Node, field string) string {
	name, ok := r.text(n, field)
	if !ok {
		return ""
	}
	var names []string
	for _, sub := range a.SubAgents {
		for in := range sub.All {
			names = append(names, in.Name)
			if in.Name != name {
				continue
			}
			return r.saidKey(a, in, n, field)
		}
	}
	r.report(r.src.Of(n), CodeStop, "%s names %q, which is no agent in this loop", field, name).Hint = didYouMean(name, names, "%q", "")
	return ""
}

func (r *reader) saidKey(a, by *Agent, n *yaml.Node, field string) string {
	problem := func(format, hint string) string {
		r.report(r.src.Of(n), CodeStop, format, field, by.Name).Hint = hint
		return ""
	}
	switch {
	case by.OutputKey == "":
		return problem("%s names %q, which keeps what it says nowhere", `give "`+by.Name+`" an output_key`)
	case by.OutputKey == LoopOutput:
		return problem("%s names %q, which is a finalizer: it speaks when the loop is over", "name a step of the loop")
	case by.LLM != nil && by.LLM.OutputSchema != nil, by.Command != nil && by.Command.JSON, by.HTTP != nil && by.HTTP.JSON,
		by.Type == TypeParallel, by.Type == TypeExpression, by.Human != nil && by.Human.Ask != session.AskText:
		return problem("%s names %q, whose result is no text", "write an expression, such as state."+by.OutputKey+".field == 'value'")
	}
	return by.OutputKey
}
