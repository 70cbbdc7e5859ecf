// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

func commandOf(a *Agent) *Command {
	if a.Command == nil {
		a.Command = &Command{}
	}
	return a.Command
}

func httpOf(a *Agent) *HTTP {
	if a.HTTP == nil {
		a.HTTP = &HTTP{}
	}
	return a.HTTP
}

func expressionOf(a *Agent) *Expression {
	if a.Expression == nil {
		a.Expression = &Expression{}
	}
	return a.Expression
}

// taskField reads a field of a task.
func (r *reader) taskField(a *Agent, p pair) {
	switch p.key {
	case "result_key":
		a.ResultKey, _ = r.text(p.value, p.key)
	case "exit_when":
		a.ExitWhen, _ = r.expression(p.value, p.key)
	case "exit_reason":
		a.ExitReason, _ = r.words(p.value, p.key)
	case "text":
		a.Text, _ = r.words(p.value, p.key)
	case "set":
		expressionOf(a).Set = r.expressions(a, p.value)
	case "value":
		expressionOf(a).Value, _ = r.expression(p.value, p.key)
	case "json":
		on, _ := r.boolean(p.value, p.key)
		if a.Type == TypeHTTP {
			httpOf(a).JSON = on
		} else {
			commandOf(a).JSON = on
		}
	case "url", "method", "headers", "body", "size_limit", "ok_status", "redirect_hosts":
		r.httpField(a, p)
	default:
		r.commandField(a, p)
	}
}

func (r *reader) commandField(a *Agent, p pair) {
	c := commandOf(a)
	switch p.key {
	case "command":
		if plainText(p.value) {
			r.report(r.src.of(p.value), CodeValue, "command must be a list, got %s", describe(p.value)).
				Hint = "give the program and each of its arguments as [gzip, -c, file]; no shell reads them"
			return
		}
		items, _ := r.items(p.value, p.key)
		for i, item := range items {
			field := fmt.Sprintf("command[%d]", i)
			a.nodes[field] = item
			arg, _ := r.words(item, field)
			c.Args = append(c.Args, arg)
		}
	case "stdin":
		c.Stdin, _ = r.words(p.value, p.key)
	case "env":
		c.Env = r.texts(a, p.value, p.key)
	case "clean_env":
		c.CleanEnv, _ = r.boolean(p.value, p.key)
	case "dir":
		c.Dir, _ = r.text(p.value, p.key)
	case "output_limit":
		c.OutputLimit, _ = r.size(p.value, p.key)
	case "unsafe":
		c.Unsafe, _ = r.boolean(p.value, p.key)
	case "ok_exit_codes":
		c.OKExitCodes = r.codes(a, p.value, p.key, 0, 255)
	}
}

func (r *reader) httpField(a *Agent, p pair) {
	h := httpOf(a)
	switch p.key {
	case "url":
		h.URL, _ = r.text(p.value, p.key)
	case "method":
		h.Method, _ = r.text(p.value, p.key)
	case "headers":
		h.Headers = r.texts(a, p.value, p.key)
	case "body":
		if p.value.Kind == yaml.ScalarNode {
			h.Body, _ = r.words(p.value, p.key)
			return
		}
		h.BodyJSON, _ = r.any(p.value, p.key)
		r.note(a, p.key, p.value)
	case "redirect_hosts":
		items, ok := r.items(p.value, p.key)
		if ok && len(items) == 0 {
			r.report(r.src.of(p.value), CodeValue, "%s is an empty list", p.key).Hint = "leave it out for none"
		}
		for i, item := range items {
			field := index(p.key, i)
			a.nodes[field] = item
			host, _ := r.text(item, field)
			h.RedirectHosts = append(h.RedirectHosts, host)
		}
	case "size_limit":
		h.SizeLimit, _ = r.size(p.value, p.key)
	case "ok_status":
		h.OKStatus = r.codes(a, p.value, p.key, 100, 599)
	}
}

// note keeps where the values in a value are.
func (r *reader) note(a *Agent, field string, n *yaml.Node) {
	n = deref(n)
	a.nodes[field] = n
	switch n.Kind {
	case yaml.SequenceNode:
		for i, c := range n.Content {
			r.note(a, index(field, i), c)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.note(a, field+"."+deref(n.Content[i]).Value, n.Content[i+1])
		}
	}
}

// expression reads an expression; a number or true is one too.
func (r *reader) expression(n *yaml.Node, what string) (string, bool) {
	text, ok := r.words(n, what)
	if ok && text == "" {
		r.report(r.src.of(n), CodeValue, "%s is an empty expression", what)
		return "", false
	}
	return text, ok
}

// expressions reads a map of expressions. Null removes a key.
func (r *reader) expressions(a *Agent, n *yaml.Node) map[string]string {
	ps, ok := r.pairs(n, "set")
	if !ok {
		r.hint(assigned(n))
	}
	m := make(map[string]string, len(ps))
	for _, p := range ps {
		field := "set." + p.key
		a.nodes[field] = p.value
		a.nodes["key of "+field] = p.at
		if isNull(p.value) && p.value.Value != "" {
			m[p.key] = "null"
			continue
		}
		if text, ok := r.expression(p.value, field); ok {
			m[p.key] = text
		}
	}
	return m
}

// assigned is how a list of NAME=value is written as a map.
func assigned(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode && len(n.Content) > 0 {
		if name, value, set := strings.Cut(deref(n.Content[0]).Value, "="); set {
			return "write {" + strings.TrimSpace(name) + ": " + strings.TrimSpace(value) + "}"
		}
	}
	return ""
}

// texts reads a map of texts.
func (r *reader) texts(a *Agent, n *yaml.Node, what string) map[string]string {
	ps, ok := r.pairs(n, what)
	if !ok {
		r.hint(assigned(n))
	}
	m := make(map[string]string, len(ps))
	for _, p := range ps {
		field := what + "." + p.key
		a.nodes[field] = p.value
		if text, ok := r.words(p.value, field); ok {
			m[p.key] = text
		}
	}
	return m
}

// codes reads a list of whole numbers.
func (r *reader) codes(a *Agent, n *yaml.Node, what string, low, high int64) []int {
	items, ok := r.items(n, what)
	if ok && len(items) == 0 {
		r.report(r.src.of(n), CodeValue, "%s is an empty list", what).Hint = "leave it out for the default"
	}
	var codes []int
	for i, item := range items {
		field := fmt.Sprintf("%s[%d]", what, i)
		a.nodes[field] = item
		v, ok := r.integer(item, field)
		if ok && (v < low || v > high) {
			r.report(r.src.of(item), CodeValue, "%s must be between %d and %d, got %d", field, low, high, v)
		}
		codes = append(codes, int(v))
	}
	return codes
}
