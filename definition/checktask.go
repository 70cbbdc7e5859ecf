// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/template"
)

// task checks the texts and expressions of a task one by one, so that each
// problem has its place, and then asks taskagent about the whole.
func (c *checker) task(a *Agent) {
	if a.Type.Workflow() || a.Type == "" {
		return
	}
	if a.Type == TypeLLM {
		c.llm(a)
		return
	}
	switch a.Type {
	case TypeA2A:
		c.remote(a)
		return
	case TypeHuman:
		c.human(a)
		return
	case TypeFunc:
		c.goAgent(a)
		return
	}
	before := len(c.problems)
	texts, dialect := textsOf(a)
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		c.template(a, field, texts[field], dialect)
	}
	c.template(a, "exit_reason", a.ExitReason, template.Canonical)
	if e := a.Expression; e != nil {
		for _, key := range slices.Sorted(maps.Keys(e.Set)) {
			c.expression(a, "set."+key, e.Set[key])
		}
		c.expression(a, "value", e.Value)
	}
	c.exitWhen(a)
	if cmd := a.Command; cmd != nil && cmd.Dir != "" && !strings.Contains(cmd.Dir, "{{") && !filepath.IsLocal(cmd.Dir) {
		c.report(a.at("dir"), CodeOutside, "dir %q leads out of the root of the run", cmd.Dir).
			Hint = "dir is relative to the folder that the run is given"
	}
	if Problems(c.problems[before:]).count(SeverityError) > 0 {
		return // what is wrong with the parts would be said again
	}
	c.whole(a)
}

// textsOf are a task's templates by field, and how their braces are read.
func textsOf(a *Agent) (map[string]string, template.Dialect) {
	texts := make(map[string]string)
	switch {
	case a.Command != nil:
		for i, arg := range a.Command.Args {
			texts[index("command", i)] = arg
		}
		for name, v := range a.Command.Env {
			texts["env."+name] = v
		}
		texts["stdin"], texts["dir"] = a.Command.Stdin, a.Command.Dir
	case a.HTTP != nil:
		for name, v := range a.HTTP.Headers {
			texts["headers."+name] = v
		}
		texts["url"], texts["body"] = a.HTTP.URL, a.HTTP.Body
		textsIn(texts, "body", a.HTTP.BodyJSON)
	case a.Type == TypeTemplate:
		return map[string]string{"text": a.Text}, template.Canonical
	}
	return texts, template.Mustache
}

// textsIn adds the texts in a value.
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

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// template checks a text and notes what it reads.
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
			c.report(c.inField(a, field, e.Line, e.Column), CodeTemplate, "%s: %s", field, e.Msg).err = e
		}
		return
	}
	c.spaces(a, field, text)
	for _, ref := range t.Keys() {
		if field == "exit_reason" && (ref.Name == "result" || strings.HasPrefix(ref.Name, "result.")) {
			continue
		}
		c.reads = append(c.reads, read{
			agent: a, field: field, name: ref.Name, line: ref.Line, column: ref.Column,
			inner: ref.Inner, soft: ref.Optional || ref.Single, form: formOf(ref),
		})
	}
}

// inField is the place of a character of a field's value.
func (c *checker) inField(a *Agent, field string, line, column int) source.Span {
	if n, ok := a.nodes[field]; ok {
		return a.src.Within(n, line, column)
	}
	return a.at(field)
}

// expression checks an expression by having a task made of it alone.
func (c *checker) expression(a *Agent, field, text string) {
	if text == "" {
		return
	}
	probe, err := taskagent.NewExpression(taskagent.ExpressionConfig{
		Config: taskagent.Config{Name: "probe"}, Set: map[string]string{"probe": text},
	})
	c.probed(a, field, text, probe, err)
}

// exitWhen is expression for a condition that knows the task's result.
func (c *checker) exitWhen(a *Agent) {
	if a.ExitWhen == "" {
		return
	}
	probe, err := taskagent.NewText(taskagent.TextConfig{
		Config: taskagent.Config{Name: "probe", ExitWhen: a.ExitWhen}, Text: "probe",
	})
	c.probed(a, "exit_when", a.ExitWhen, probe, err)
	if err == nil {
		c.resultReads(a)
	}
}

// resultFields are what there is to know about the result of a task.
var resultFields = map[Type][]string{
	TypeCommand: {"exit_code", "stdout", "stderr", "json"}, TypeHTTP: {"status", "headers", "body", "json"}, TypeTemplate: {"text"},
}

// resultReads looks whether exit_when reads of the result what is in it.
func (c *checker) resultReads(a *Agent) {
	known := resultFields[a.Type]
	vars := vocabulary.TaskVariables(true)
	p, err := expr.Compile(a.ExitWhen, vars...)
	if known == nil || err != nil {
		return
	}
	keys, _ := p.Reads("result")
	for _, key := range keys {
		if slices.Contains(known, key) {
			continue
		}
		rd := read{agent: a, field: "exit_when", name: "result." + key, bare: true, line: 1}
		rd.column = 1 + len([]rune(a.ExitWhen[:max(0, strings.Index(a.ExitWhen, "result."+key))]))
		c.report(rd.place(), CodeUnknownKey, "the result of %s agent has no %q", article(a.Type), key).
			Hint = didYouMean(key, known, "%q", "it has "+strings.Join(known, ", "))
	}
}

func (c *checker) probed(a *Agent, field, text string, probe agent.Agent, err error) {
	if errs, ok := errors.AsType[expr.Errors](err); ok {
		c.inside(a, field, errs)
		keys, all := expr.Reads(text, "state")
		c.keyReads(a, field, text, keys, all)
		return
	}
	if err != nil {
		for _, e := range taskErrors(err) {
			_, msg := splitField(e.Error())
			c.report(a.at(field), CodeExpr, "%s: %s", field, msg).err = e
		}
		return
	}
	r, ok := probe.(interface{ Reads() []taskagent.Read })
	if !ok {
		return
	}
	for _, rd := range r.Reads() {
		c.exprRead(a, field, text, rd.Name, rd.Any)
	}
}

// whole asks taskagent about the task as a whole. What it says about texts and
// expressions was said already.
func (c *checker) whole(a *Agent) {
	if c.unset(a) || a.broken || vocabulary.AgentName(a.Name) != "" {
		return
	}
	_, err := newTask(a, BuildConfig{Root: "."}, around{})
	for _, e := range taskErrors(err) {
		if _, ok := errors.AsType[expr.Errors](e); ok {
			continue
		}
		if _, ok := errors.AsType[template.Errors](e); ok {
			continue
		}
		field, msg := splitField(e.Error())
		p := c.report(a.at(field), CodeTask, "%s", inFileWords(msg))
		p.err = e
		if field != "" && !strings.HasPrefix(p.Message, field) {
			p.Message = field + ": " + p.Message
		}
	}
}

// needs are the fields without which a task cannot be.
var needs = map[Type]string{TypeCommand: "command", TypeHTTP: "url", TypeTemplate: "text", TypeA2A: "endpoint", TypeHuman: "question", TypeFunc: "func"}

// unset reports a field that a task needs and does not have.
func (c *checker) unset(a *Agent) bool {
	field, ok := needs[a.Type]
	if ok {
		n, given := a.nodes[field]
		if !given {
			c.report(a.src.Of(a.node), CodeMissing, "%s agent needs %s", article(a.Type), field)
		}
		return !given || source.IsNull(n)
	}
	if a.Type == TypeExpression && !a.broken && len(a.Expression.Set) == 0 && a.Expression.Value == "" && a.ExitWhen == "" {
		c.report(a.src.Of(a.node), CodeMissing, "an expression agent needs set, value or exit_when")
		return true
	}
	return false
}
