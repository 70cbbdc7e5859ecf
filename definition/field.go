// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/loop"
)

// Field is one thing that a definition can say about an agent.
type Field struct {
	Name string
	// Types are the types of agents that have it; nil is all.
	Types []Type
	// Root says that only the root agent has it.
	Root bool
	// Doc says what it is, on one line.
	Doc string
}

// Fields lists every field, in the order in which people write them.
func Fields() []Field { return slices.Clone(fields) }

var (
	workflows = []Type{TypeLoop, TypeSequential, TypeParallel}
	tasks     = []Type{TypeCommand, TypeExpression, TypeHTTP, TypeTemplate}
)

// fields are made of the rows of the kinds.
var fields []Field

// fieldNamed finds a field; its name is empty if there is none.
func fieldNamed(name string) Field {
	for _, f := range fields {
		if f.Name == name {
			return f
		}
	}
	return Field{}
}

func (f Field) has(t Type) bool {
	return f.Types == nil || slices.Contains(f.Types, t)
}

// typed are the fields that tell an agent's type, the clearest first.
var typed = []struct {
	field string
	is    Type
}{
	{"sub_agents", TypeLoop},
	{"command", TypeCommand},
	{"url", TypeHTTP},
	{"set", TypeExpression},
	{"value", TypeExpression},
	{"text", TypeTemplate},
	{"endpoint", TypeA2A},
	{"question", TypeHuman},
	{"func", TypeFunc},
}

// asking are the fields that agents of other types have too.
var asking = []string{"instructions", "model"}

var types = []string{
	string(TypeLoop), string(TypeSequential), string(TypeParallel), string(TypeLLM),
	string(TypeCommand), string(TypeExpression), string(TypeHTTP), string(TypeTemplate), string(TypeA2A),
	string(TypeHuman), string(TypeFunc),
}

// TypeOf returns the type of the agent that has these fields. given is the value of its
// field type, which decides if it is the name of a type. The result is empty if neither
// tells.
func TypeOf(given string, fields ...string) Type {
	if slices.Contains(types, given) {
		return Type(given)
	}
	for _, t := range typed {
		if slices.Contains(fields, t.field) {
			return t.is
		}
	}
	for _, name := range fields {
		if f := fieldNamed(name); len(f.Types) == 1 {
			return f.Types[0]
		}
	}
	if slices.ContainsFunc(asking, func(field string) bool { return slices.Contains(fields, field) }) {
		return TypeLLM
	}
	return ""
}

// Parts lists the names that can stand in a field that is a map, in the order in which
// people write them: Parts("score"), or Parts("score", "judge") for a map in it. A name
// in the path that the field does not know is one that people choose, such as that of an
// input. Nil if the field is no such map.
func Parts(path ...string) []string {
	if len(path) == 0 {
		return nil
	}
	s := form(shapes[path[0]])
	for _, name := range path[1:] {
		if s == nil {
			return nil
		}
		if next := s.Properties[name]; next != nil {
			s = form(next)
		}
	}
	if s == nil {
		return nil
	}
	return slices.Clone(s.PropertyOrder)
}

// The fields that agents of several types have. Those of one type stand beside it.

func nameShape() shape {
	return &jsonschema.Schema{
		Type: "string", MinLength: new(1), MaxLength: new(vocabulary.MaxName), Pattern: namePattern,
		Not: &jsonschema.Schema{Enum: []any{"user"}}, Title: "name",
	}
}

var headRows = []row[Agent]{
	field("name", "unique name: a letter, then letters, digits, _ and -", plain(nameShape, (*reader).text), func(a *Agent) *string { return &a.Name }),
	does("type", "kind of agent; optional where another field tells it", func() shape { return oneOf(types...) }, func(*reader, *Agent, *yaml.Node) {}),
	field("description", "what the agent is for", aText, func(a *Agent) *string { return &a.Description }),
	field("display_name", "name to show to people", plain(shownShape, (*reader).displayName), func(a *Agent) *string { return &a.DisplayName }),
	field("color", "color to show it in: a name such as red, or \"#rrggbb\"", plain(colorShape, (*reader).color), func(a *Agent) *string { return &a.Color }),
}

// does is the row of a field whose reader keeps what it reads by itself.
func does(name, doc string, s func() shape, read func(*reader, *Agent, *yaml.Node)) row[Agent] {
	return special(name, doc, s, func(p place, n *yaml.Node, a *Agent) bool {
		read(p.reader, a, n)
		return true
	})
}

var rootRows = []row[Definition]{
	special("inputs", "inputs of a run: name: {type, default, description}, or name: default", func() shape { return mapOf(inputShape()) }, takesInputs),
	special("state", "initial state of a run", func() shape { return &jsonschema.Schema{Type: "object", Title: "map"} }, takesState),
	field("query", "user's request if the run gives none: {{user_input}}", aText, func(d *Definition) *string { return &d.Query }),
	field("session", "session ID if the run gives none; with a fixed ID all runs are one conversation", aText, func(d *Definition) *string { return &d.Session }),
	field("prices", "price of a million tokens: provider/name: {input, output, cached_input}", as(named(priceParts.inPlace()), asPrices), func(d *Definition) *budget.Prices { return &d.Prices }),
	field("max_model_calls", "fail after this many model calls (a number or none; default 500); a larger budget of calls at the root raises it", plain(callsOrNone, (*reader).maxModelCalls), func(d *Definition) *int { return &d.MaxModelCalls }).shown(agent.DefaultMaxLLMCalls),
	field("init_timeout", "time limit to open a model or a tool server; 30s if left out", aSpan, func(d *Definition) *time.Duration { return &d.InitTimeout }).shown("30s"),
}

var parallelRows = []row[Parallel]{
	field("max_concurrency", "most sub-agents that run at once; all if left out", wholeFrom[uint](0, ""), func(p *Parallel) *uint { return &p.MaxConcurrency }),
}

var errorRows = []row[Agent]{
	field("on_error", "after a failed step: stop (default), skip_step or next_iteration; on a loop for all its steps, on a step for itself", oneWord(loop.StopOnError, loop.SkipStep, loop.NextIteration), func(a *Agent) *loop.ErrorPolicy { return &a.OnError }).
		helped("skip_step goes on with the next step, next_iteration with the next iteration").shown(loop.StopOnError),
}

var goOnRows = []row[Agent]{does("continue_on_error", "true means on_error: next_iteration", yesNo, (*reader).continueOnError)}

var subRows = []row[Agent]{does("sub_agents", "the agents inside, in order; {ref: file.yaml} reads one from a file", func() shape { return filled(by("step")) }, (*reader).subAgents)}

var modelRows = []row[Agent]{field("model", "model, as provider/name; on a workflow agent for all agents inside; that of the run if left out", plain(modelShape, (*reader).text), func(a *Agent) *string { return &a.Model })}

func modelShape() shape {
	return &jsonschema.Schema{Type: "string", Title: "text", Examples: []any{"openai/gpt-5-mini", "ollama/qwen3"}}
}

var funcRows = []row[Agent]{field("func", "name of a Go agent that the embedding program registers", plain(wordShape, (*reader).goAgentName), func(a *Agent) *string { return &a.Func }).must()}

func wordShape() shape { return &jsonschema.Schema{Type: "string", MinLength: new(1), Title: "text"} }

const effectDoc = "side effect, which decides what follows when the step is cut off: idempotent (default of commands and requests), pure, at_most_once or transactional; or {at_most_once: true, reconcile: {command} or {url}}, which finds out whether the step took place"

var effectRows = []row[Agent]{does("effect", effectDoc, func() shape { return either(oneOf(effects...), effectShape()) }, (*reader).taskEffect).shown(agent.Idempotent)}

var innerEffectRows = []row[Agent]{does("effect", "", func() shape { return oneOf(innerEffects...) }, (*reader).taskEffect).alone()}

var tailRows = []row[Agent]{
	does("callbacks", "hooks: before_run, after_run, before_agent, after_agent, before_iteration, after_iteration, before_model, after_model, before_tool, after_tool; each a list of {webhook, secret_env}, {command} or {func}, with timeout, veto, on_error", callbacksShape, (*reader).callbacks),
	field("output_key", "state key of the result; loop_output makes a step of a loop its finalizer", aText, func(a *Agent) *string { return &a.OutputKey }),
}

var exitRows = []row[Agent]{field("can_exit_loop", "true lets the agent, and agents inside it, end the loop; true is the default with exit_when or the tool exit_loop, false otherwise. It gives an llm agent that tool, and lets a person who approves end the loop", aBool, func(a *Agent) *bool { return &a.CanExitLoop })}
