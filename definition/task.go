// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/vocabulary"
)

// Command is a program to run, or with CLI a coding agent to ask, whose prompt is Stdin. [Definition.Build] sets the
// fields that a file cannot have.
type Command = taskagent.CommandConfig

// Expression computes values of the state. [Definition.Build] sets the fields that a file cannot have.
type Expression = taskagent.ExpressionConfig

// HTTP is a request to send. [Definition.Build] sets the fields that a file cannot have.
type HTTP = taskagent.HTTPConfig

func contentShape() shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean", "object", "array"},
		Title: "text, map or list"}
}

// takesBody reads the body of a request: text, or a value that is sent as JSON.
func takesBody(p place, n *source.Node, h *HTTP) bool {
	v, ok := p.content(p.a, n, p.field)
	if text, is := v.(string); is {
		h.Body = text
	} else {
		h.BodyJSON = v
	}
	return ok
}

// content reads a text, or a value that is sent as JSON.
func (r *reader) content(a *Agent, n *source.Node, field string) (any, bool) {
	if n.Kind == source.Scalar {
		return r.words(n, field)
	}
	v, _ := r.any(n, field)
	r.note(a, field, n)
	return v, true
}

// note records the positions of the values inside a value.
func (r *reader) note(a *Agent, field string, n *source.Node) {
	n = source.Deref(n)
	a.nodes[field] = n
	switch n.Kind {
	case source.List:
		for i, c := range n.Content {
			r.note(a, index(field, i), c)
		}
	case source.Map:
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.note(a, field+"."+source.Deref(n.Content[i]).Value, n.Content[i+1])
		}
	}
}

func erasable() shape {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean", "null"}, MinLength: new(1),
		Title: "expression"}
}

// erasableOf reads an expression, or null, which removes a key.
func erasableOf(p place, n *source.Node) (string, bool) {
	if source.IsNull(n) && n.Value != "" {
		return "null", true
	}
	return anExpr.read(p, n)
}

// assignment writes a list of NAME=value as a map.
func assignment(n *source.Node) string {
	if n.Kind == source.List && len(n.Content) > 0 {
		if name, value, set := strings.Cut(source.Deref(n.Content[0]).Value, "="); set {
			return "write {" + strings.TrimSpace(name) + ": " + strings.TrimSpace(value) + "}"
		}
	}
	return ""
}

var taskRows = []row[Agent]{
	field("result_key", "state key of the details of the result, such as exit_code", aText, func(a *Agent) *string { return &a.ResultKey }),
	field("exit_when", "expression over state and result that ends the nearest loop when true", anExpr, func(a *Agent) *string { return &a.ExitWhen }),
	field("exit_reason", "reason of the exit, in words", aWords, func(a *Agent) *string { return &a.ExitReason }),
}

var templateRows = []row[Agent]{
	field("text", "text that the agent says, with placeholders", aWords,
		func(a *Agent) *string { return &a.Text }).must(),
}

var commandRows = []row[Command]{
	field("command", "program and arguments; no shell reads them", each(aWords, listing{line: meant.AsList}), func(c *Command) *[]string { return &c.Args }).must(),
	field("stdin", "input of the command, which may be any text", aWords, func(c *Command) *string { return &c.Stdin }),
	field("env", "additional environment variables; text of any content only in those that begin with INPUT_", named(aWords), func(c *Command) *map[string]string { return &c.Env }),
	field("clean_env", "true removes the environment except PATH, HOME and the like", aBool, func(c *Command) *bool { return &c.CleanEnv }),
	field("inherit", "environment variables that the command gets besides: keys of models, REFRAIN_… and others that Refrain itself uses; with clean_env any variable",
		variableNames, func(c *Command) *[]string { return &c.Inherit }),
	field("open", "placeholders of type file or folder whose value the command gets as an open file, /dev/fd/3, which no program can replace",
		each(aText, listing{empty: "leave it out for none", unique: true}), func(c *Command) *[]string { return &c.Open }),
	field("dir", "working directory, inside the run's root", aText, func(c *Command) *string { return &c.Dir }),
	field("output_limit", "largest output, such as 1MB", aSize, func(c *Command) *int64 { return &c.OutputLimit }),
	field("ok_exit_codes", "exit codes that mean success; [0] if left out, with tests [0, 1]", each(wholeIn(0, 255), listing{empty: "leave it out for the default"}), func(c *Command) *[]int { return &c.OKExitCodes }).shown([]int{0}),
	field("sandbox", "limit what the command may do with files and the network, on Linux: workspace, best_effort, bwrap, or {level, write, read, network, ports}",
		sandboxParts.value(), func(c *Command) **taskagent.Sandbox { return &c.Sandbox }),
	field("unsafe", "true allows any value in an argument or in a variable, where a program may read it as an option, a setting or code", aBool, func(c *Command) *bool { return &c.Unsafe }),
	field("json", "", aBool, func(c *Command) *bool { return &c.JSON }),
	field("tests", "count tests in the output, which is go_json (go test -json), junit (XML) or counts (a JSON object), or in a JUnit file such as report.xml; output_key gets {passed, failed, skipped, total, score, said}",
		aText, func(c *Command) *string { return &c.Tests }),
}

// asACP returns the hint for acp with a text in place of a list.
func asACP(line string) string {
	if slices.Contains(taskagent.CLIPrograms(), line) {
		return "write cli: " + line
	}
	if list, ok := strings.CutPrefix(meant.CommandLine(line), "command: "); ok && list != "[program, argument]" {
		return "write " + list
	}
	return "write [program, argument], such as [gemini, --acp]"
}

var cliRows = []row[Command]{
	field("cli", "coding agent to ask, by its program: "+strings.Join(taskagent.CLIPrograms(), " or "), oneWord(taskagent.CLIPrograms()...), func(c *Command) *string { return &c.CLI.Program }).
		helped("ask a program that speaks the Agent Client Protocol with acp, and any other with command").
		begun(func(c *Command) { c.CLI = new(taskagent.CLI) }),
	field("acp", "program, with its arguments, that speaks the Agent Client Protocol, in place of cli, such as [gemini, --acp]",
		each(aText, listing{line: asACP, empty: "name the program"}), func(c *Command) *[]string { return &c.CLI.ACP }),
	field("wrapper", "program, with its arguments, that is started in place of the one that cli names and takes its arguments, such as [my-claude]",
		each(aText, listing{empty: "name the program"}), func(c *Command) *[]string { return &c.CLI.Wrapper }),
	field("prompt", "what the coding agent is asked to do, with placeholders", aWords, func(c *Command) *string { return &c.Stdin }),
	field("model", "", aText, func(c *Command) *string { return &c.CLI.Model }).alone(),
	field("permissions", "what the coding agent may do without asking: read, edit (default: change files in its folder) or all", oneWord("read", "edit", "all"), func(c *Command) *string { return &c.CLI.Permissions }).shown("edit"),
	field("allow", "shell commands that the coding agent may run besides, such as go test ./..., with any arguments after their first words",
		each(aText, listing{empty: "leave it out for none"}), func(c *Command) *[]string { return &c.CLI.Allow }),
	field("denied", "what follows when the coding agent was not allowed to use a tool: fail (default) or allow; codex does not say so", oneWord("fail", "allow"), func(c *Command) *string { return &c.CLI.Denied }).shown("fail"),
	field("unfinished", "what follows when the coding agent fails after it has changed files of the workspace: fail (default) undoes the changes and fails the step, keep keeps them and goes on",
		oneWord("fail", "keep"), func(c *Command) *string { return &c.CLI.Unfinished }).shown("fail"),
	field("max_turns", "most requests of the coding agent to its model; only claude", wholeFrom[int](1, "leave it out for no limit"), func(c *Command) *int { return &c.CLI.MaxTurns }),
	field("max_cost", "most that the coding agent may spend, in US dollars, if the run's budget leaves more; only claude", aCost, func(c *Command) *float64 { return &c.CLI.MaxCost }),
	field("args", "further arguments of the coding agent, without placeholders", each(aText, listing{empty: "leave it out for none"}), func(c *Command) *[]string { return &c.CLI.Args }),
	field("idle_timeout", "end a coding agent that has printed nothing for so long, such as 5m", aSpan, func(c *Command) *time.Duration { return &c.CLI.IdleTimeout }),
	field("on_limit", "when the coding agent's provider takes no more requests for now: stop (default) fails the step; {wait: reset, at_most: 6h} waits until the limit ends",
		onLimitParts.inPlace(), func(c *Command) *taskagent.OnLimit { return &c.CLI.OnLimit }).shown("stop"),
	field("conversation", "what the coding agent knows of its earlier iterations: fresh (default) begins a new conversation, continue goes on with the one that belongs to the state",
		oneWord(taskagent.ConversationFresh, taskagent.ConversationContinue), func(c *Command) *string { return &c.CLI.Conversation }).shown(taskagent.ConversationFresh),
	field("sandbox", "", sandboxParts.value(), func(c *Command) **taskagent.Sandbox { return &c.Sandbox }),
	field("env", "", named(aWords), func(c *Command) *map[string]string { return &c.Env }),
	field("clean_env", "", aBool, func(c *Command) *bool { return &c.CleanEnv }),
	field("inherit", "", variableNames, func(c *Command) *[]string { return &c.Inherit }),
	field("dir", "", aText, func(c *Command) *string { return &c.Dir }),
	field("output_limit", "", aSize, func(c *Command) *int64 { return &c.OutputLimit }),
}

var sandboxParts = parts[taskagent.Sandbox]{or: "level", rows: []row[taskagent.Sandbox]{
	field("level", "workspace fails a step that this machine cannot limit; best_effort limits it as far as the machine can; bwrap limits it by bubblewrap in place of Landlock",
		oneWord(taskagent.SandboxLevels()...), func(s *taskagent.Sandbox) *string { return &s.Level }).shown(taskagent.SandboxWorkspace),
	field("write", "further files and folders that the command may change: absolute paths, or below the home folder as ~/…",
		each(aText, listing{empty: "leave it out for none"}), func(s *taskagent.Sandbox) *[]string { return &s.Write }),
	field("read", "further files and folders that the command may read",
		each(aText, listing{empty: "leave it out for none"}), func(s *taskagent.Sandbox) *[]string { return &s.Read }),
	field("network", "any (default), or none: no TCP connections except to ports, and no listening",
		oneWord(taskagent.NetworkAny, taskagent.NetworkNone), func(s *taskagent.Sandbox) *string { return &s.Network }).shown(taskagent.NetworkAny),
	field("ports", "TCP ports to which the command may connect in spite of network: none",
		each(wholeIn(1, 65535), listing{empty: "leave it out for none"}), func(s *taskagent.Sandbox) *[]int { return &s.Ports }),
}, has: "it has level, write, read, network and ports"}

var onLimitParts = parts[taskagent.OnLimit]{or: "wait", rows: []row[taskagent.OnLimit]{
	field("wait", "reset waits until the limit ends, as far as that is known, and asks again; stop fails the step", oneWord(taskagent.LimitReset, taskagent.LimitStop), func(l *taskagent.OnLimit) *string { return &l.Wait }).must(),
	field("at_most", "longest time to wait before the step fails", aSpan, func(l *taskagent.OnLimit) *time.Duration { return &l.AtMost }).shown("6h"),
}, has: "it has wait and at_most"}

var aCost = anAbove.checked(func(v float64) bool { return v > 0 }, "%s must be above 0, got %s", "leave it out for no limit")

var expressionRows = []row[Expression]{
	field("set", "state keys, each with the expression of its new value", named(value[string]{erasable, erasableOf}), func(e *Expression) *map[string]string { return &e.Set }),
	field("value", "expression whose value is stored in output_key", anExpr, func(e *Expression) *string { return &e.Value }),
}

var httpRows = []row[HTTP]{
	field("url", "address of the request; no placeholder in its host", aText, func(h *HTTP) *string { return &h.URL }).must(),
	field("method", "HTTP method; GET if left out", aText, func(h *HTTP) *string { return &h.Method }).shown("GET"),
	field("headers", "request headers", named(aWords), func(h *HTTP) *map[string]string { return &h.Headers }),
	special("body", "body: text, or a map or list, sent as JSON", contentShape, takesBody),
	field("size_limit", "largest answer, such as 1MB", aSize, func(h *HTTP) *int64 { return &h.SizeLimit }),
	field("redirect_hosts", "other servers that a redirect may lead to, as host or host:port; they get no headers and no body; none if left out",
		each(aText, listing{empty: "leave it out for none"}), func(h *HTTP) *[]string { return &h.RedirectHosts }),
	field("ok_status", "status codes that mean success; 200 to 299 if left out", each(wholeIn(100, 599), listing{empty: "leave it out for the default"}), func(h *HTTP) *[]int { return &h.OKStatus }),
	field("json", "true reads the output as JSON", aBool, func(h *HTTP) *bool { return &h.JSON }),
}

// taskTimeRows has the timeout of a task, which limits the step in a loop, and elsewhere the task itself.
var taskTimeRows = []row[Agent]{field("timeout", "", aSpan, func(a *Agent) *time.Duration {
	switch {
	case a.Type == "": // whose it is
	case a.isStep():
		return (*time.Duration)(&stepOf(a).Timeout)
	case a.Type == TypeHTTP:
		return &a.HTTP.Timeout
	}
	return &a.Command.Timeout
})}

var commandKind = kind{is: TypeCommand, tells: []string{"command"}, check: (*checker).local, build: (*builder).task,
	most: func(_ *worst, a *Agent) AtMost { return AtMost{Seconds: seconds(a.Command.Timeout)} }, notes: (*WorstCase).timeNote,
	texts: func(a *Agent, texts map[string]string) template.Dialect {
		for i, arg := range a.Command.Args {
			texts[index("command", i)] = arg
		}
		return commandTexts(a, "stdin", texts)
	},
	data: func(a *Agent) bool { return a.Command.JSON || a.Command.Tests != "" }, result: []string{"exit_code", "stdout", "stderr", "json"},
}

var cliKind = kind{is: TypeCLI, tells: []string{"cli", "acp"}, check: (*checker).local, build: (*builder).task,
	most: func(_ *worst, a *Agent) AtMost {
		u := noLimit
		if n := a.Command.CLI.MaxTurns; n > 0 {
			u.Turns, u.Calls = Bound(n), Bound(n)
		}
		u.Seconds, u.limited = seconds(a.Command.Timeout), Bound(a.Command.CLI.OnLimit.Most().Seconds())
		return u
	}, notes: (*WorstCase).timeNote, expect: (*expecter).uncounted,
	texts:  func(a *Agent, texts map[string]string) template.Dialect { return commandTexts(a, "prompt", texts) },
	calls:  func(a *Agent) float64 { return float64(max(a.Command.CLI.MaxTurns, 1)) },
	result: taskagent.CLIResult(), waits: true,
}

var httpKind = kind{is: TypeHTTP, tells: []string{"url"}, an: true, check: (*checker).local, build: (*builder).task,
	most: func(_ *worst, a *Agent) AtMost {
		return AtMost{Seconds: seconds(cmp.Or(requestTime(a), taskagent.DefaultHTTPTimeout))}
	},
	texts: func(a *Agent, texts map[string]string) template.Dialect {
		for name, v := range a.HTTP.Headers {
			texts["headers."+name] = v
		}
		texts["url"], texts["body"] = a.HTTP.URL, a.HTTP.Body
		textsIn(texts, "body", a.HTTP.BodyJSON)
		return template.Mustache
	},
	data: func(a *Agent) bool { return a.HTTP.JSON }, result: []string{"status", "headers", "body", "json"}, waits: true,
}

var expressionKind = kind{is: TypeExpression, tells: []string{"set", "value"}, an: true, check: (*checker).local, build: (*builder).task,
	silent: func(a *Agent) bool { return a.Expression == nil || a.Expression.Value == "" },
	data:   func(*Agent) bool { return true }, inner: true,
}

var templateKind = kind{is: TypeTemplate, tells: []string{"text"}, check: (*checker).local, build: (*builder).task,
	expect: (*expecter).text,
	texts: func(a *Agent, texts map[string]string) template.Dialect {
		texts["text"] = a.Text
		return template.Canonical
	},
	result: []string{"text"}, inner: true,
}

// commandTexts adds the templates of a command or a coding agent; field is the name of the field with the input.
func commandTexts(a *Agent, field string, texts map[string]string) template.Dialect {
	for name, v := range a.Command.Env {
		texts["env."+name] = v
	}
	texts[field], texts["dir"] = a.Command.Stdin, a.Command.Dir
	return template.Mustache
}

// textsOf returns the templates of a task by field, and the dialect of their braces.
func textsOf(a *Agent) (map[string]string, template.Dialect) {
	texts := make(map[string]string)
	if add := a.Type.kind().texts; add != nil {
		return texts, add(a, texts)
	}
	return texts, template.Mustache
}

// task runs the checks of the agent's type.
func (c *checker) task(a *Agent) {
	if check := a.Type.kind().check; check != nil {
		check(c, a)
	}
}

// local checks a task that this process runs: first its texts and expressions one by one, so that each problem has
// its position, and then, with taskagent, the whole task.
func (c *checker) local(a *Agent) {
	before := len(c.problems)
	c.texts(a)
	c.template(a, "exit_reason", a.ExitReason, template.Canonical)
	if e := a.Expression; e != nil {
		for _, key := range slices.Sorted(maps.Keys(e.Set)) {
			c.expression(a, "set."+key, e.Set[key], vocabulary.ValueVariables)
		}
		c.expression(a, "value", e.Value, vocabulary.ValueVariables)
	}
	c.exitWhen(a)
	if cmd := a.Command; cmd != nil && cmd.Dir != "" && !strings.Contains(cmd.Dir, "{{") && !filepath.IsLocal(cmd.Dir) {
		c.report(a.at("dir"), CodeOutside, "dir %q leads out of the root of the run", cmd.Dir).
			Hint = "dir is relative to the folder that the run is given"
	}
	c.conversation(a)
	c.denied(a)
	if a.Type == TypeCLI && len(a.Command.CLI.ACP) == 1 && slices.Contains(taskagent.CLIPrograms(), a.Command.CLI.ACP[0]) {
		program := a.Command.CLI.ACP[0]
		c.warn(a.at("acp"), CodeTask, "%s alone does not speak the Agent Client Protocol", program).Hint = "write cli: " + program
	}
	if c.complete(a, before) {
		_, err := newTask(a, BuildConfig{Root: "."}, around{})
		c.whole(a, err)
	}
}

// texts checks the templates of a task.
func (c *checker) texts(a *Agent) {
	texts, dialect := textsOf(a)
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		c.template(a, field, texts[field], dialect)
	}
}

// sound reports whether the parts of an agent have no error, so that a check of the whole agent reports nothing twice.
func (c *checker) sound(a *Agent, before int) bool {
	return Problems(c.problems[before:]).count(SeverityError) == 0 && !a.broken && vocabulary.AgentName(a.Name) == ""
}

// complete is sound for a task, and reports a field that the task needs and does not have.
func (c *checker) complete(a *Agent, before int) bool {
	return Problems(c.problems[before:]).count(SeverityError) == 0 && !c.unset(a) && c.sound(a, before)
}

// denied notes that a coding agent may be denied a command, which fails its step.
func (c *checker) denied(a *Agent) {
	if a.Type != TypeCLI || a.Command.CLI.Denied != "" || a.Command.CLI.Permissions == "all" || a.Command.CLI.Program == "codex" {
		return
	}
	c.note(a.at("name"), CodeTask, "%q fails if its coding agent tries what it may not: its permissions are %s", a.Name,
		cmp.Or(a.Command.CLI.Permissions, "edit")).
		Hint = "give denied: allow to let it go on without, allow: [go test ./...] for what it may run, or denied: fail if this is meant"
}

// conversation checks that a coding agent can continue its conversation.
func (c *checker) conversation(a *Agent) {
	if a.Type != TypeCLI || a.Command.CLI.Conversation != taskagent.ConversationContinue || a.Step == nil {
		return
	}
	if a.copied() {
		c.report(a.at("conversation"), CodeConflict, "%q has best_of, and each copy would go on with a conversation of its own", a.Name).
			Hint = "remove conversation"
	}
	if a.Step.Cache != nil {
		c.report(a.at("conversation"), CodeConflict, "%q has a cache, which does not know the conversation", a.Name).Hint = "remove one of them"
	}
}

// resultReads checks that exit_when reads only fields that the result has.
func (c *checker) resultReads(a *Agent, p expr.Program) {
	known := a.Type.kind().result
	if known == nil {
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
			suggest(meant.Hint(key, known, "it has "+strings.Join(known, ", ")))
	}
}

// whole reports the errors of taskagent or remoteagent about a whole task. It drops errors of texts and expressions,
// which are already reported.
func (c *checker) whole(a *Agent, err error) {
	for _, e := range taskErrors(err) {
		_, inExpr := errors.AsType[expr.Errors](e)
		_, inText := errors.AsType[template.Errors](e)
		shapeless, isShape := errors.AsType[*taskagent.ShapeError](e)
		switch {
		case inExpr || inText:
		case isShape:
			c.misplace(a, shapeless)
		default:
			c.misconfigured(a, e)
		}
	}
}

// misconfigured reports an error of the agent's configuration in the words of the file.
func (c *checker) misconfigured(a *Agent, e error) {
	field, msg := "", e.Error()
	if wrong, ok := errors.AsType[*fielderror.Error](e); ok {
		field, msg = filePath(wrong.Field), wrong.Message(inFile)
	}
	c.report(a.at(field), CodeTask, "%s", msg).err = e
}

// needs maps the types of tasks to their required fields, from the rows of the fields.
var needs = make(map[Type]string)

// unset reports the required field that a task lacks.
func (c *checker) unset(a *Agent) bool {
	field, ok := needs[a.Type]
	if ok {
		n, given := a.nodes[field]
		if !given {
			c.report(a.src.Of(a.node), CodeMissing, "%s agent needs %s", article(a.Type), field)
		}
		return !given || source.IsNull(n)
	}
	if a.Type == TypeCLI && a.Command.CLI.Program == "" && a.Command.CLI.ACP == nil && !a.broken {
		c.report(a.src.Of(a.node), CodeMissing, "a cli agent needs cli or acp")
		return true
	}
	if a.Type == TypeExpression && !a.broken && len(a.Expression.Set) == 0 && a.Expression.Value == "" &&
		a.ExitWhen == "" {
		c.report(a.src.Of(a.node), CodeMissing, "an expression agent needs set, value or exit_when")
		return true
	}
	return false
}

// taskErrors lists the errors that taskagent has joined.
func taskErrors(err error) []error {
	for err != nil {
		if _, ok := err.(interface{ Unwrap() []error }); ok {
			return unjoin(err)
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			return []error{err}
		}
		err = inner
	}
	return nil
}

// fileWord translates taskagent's name of a field into that of the file; empty if it is no field of a task.
func fileWord(name string) string {
	word, own := map[string]string{"Args": "command", "Header": "headers", "BodyJSON": "body", "AgentCardSource": "endpoint"}[name]
	if !own {
		word = strings.ToLower(wordEnds().ReplaceAllString(name, "${1}_$2"))
	}
	if !slices.ContainsFunc(fields, func(f Field) bool { return f.Name == word && word != "name" }) {
		return ""
	}
	return word
}

var (
	wordEnds  = lazyregexp.New(`([a-z]|OK)([A-Z])`)
	configKey = lazyregexp.New(`\[("(?:[^"\\]|\\.)*"|\d+)\]`)
)

// filePath translates taskagent's path of a field, such as Set["n"], into that of the file, such as set.n; empty if it is no field
// of a task.
func filePath(path string) string {
	name, keys, indexed := strings.Cut(path, "[")
	field := fileWord(name)
	if field == "" || !indexed {
		return field
	}
	for _, m := range configKey().FindAllStringSubmatch("["+keys, -1) {
		if key, err := strconv.Unquote(m[1]); err == nil {
			field += "." + key
		} else {
			field += "[" + m[1] + "]"
		}
	}
	return field
}

// inFile translates the path of a field, as filePath does, and returns a path that is no field of a task unchanged.
func inFile(path string) string { return cmp.Or(filePath(path), path) }

// task makes the agent of a task. A command works in the workspace, if there is one.
func (b *builder) task(a *Agent, cb around) (agent.Agent, error) {
	cfg := b.cfg
	if b.files != nil {
		cfg.workspace = b.files.Around(a.Work)
	}
	return newTask(a, cfg, cb)
}

// newTask makes the agent of a task.
func newTask(a *Agent, cfg BuildConfig, cb around) (agent.Agent, error) {
	base := taskagent.Config{
		Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before, AfterAgentCallbacks: cb.after,
		Effect: a.Effect, Reconcile: reconcileOf(a, cfg), Elsewhere: cfg.queue(a),
		OutputKey: outputKey(a), ResultKey: a.ResultKey, ExitWhen: a.ExitWhen, ExitReason: a.ExitReason,
	}
	switch a.Type {
	case TypeCommand, TypeCLI:
		return taskagent.NewCommand(commandConfig(a, base, cfg))
	case TypeExpression:
		e := *a.Expression
		e.Config = base
		return taskagent.NewExpression(e)
	case TypeHTTP:
		return taskagent.NewHTTP(httpConfig(a, base, cfg))
	case TypeTemplate:
		return taskagent.NewText(taskagent.TextConfig{Config: base, Text: a.Text})
	}
	return nil, fmt.Errorf("build agent %q: there is no type %q", a.Name, a.Type)
}

// commandConfig returns the configuration of an agent's command.
func commandConfig(a *Agent, base taskagent.Config, cfg BuildConfig) taskagent.CommandConfig {
	c := *a.Command
	c.Config, c.Withhold, c.Root, c.Around = base, cfg.withhold, cfg.Root, cfg.workspace
	c.Shapes, c.Parameters = a.places()
	if cfg.Refrain != "" && base.Elsewhere.Name == "" && len(c.Args) > 0 && c.Args[0] == "refrain" {
		c.Args = append([]string{cfg.Refrain}, c.Args[1:]...)
	}
	if cfg.Sandbox != nil && c.Sandbox == nil && base.Elsewhere.Name == "" {
		c.Sandbox = cfg.Sandbox
	}
	if c.CLI != nil && cfg.Permissions != "" {
		cli := *c.CLI
		cli.Permissions, c.CLI = cfg.Permissions, &cli
	}
	return c
}

// httpConfig returns the configuration of an agent's request.
func httpConfig(a *Agent, base taskagent.Config, cfg BuildConfig) taskagent.HTTPConfig {
	h := *a.HTTP
	h.Config, h.Timeout, h.Client = base, requestTime(a), cfg.client()
	return h
}

// requestTime returns the timeout of a request by itself. If the step has a timeout, it is a minute longer than that, so
// that the loop ends the request.
func requestTime(a *Agent) time.Duration {
	bound := time.Duration(0)
	if s := a.Step; s != nil {
		bound = time.Duration(s.Timeout)
		if s.AdaptiveTimeout != nil {
			bound = max(bound, time.Duration(s.AdaptiveTimeout.Max))
		}
	}
	if bound == 0 {
		return a.HTTP.Timeout
	}
	return bound + time.Minute
}
