// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
	"github.com/refrain-dev/refrain/internal/vocabulary"
	"github.com/refrain-dev/refrain/loop"
)

// condition reads an expression, a map of one of when, any, all and not, perhaps with for, or a map of a phrase and
// the step that says it; nil if it cannot be read.
func (r *reader) condition(a *Agent, n *source.Node, field string) (*loop.Condition, bool) {
	c := r.conditionOf(a, n, field)
	return c, c != nil
}

func (r *reader) conditionOf(a *Agent, n *source.Node, field string) *loop.Condition {
	a.nodes[field] = n
	if n.Kind == source.Scalar {
		text, ok := anExpr.read(place{r, a, field}, n)
		if !ok {
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
			if inner := r.conditionOf(a, p.value, f); inner != nil && p.value.Kind == source.Scalar {
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
			r.report(p.at, CodeField, "unknown field %q of a condition", p.key).
				suggest(meant.Hint(p.key, keys, "a condition has when, any, all or not, and for; or text and of"))
			ok = false
			continue
		}
		given = append(given, p.key)
	}
	if len(given) != 1 && ok {
		r.report(n, CodeStop, "%s needs exactly one of when, any, all and not", field)
	}
	if len(given) != 1 || c.Expr == "" && len(c.Any) == 0 && len(c.All) == 0 && c.Not == nil {
		return nil
	}
	return c
}

func (r *reader) conditions(a *Agent, n *source.Node, field string) []loop.Condition {
	a.nodes[field] = n
	items, ok := r.items(n, field)
	if ok && len(items) == 0 {
		r.report(n, CodeStop, "%s is an empty list", field)
	}
	var cs []loop.Condition
	for i, item := range items {
		c := r.conditionOf(a, item, index(field, i))
		if c == nil {
			c = &loop.Condition{Expr: "false"} // keeps the places of the others
		}
		cs = append(cs, *c)
	}
	return cs
}

// said reads a condition of a phrase and the step that says the phrase, perhaps with for; nil if it cannot be read.
// The condition becomes says(state.KEY, "phrase").
func (r *reader) said(a *Agent, n *source.Node, field string, ps []pair) *loop.Condition {
	var phrase, key string
	c, before := &loop.Condition{}, len(r.problems)
	given := make(map[string]bool)
	for _, p := range ps {
		f := field + "." + p.key
		given[p.key] = true
		switch p.key {
		case "text":
			if phrase, _ = r.words(p.value, f); !expr.Says(phrase, phrase) && p.value.Kind == source.Scalar {
				r.report(p.value, CodeStop, "%s needs a letter or a digit", f)
			}
		case "of":
			key = r.saidBy(a, p.value, f)
		case "for":
			c.For, _ = r.count(p.value, f)
		case "when", "any", "all", "not":
			r.report(p.at, CodeStop, "%s is not allowed beside text and of", p.key).Hint = "combine them with any or all"
		default:
			r.report(p.at, CodeField, "unknown field %q of a condition", p.key).
				suggest(meant.Hint(p.key, []string{"text", "of", "for"}, "a phrase has text and of, and for"))
		}
	}
	switch {
	case !given["of"]:
		r.report(n, CodeMissing, "%s needs of: the step that says the text", field)
	case !given["text"]:
		r.report(n, CodeMissing, "%s needs text: what the step says", field)
	}
	if len(r.problems) > before {
		return nil
	}
	// Both are literals of CEL as Go quotes them.
	c.Expr = "says(state[" + strconv.Quote(key) + "], " + strconv.Quote(phrase) + ")"
	return c
}

// saidBy returns the state key that has the answer of an agent of a loop; "" if the agent has none, which it reports.
func (r *reader) saidBy(a *Agent, n *source.Node, field string) string {
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
			return r.saidKey(in, n, field)
		}
	}
	r.report(n, CodeStop, "%s names %q, which is not an agent in this loop", field, name).suggest(meant.Hint(name, names, ""))
	return ""
}

func (r *reader) saidKey(by *Agent, n *source.Node, field string) string {
	problem := func(format, hint string) string {
		r.report(n, CodeStop, format, field, by.Name).Hint = hint
		return ""
	}
	switch {
	case by.OutputKey == "":
		return problem("%s names %q, which has no output_key", `give "`+by.Name+`" an output_key`)
	case by.OutputKey == LoopOutput:
		return problem("%s names %q, which is a finalizer and runs after the loop", "name a step of the loop")
	case holds(by, by.Type.kind().data):
		return problem("%s names %q, whose result is no text",
			"write an expression, such as state."+by.OutputKey+".field == 'value'")
	}
	return by.OutputKey
}

// conditionReads notes the keys that the expressions of a loop read.
func (c *checker) conditionReads(a *Agent) {
	l := a.Loop
	if l.StopWhen != nil {
		eachExpression("stop_when", l.StopWhen, func(field, src string) {
			c.exprReads(a, field, src)
			c.findingsRead(a, field, src)
		})
	}
	if l.NoProgress != nil {
		for i, key := range l.NoProgress.Keys {
			c.keyRead(a, index("no_progress.keys", i), key)
		}
	}
	if l.Result != "" {
		c.keyRead(a, "result", l.Result)
	}
	if l.Score == nil {
		return
	}
	if l.Score.Key != "" {
		c.keyRead(a, "score.key", l.Score.Key)
	}
	if l.Score.Holdout != "" {
		c.keyRead(a, "score.holdout", l.Score.Holdout)
	}
	if l.Score.Expr != "" {
		c.exprReads(a, "score.expr", l.Score.Expr)
	}
}

// eachExpression visits the expressions of a condition, with the fields that have them.
func eachExpression(field string, cond *loop.Condition, visit func(field, src string)) {
	if cond.Expr != "" {
		visit(field, cond.Expr)
	}
	for i := range cond.Any {
		eachExpression(index(field+".any", i), &cond.Any[i], visit)
	}
	for i := range cond.All {
		eachExpression(index(field+".all", i), &cond.All[i], visit)
	}
	if cond.Not != nil {
		eachExpression(field+".not", cond.Not, visit)
	}
}

// findingsRead reports kinds of findings that no iteration can have.
func (c *checker) findingsRead(a *Agent, field, src string) {
	kinds := loop.FindingKinds()
	read, _ := cel.Reads(src, "findings")
	for _, kind := range read {
		if !slices.Contains(kinds, kind) {
			c.report(a.at(field), CodeValue, "findings has no kind %q", kind).
				suggest(meant.Hint(kind, kinds, "the kinds are "+strings.Join(kinds, ", ")))
		}
	}
}

// wordsCompared warns of a condition that compares a model's text, or an answer that is no number, with a number.
func (c *checker) wordsCompared(a *Agent, field, src string) {
	p, err := expr.Compile(src, vocabulary.ConditionVariables...)
	if err != nil {
		return
	}
	for _, key := range p.Compared("state") {
		ws := c.writers[key]
		if len(ws) != 1 || ws[0].Type != TypeLLM || ws[0].OutputKey != key {
			continue
		}
		if s := ws[0].answer; s != nil {
			if s.Properties != nil {
				c.warn(a.at(field), CodeWords, "state.%s is an object that %q writes, not a number, so the condition "+
					"never holds", key, ws[0].Name).
					Hint = "compare a field: state." + key + "." + s.PropertyOrder[0]
			}
			continue
		}
		c.warn(a.at(field), CodeWords, "state.%s is a text that %q writes, not a number, so the condition "+
			"never holds", key, ws[0].Name).
			Hint = "read the number: number(state." + key + "), or json(state." + key + ").FIELD"
	}
}

// conditionSchema returns the shape of an expression, a phrase that a step says, or a combination of conditions.
func conditionSchema() shape {
	running := func() schema.Entry { return schema.Named("for", "how many iterations running", schema.Whole(0)) }
	s := schema.Either(schema.Expression(), schema.Settings([]schema.Entry{
		schema.Named("text", "what the step says, and nothing else", schema.AnyText()),
		schema.Named("of", "the step that says it", schema.Text()), running(),
	}, "text", "of"))
	for _, alone := range []schema.Entry{
		schema.Named("when", "an expression", schema.Expression()),
		schema.Named("any", "one of them holds", schema.Filled(schema.By("condition"))),
		schema.Named("all", "all of them hold", schema.Filled(schema.By("condition"))),
		schema.Named("not", "it does not hold", schema.By("condition")),
	} {
		s.AnyOf = append(s.AnyOf, schema.Settings([]schema.Entry{alone, running()}, alone.Name))
	}
	return s
}

// textsIn adds the texts inside a value.
func textsIn(texts map[string]string, field string, v any) {
	switch v := v.(type) {
	case string:
		texts[field] = v
	case []any:
		for i := range v {
			textsIn(texts, index(field, i), v[i])
		}
	case map[string]any:
		for key := range v {
			textsIn(texts, field+"."+key, v[key])
		}
	}
}

// template checks a text and notes the names that it reads.
func (c *checker) template(a *Agent, field, text string, d template.Dialect) {
	if text == "" {
		return
	}
	if c.braces += strings.Count(text, "{"); c.braces > maxBraces {
		c.report(a.at(field), CodeFile, "the texts of the definition have more than %d braces", maxBraces)
		return
	}
	t, err := template.Parse(text, template.Options{Dialect: d})
	if errs, ok := errors.AsType[template.Errors](err); ok {
		for _, e := range errs {
			c.report(a.inField(field, e.Line, e.Column), CodeTemplate, "%s: %s", field, e.Msg).err = e
		}
		return
	}
	c.spaces(a, field, text)
	for _, ref := range t.Keys() {
		if field == "exit_reason" && (ref.Name == "result" || strings.HasPrefix(ref.Name, "result.")) ||
			field != "exit_reason" && a.parameter(ref.Name) {
			continue
		}
		c.reads = append(c.reads, read{
			agent: a, field: field, name: ref.Name, line: ref.Line, column: ref.Column,
			inner: ref.Inner, soft: ref.Optional || ref.Single, section: ref.Section, form: formOf(ref),
		})
	}
}

// expression checks an expression and notes what it reads. The result is nil if it does not compile, or is empty.
func (c *checker) expression(a *Agent, field, text string, vars []expr.Var) expr.Program {
	if text == "" {
		return nil
	}
	c.exprReads(a, field, text)
	p, err := expr.Compile(text, vars...)
	if errs, ok := errors.AsType[expr.Errors](err); ok {
		c.inside(a, field, errs)
		return nil
	}
	return p
}

// exitWhen checks a condition that can read the task's result: its expression, and with a task of it alone its type.
func (c *checker) exitWhen(a *Agent) {
	p := c.expression(a, "exit_when", a.ExitWhen, vocabulary.TaskVariables)
	if p == nil {
		return
	}
	c.resultReads(a, p)
	_, err := taskagent.NewText(taskagent.TextConfig{
		Config: taskagent.Config{Name: "probe", ExitWhen: a.ExitWhen}, Text: "probe",
	})
	for _, e := range taskErrors(err) {
		msg := e.Error()
		if wrong, ok := errors.AsType[*fielderror.Error](e); ok {
			msg = wrong.Text(inFile)
		}
		c.report(a.at("exit_when"), CodeExpr, "%s: %s", "exit_when", msg).err = e
	}
}
