// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/process/hook"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/internal/vocabulary"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
)

// Type is the type of an agent, as a file names it.
type Type string

// The types of agents.
const (
	TypeLoop       Type = "loop"
	TypeSequential Type = "sequential"
	TypeParallel   Type = "parallel"
	TypeCommand    Type = "command"
	TypeCLI        Type = "cli"
	TypeExpression Type = "expression"
	TypeHTTP       Type = "http"
	TypeTemplate   Type = "template"
	TypeLLM        Type = "llm"
	TypeA2A        Type = "a2a"
	TypeHuman      Type = "human"
	TypeFunc       Type = "func"
)

// Workflow reports whether agents of this type have sub-agents.
func (t Type) Workflow() bool {
	return t == TypeLoop || t == TypeSequential || t == TypeParallel
}

// Agent is one agent of a definition. The one field that belongs to its type is
// set: Loop, Parallel, Command (that of a cli agent too), Expression, HTTP, Text, LLM, A2A, Human or Func; a
// sequence has none.
type Agent struct {
	Name        string
	Description string
	// DisplayName is shown to people instead of the name, in Color: one of [Colors], or #rrggbb.
	// They are empty if the file does not set them.
	DisplayName, Color string
	Type               Type
	// OutputKey is the state key of the result. [LoopOutput] makes a step of a loop its finalizer.
	OutputKey string
	// OnError says what the workflow agent around the agent does after the agent fails. On a loop it
	// is also the default for the loop's own steps, unless Loop.ContinueOnError is set. A sequence and a
	// parallel agent know loop.StopOnError and loop.SkipStep. Empty is the default.
	OnError loop.ErrorPolicy
	// CanExitLoop reports whether the agent, and every agent inside a workflow agent, may end the
	// nearest loop around it.
	CanExitLoop bool
	// Model is the model of the agent, as provider/name. On a workflow agent it is the default for the agents inside.
	// Empty uses the model of the nearest enclosing agent with one, or else BuildConfig.DefaultModel.
	Model string
	// PromptCache says whether a provider is asked to cache the repeated beginning of requests: on, off, or the time
	// to keep it, such as 24h. On a workflow agent it is the default for the agents inside. Empty uses the value of
	// the nearest enclosing agent with one, or else on.
	PromptCache string
	// SubAgents are the sub-agents of a workflow agent, in the order of the file.
	SubAgents []*Agent
	// ResultKey, ExitWhen and ExitReason are fields of a task.
	ResultKey  string
	ExitWhen   string
	ExitReason string
	// Step says how the workflow agent that contains the agent runs it as a step; nil if the file sets none of these
	// fields.
	Step *Step
	// Work says how a command uses the workspace; nil if the file sets none of these fields.
	Work *runfiles.Work
	// Effect is the effect of a task on the outside world; empty is the default of its type.
	Effect agent.Effect
	// Reconcile is a command or a request that finds out whether a task that must not run twice
	// took place. Only its own fields are set. With nil, a person is asked.
	Reconcile *Agent
	// TaskQueue is the queue of the workers that run the step on their machine. If it is empty, the process that
	// drives the run executes the step. See BuildConfig.Elsewhere.
	TaskQueue string
	// Callbacks are called at points of the agent's work; nil if there are none. On a workflow agent, callbacks of
	// models and tools apply to all agents inside.
	Callbacks map[hook.Point][]Callback

	Loop       *Loop
	Parallel   *Parallel
	Command    *Command
	Expression *Expression
	HTTP       *HTTP
	Text       string
	LLM        *LLM
	A2A        *A2A
	Human      *Human
	Func       string // the name of a Go agent; see BuildConfig.Agents

	def     *Definition        // that it is of
	answer  *jsonschema.Schema // output_schema as it was read
	script  *scripted.Script   // of the model; nil if there is none, or it could not be read
	parent  *Agent
	tool    bool         // parent has it as a tool
	alias   *source.Node // where an alias stands for it; nil if none does
	use     *use         // of the file that describes it; nil if it is described where it is
	written *use         // the same, as the file has it
	change  *change      // how the agent differs from its description; nil if it does not
	src     *source.Source
	node    *source.Node
	broken  bool                    // a field could not be read
	unread  []string                // fields that could not be read, or not whole
	anyone  bool                    // it may exit because no agent of its loop has can_exit_loop
	nodes   map[string]*source.Node // the values of fields, by path
}

// LoopOutput is the output key that makes a step of a loop its finalizer.
const LoopOutput = "loop_output"

// asking lists the fields of an llm agent that agents of other types have too.
var asking = []string{"instructions", "model"}

// TypeOf returns the type of the agent that has these fields. given is the value of the field type, which decides if
// it is the name of a type. The result is empty if neither given nor the fields identify a type.
func TypeOf(given string, fields ...string) Type {
	if Type(given).known() {
		return Type(given)
	}
	for _, k := range kinds {
		if slices.ContainsFunc(k.tells, func(field string) bool { return slices.Contains(fields, field) }) {
			return k.is
		}
	}
	for _, name := range fields {
		if f := fieldNamed(name); len(f.Types) == 1 && !alsoMeant(name) {
			return f.Types[0]
		}
	}
	if slices.ContainsFunc(asking, func(field string) bool { return slices.Contains(fields, field) }) {
		return TypeLLM
	}
	return ""
}

// The rows of fields that agents of several types have. The rows of one type's fields stand in the file of the type.

func nameShape() shape {
	return &jsonschema.Schema{
		Type: "string", MinLength: new(1), MaxLength: new(vocabulary.MaxName), Pattern: namePattern,
		Not: &jsonschema.Schema{Enum: []any{"user"}}, Title: "name",
	}
}

// namePattern accepts more than a valid name, because not every validator's regular expressions have classes such as
// \p{L}. From the letters it excludes the other characters of ASCII, of Latin-1 and of the blocks of punctuation and
// symbols.
const namePattern = "^[^\\x00-@\\[-`{-\\xa9\\xab-\\xb4\\xb6-\\xb9\\xbb-\\xbf\\xd7\\xf7\u2010-\u205e\u20a0-\u20c0\u2190-\u2bff]" +
	"[^\\x00-,./:-@\\[-^`{-\\xa9\\xab-\\xb4\\xb6-\\xb9\\xbb-\\xbf\\xd7\\xf7\u2010-\u205e\u20a0-\u20c0\u2190-\u2bff]*$"

var headRows = []row[Agent]{
	field("name", "unique name: a letter, then letters, digits, _ and -", plain(nameShape, (*reader).text),
		func(a *Agent) *string { return &a.Name }),
	does("type", "kind of agent; optional where another field tells it", func() shape { return schema.OneOf(wordsOf(Types())...) },
		func(*reader, *Agent, *source.Node) {}),
	field("description", "what the agent is for", aText, func(a *Agent) *string { return &a.Description }),
	field("display_name", "name to show to people", aLine(vocabulary.MaxName, "leave it out to show the name"), func(a *Agent) *string { return &a.DisplayName }),
	field("color", "color to show it in: a name such as red, or \"#rrggbb\"", plain(colorShape, (*reader).color), func(a *Agent) *string { return &a.Color }),
}

var tailRows = []row[Agent]{
	does("callbacks", "hooks: before_run, after_run, before_agent, after_agent, before_iteration, after_iteration, "+
		"before_model, after_model, before_tool, after_tool; each a list of {webhook, secret_env}, {command} or "+
		"{func}, with timeout, veto, on_error", callbacksShape, (*reader).callbacks),
	field("output_key", "state key of the result; loop_output makes a step of a loop its finalizer", aText,
		func(a *Agent) *string { return &a.OutputKey }),
}

// Position returns the place in the file where the agent begins.
func (a *Agent) Position() Position { return positionOf(a.src.Of(a.node)) }

// FieldPosition returns the place where the value of a field begins, such as "max_iterations",
// "command[1]" or "env.PATH"; ok is false if the file does not set the field.
func (a *Agent) FieldPosition(field string) (p Position, ok bool) {
	n, ok := a.nodes[field]
	if !ok {
		return Position{}, false
	}
	return positionOf(a.sourceOf(field).Of(n)), true
}

// All yields the agent and those below it, each before its sub-agents and the
// agents that it has as tools.
func (a *Agent) All(yield func(*Agent) bool) { a.walk(yield) }

func (a *Agent) walk(yield func(*Agent) bool) bool {
	if !yield(a) {
		return false
	}
	if a.LLM != nil {
		for _, t := range a.LLM.Tools {
			if t.Agent != nil && !t.Agent.walk(yield) {
				return false
			}
		}
	}
	for _, sub := range a.SubAgents {
		if !sub.walk(yield) {
			return false
		}
	}
	return true
}

// contains reports whether a condition holds for the agent or one inside it.
func (a *Agent) contains(is func(*Agent) bool) bool {
	return slices.ContainsFunc(slices.Collect(a.All), is)
}

// at returns the position of a field, or of the field that contains it, or of the agent.
func (a *Agent) at(field string) source.Span {
	for f := field; f != ""; f = outer(f) {
		if n, ok := a.nodes[f]; ok {
			return a.sourceOf(f).Of(n)
		}
	}
	return a.src.Of(a.node)
}

// inField returns the position of a character of a field's value.
func (a *Agent) inField(field string, line, column int) source.Span {
	if n, ok := a.nodes[field]; ok {
		return a.src.Within(n, line, column)
	}
	return a.at(field)
}

// outer cuts the last element off a path: stop_when.any[0] is in stop_when.any.
func outer(field string) string {
	for i := len(field) - 1; i > 0; i-- {
		if field[i] == '.' || field[i] == '[' {
			return field[:i]
		}
	}
	return ""
}

// loopAround returns the innermost loop around the agent; nil if there is none.
func (a *Agent) loopAround() *Agent {
	for p := a.parent; p != nil; p = p.parent {
		if p.Type == TypeLoop {
			return p
		}
	}
	return nil
}

// incomplete reports that the file gives sub-agents that could not be read.
func (a *Agent) incomplete() bool {
	n, given := a.nodes["sub_agents"]
	return given && len(a.SubAgents) < len(source.Deref(n).Content)
}

// finalizer returns the step that runs after the loop; nil if there is none.
func (a *Agent) finalizer() *Agent {
	if a.Type != TypeLoop {
		return nil
	}
	for _, sub := range a.SubAgents {
		if sub.OutputKey == LoopOutput {
			return sub
		}
	}
	return nil
}

var colors = []string{
	"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "gray", "orange", "pink", "purple", "brown",
}

// Colors returns the names of colors. Any other color is written #rrggbb.
func Colors() []string { return slices.Clone(colors) }

// Shown returns the name that people see: the display name, or else the name.
func (a *Agent) Shown() string {
	if a.DisplayName != "" {
		return a.DisplayName
	}
	return a.Name
}

var hexColor = lazyregexp.New(`^#[0-9A-Fa-f]{6}$`)

func colorShape() shape {
	hex := &jsonschema.Schema{Type: "string", Pattern: hexColor().String(), Title: `"#rrggbb"`}
	return schema.Either(schema.OneOf(colors...), hex)
}

// aLine makes a kind of value that is a text of one line, which is not empty and has at most that many characters. Any
// other text is reported, and kept.
func aLine(most int, ifEmpty string) value[string] {
	return value[string]{func() shape {
		return &jsonschema.Schema{Type: "string", MinLength: new(1), MaxLength: &most, Title: "text"}
	}, func(p place, n *source.Node) (string, bool) {
		text, ok := p.text(n, p.field)
		switch {
		case !ok:
		case text == "":
			p.report(n, CodeValue, "%s is empty", p.field).Hint = ifEmpty
		case utf8.RuneCountInString(text) > most:
			p.report(n, CodeValue, "%s is longer than %d characters", p.field, most)
		case strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }):
			p.report(n, CodeName, "%s contains a line break or another character that cannot be displayed", p.field)
		}
		return text, ok
	}}
}

func (r *reader) color(n *source.Node, _ string) (string, bool) {
	text, ok := r.text(n, "color")
	if !ok || slices.Contains(colors, text) || hexColor().MatchString(text) {
		return text, ok
	}
	hint := "the colors are " + strings.Join(colors, ", ") + `, or "#rrggbb"`
	if short := []rune(text); len(short) == 4 && hexColor().MatchString("#000"+text[1:]) {
		hint = strings.ToLower(`write "#` + string([]rune{short[1], short[1], short[2], short[2], short[3], short[3]}) +
			`"`)
	} else if hexColor().MatchString("#" + text) {
		hint = `write "#` + text + `"`
	}
	r.report(n, CodeValue, "there is no color %q", text).suggest(meant.Hint(text, colors, hint))
	return text, true
}

// agent reads an agent, or follows a ref to one; nil if it is neither.
func (r *reader) agent(n *source.Node, parent *Agent) *Agent {
	what := "an agent"
	if parent == nil {
		what = "a definition"
	}
	ps, ok := r.pairs(n, what)
	if !ok {
		return nil
	}
	if parent != nil && isRef(ps) {
		return r.ref(parent, ps, nil)
	}
	return r.described(n, ps, parent, nil)
}

// described makes an agent from the fields that describe it. use has the fields beside a ref, which replace those of
// the file; it is nil for an agent without a ref.
func (r *reader) described(n *source.Node, ps []pair, parent *Agent, use *use) *Agent {
	ps = r.configured(ps)
	a := &Agent{def: r.def, parent: parent, src: r.src, node: source.Deref(n), nodes: make(map[string]*source.Node), written: use, change: r.change}
	if r.change != nil {
		r.copies++
	}
	ps, use = r.change.changed(a.node, ps, use)
	a.use = use
	a.Type = r.typeOf(a, ps)
	begin(a)
	for _, p := range ps {
		if use.field(p.key) == nil {
			r.take(a, p)
		}
	}
	if use != nil {
		for _, b := range use.fields {
			b.reader.take(a, b.pair)
		}
	}
	r.defaults(a)
	return a
}

// take reads a field of an agent.
func (r *reader) take(a *Agent, p pair) {
	a.nodes[p.key], a.nodes["key of "+p.key] = p.value, p.at
	switch f := fieldNamed(p.key); {
	case f.Name == "":
		r.unknown(a, p)
	case f.Root && (a.parent != nil || len(r.reading) > 1):
		r.report(p.at, CodeField, "%q belongs to the root of the definition", p.key)
	case a.Type != "" && !f.has(a.Type):
		r.misplaced(a, p, f)
	case source.IsNull(p.value):
		problem := r.report(p.value, CodeValue, "%s has no value", p.key)
		if problem.Hint = "leave the field out, or give it one"; p.key == "color" {
			problem.Hint = `a color that begins with # needs quotes, as "#3366cc"`
		}
	default:
		before := len(r.problems)
		r.field(a, p)
		a.broken = a.broken || p.key != "sub_agents" && len(r.problems) > before
	}
}

// typeOf returns the type of agent that the fields describe; empty if they describe none.
func (r *reader) typeOf(a *Agent, ps []pair) Type {
	var given *source.Node
	names := make([]string, len(ps))
	for i, p := range ps {
		if names[i] = p.key; p.key == "type" {
			given = p.value
		}
	}
	word := ""
	if given != nil {
		t, ok := r.text(given, "type")
		if word = t; ok && !Type(t).known() {
			r.report(given, CodeValue, "there is no type %q of agent", t).suggest(typeHint(t))
		}
	}
	is := TypeOf(word, names...)
	if is == "" && given == nil && !r.meant(a, ps) {
		r.report(a.node, CodeMissing, "the type of this agent is not clear").
			Hint = "give type, or one of sub_agents, instructions, command, url, set, value, text, endpoint, " +
			"question and func"
	}
	return is
}

// meant reports whether a mistyped field, or another word for a field, would identify the type. The field is already
// reported as unknown, and one problem is enough.
func (r *reader) meant(a *Agent, ps []pair) bool {
	return slices.ContainsFunc(ps, func(p pair) bool {
		if fieldNamed(p.key).Name != "" {
			return false
		}
		_, _, tells := otherWord(a, p)
		return tells || fieldNamed(suggest.Nearest(p.key, r.names(a))).Types != nil
	})
}

// defaults sets the fields that the file leaves out.
func (r *reader) defaults(a *Agent) {
	switch a.Type {
	case TypeLoop:
		a.preset()
	case TypeLLM:
		if l := llmOf(a); l.Context.Policy == "" {
			l.Context.Policy = llmagent.ContextIteration
		}
	}
	if _, given := a.nodes["can_exit_loop"]; !given {
		a.CanExitLoop = a.ExitWhen != "" || a.exitTool() != nil
	}
}

func (c *checker) name(a *Agent) {
	if _, given := a.nodes["name"]; !given {
		c.report(a.at("name"), CodeMissing, "%s agent needs a name", article(a.Type))
		return
	}
	at := a.at("name")
	switch problem := vocabulary.AgentName(a.Name); {
	case source.IsNull(a.nodes["name"]) || !source.PlainText(a.nodes["name"]):
	case problem != "":
		c.report(at, CodeName, "%s", problem).Hint = nameHint(a.Name)
	case c.names[a.Name] != nil:
		first := positionOf(c.names[a.Name].at("name"))
		if alias := a.aliased(); alias != nil {
			c.report(a.src.Of(alias), CodeSameName, "two agents are called %q; the first is at %s", a.Name, first).
				Hint = "an alias stands for the same agent again: write it out, with another name"
			return
		}
		other := c.names[a.Name].fromFile()
		if again := a.fromFile(); again != nil && other != nil && again.src == other.src {
			p := c.report(again.use.at, CodeSameName, "two agents are called %q: %q is used twice; the first is at %s", a.Name,
				again.use.file, first)
			if p.Hint = fmt.Sprintf("give this one a name of its own: {ref: %s, name: %s_2}", again.use.file, a.Name); again != a {
				p.Hint = "agents inside a file keep their names, so it can be used once; make a second file, with other names in it"
			}
			return
		}
		c.report(at, CodeSameName, "two agents are called %q; the first is at %s", a.Name, first)
	default:
		c.names[a.Name] = a
	}
}

// aliased returns the YAML alias that stands for the agent or for an enclosing agent; nil if no alias does.
func (a *Agent) aliased() *source.Node {
	for ; a != nil; a = a.parent {
		if a.alias != nil {
			return a.alias
		}
	}
	return nil
}

// nameHint returns a valid name that resembles an invalid one.
func nameHint(name string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	clean = strings.TrimLeftFunc(clean, func(r rune) bool { return !unicode.IsLetter(r) })
	if clean = strings.TrimRight(clean, "_"); clean == "" || clean == name || vocabulary.AgentName(clean) != "" {
		return ""
	}
	return fmt.Sprintf("%q would do", clean)
}

// Program is a program that an agent starts.
type Program struct {
	// Field is the field of the agent that names the program, and What describes it, such as "a command".
	Field, What string
	// Args are the program and its arguments as they stand in the definition.
	Args []string
}

// Programs returns the programs that the agent starts; nil if it starts none. It skips sub-agents and tools that are
// agents.
func (a *Agent) Programs() (all []Program) {
	add := func(field, what string, args []string) {
		if len(args) > 0 {
			all = append(all, Program{field, what, args})
		}
	}
	switch c := a.Command; {
	case c == nil:
	case a.Type == TypeCLI && c.CLI.ACP != nil:
		add("acp", "a coding agent", c.CLI.ACP)
	case a.Type == TypeCLI:
		add("cli", "a coding agent", append(c.CLI.Command(), c.CLI.Args...))
	default:
		add("command", "a command", c.Args)
	}
	if a.Reconcile != nil && a.Reconcile.Command != nil {
		add("effect", "a command in reconcile", a.Reconcile.Command.Args)
	}
	for _, at := range slices.Sorted(maps.Keys(a.Callbacks)) {
		for _, cb := range a.Callbacks[at] {
			add("callbacks", "a callback that is a command", cb.Command)
		}
	}
	if a.LLM != nil {
		for _, t := range a.LLM.Tools {
			if t.MCP != nil {
				add("tools", "a tool server that is a command", t.MCP.Command)
			}
		}
	}
	return all
}

// Starts returns the field of the first of the agent's Programs, and its description; both are empty without one.
func (a *Agent) Starts() (field, what string) {
	if all := a.Programs(); len(all) > 0 {
		return all[0].Field, all[0].What
	}
	return "", ""
}
