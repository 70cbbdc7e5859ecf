// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
)

func contentShape() shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean", "object", "array"}, Title: "text, map or list"}
}

// takesBody reads what a request sends: text, or what becomes JSON.
func takesBody(p place, n *yaml.Node, h *HTTP) bool {
	v, ok := p.content(p.a, n, p.field)
	if text, is := v.(string); is {
		h.Body = text
	} else {
		h.BodyJSON = v
	}
	return ok
}

// note keeps where the values in a value are.
func (r *reader) note(a *Agent, field string, n *yaml.Node) {
	n = source.Deref(n)
	a.nodes[field] = n
	switch n.Kind {
	case yaml.SequenceNode:
		for i, c := range n.Content {
			r.note(a, index(field, i), c)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.note(a, field+"."+source.Deref(n.Content[i]).Value, n.Content[i+1])
		}
	}
}

// expression reads an expression; a number or true is one too.
func (r *reader) expression(n *yaml.Node, what string) (string, bool) {
	text, ok := r.words(n, what)
	if ok && text == "" {
		r.report(r.src.Of(n), CodeValue, "%s is an empty expression", what)
		return "", false
	}
	return text, ok
}

func erasable() shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean", "null"}, MinLength: new(1), Title: "expression"}
}

// erasable reads an expression, or null, which removes a key.
func (r *reader) erasable(n *yaml.Node, what string) (string, bool) {
	if source.IsNull(n) && n.Value != "" {
		return "null", true
	}
	return r.expression(n, what)
}

// assigned is how a list of NAME=value is written as a map.
func assigned(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode && len(n.Content) > 0 {
		if name, value, set := strings.Cut(source.Deref(n.Content[0]).Value, "="); set {
			return "write {" + strings.TrimSpace(name) + ": " + strings.TrimSpace(value) + "}"
		}
	}
	return ""
}

// texts reads a map of texts.
func (r *reader) texts(a *Agent, n *yaml.Node, what string) map[string]string {
	m, _ := named(aWords).read(place{r, a, what}, n)
	return m
}

var taskRows = []row[Agent]{
	field("result_key", "state key of the details of the result, such as exit_code", aText, func(a *Agent) *string { return &a.ResultKey }),
	field("exit_when", "expression over state and result that ends the nearest loop when true", anExpr, func(a *Agent) *string { return &a.ExitWhen }),
	field("exit_reason", "reason of the exit, in words", aWords, func(a *Agent) *string { return &a.ExitReason }),
}

var templateRows = []row[Agent]{
	field("text", "text that the agent says, with placeholders", aWords, func(a *Agent) *string { return &a.Text }).must(),
}

var commandRows = []row[Command]{
	field("command", "program and arguments; no shell reads them", each(aWords, listing{line: "give the program and each of its arguments as [gzip, -c, file]; no shell reads them"}), func(c *Command) *[]string { return &c.Args }).must(),
	field("stdin", "input of the command", aWords, func(c *Command) *string { return &c.Stdin }),
	field("env", "additional environment variables", named(aWords), func(c *Command) *map[string]string { return &c.Env }),
	field("clean_env", "true removes the environment except PATH, HOME and the like", aBool, func(c *Command) *bool { return &c.CleanEnv }),
	field("dir", "working directory, inside the run's root", aText, func(c *Command) *string { return &c.Dir }),
	field("output_limit", "largest output, such as 1MB", aSize, func(c *Command) *int64 { return &c.OutputLimit }),
	field("ok_exit_codes", "exit codes that mean success; [0] if left out", each(wholeIn(0, 255), listing{empty: "leave it out for the default"}), func(c *Command) *[]int { return &c.OKExitCodes }).shown([]int{0}),
	field("unsafe", "true allows placeholders where a value could run as code: in a shell script, in the arguments of a program that starts others, in part of an argument", aBool, func(c *Command) *bool { return &c.Unsafe }),
	field("json", "", aBool, func(c *Command) *bool { return &c.JSON }),
}

var expressionRows = []row[Expression]{
	field("set", "state keys, each with the expression of its new value", named(plain(erasable, (*reader).erasable)), func(e *Expression) *map[string]string { return &e.Set }),
	field("value", "expression whose value is stored in output_key", anExpr, func(e *Expression) *string { return &e.Value }),
}

var httpRows = []row[HTTP]{
	field("url", "address of the request; no placeholder in its host", aText, func(h *HTTP) *string { return &h.URL }).must(),
	field("method", "HTTP method; GET if left out", aText, func(h *HTTP) *string { return &h.Method }).shown("GET"),
	field("headers", "request headers", named(aWords), func(h *HTTP) *map[string]string { return &h.Headers }),
	special("body", "body: text, or a map or list, sent as JSON", contentShape, takesBody),
	field("size_limit", "largest answer, such as 1MB", aSize, func(h *HTTP) *int64 { return &h.SizeLimit }),
	field("redirect_hosts", "other servers that a redirect may lead to, as host or host:port; they get no headers and no body; none if left out", each(aText, listing{empty: "leave it out for none"}), func(h *HTTP) *[]string { return &h.RedirectHosts }),
	field("ok_status", "status codes that mean success; 200 to 299 if left out", each(wholeIn(100, 599), listing{empty: "leave it out for the default"}), func(h *HTTP) *[]int { return &h.OKStatus }),
	field("json", "true reads the output as JSON", aBool, func(h *HTTP) *bool { return &h.JSON }),
}
