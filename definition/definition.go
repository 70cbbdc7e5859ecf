// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/hook"
	"github.com/refrain-dev/refrain/loop"
)

// Definition is what a file says. It was checked; do not change it.
type Definition struct {
	// Name and Description are the root agent's.
	Name        string
	Description string
	// Goal and Instructions are the root loop's; empty if the root is no loop.
	Goal         string
	Instructions string
	// Inputs are what a run is given, in the order of the file.
	Inputs []Input
	// Query is what the user asks where a run is given nothing, and Session the ID
	// of a run that is given none; empty if the file does not say.
	Query, Session string
	// Prices are what models charge for a million tokens, by their names; nil if
	// the file does not say. They are for agent.RunConfig.
	Prices budget.Prices
	// MaxModelCalls is how often the agents of a run may ask a model, for
	// agent.RunConfig.MaxLLMCalls: 0 is agent.DefaultMaxLLMCalls, and a negative
	// number no limit. Where the file does not say, a budget of more calls at
	// the root does.
	MaxModelCalls int
	// InitTimeout is how long the opening of a model or of a server of tools may
	// take; 0 is [DefaultInitTimeout].
	InitTimeout time.Duration
	// State is the file's own part of the state that a run begins with; see
	// [Definition.InitialState] for all of it.
	State map[string]any
	// Root is the agent that the file describes, with those below it.
	Root *Agent

	warnings Problems
	notes    Problems
	kept     map[*Agent]bool // loops whose earlier states somebody reads
}

// Warnings are the problems that do not keep the definition from running; nil if
// there are none.
func (d *Definition) Warnings() Problems { return d.warnings }

// Notes are what is worth knowing before a run and is no mistake; nil if there is
// nothing. [WorstCase.Notes] has what bounds nothing.
func (d *Definition) Notes() Problems { return d.notes }

// title copies what is said about the root.
func (d *Definition) title() {
	d.Name, d.Description = d.Root.Name, d.Root.Description
	if l := d.Root.Loop; l != nil {
		d.Goal, d.Instructions = l.Goal, l.Instructions
		d.raiseModelCalls(l.Budget)
	}
}

// Type is the type of an agent, as a file names it.
type Type string

// The types of agents.
const (
	TypeLoop       Type = "loop"
	TypeSequential Type = "sequential"
	TypeParallel   Type = "parallel"
	TypeCommand    Type = "command"
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
// set: Loop, Parallel, Command, Expression, HTTP, Text, LLM, A2A, Human or Func; a
// sequence has none.
type Agent struct {
	Name        string
	Description string
	// DisplayName is what people are shown in place of the name, and Color in
	// which color: one of [Colors], or #rrggbb. Empty if the file does not say.
	DisplayName, Color string
	Type               Type
	// OutputKey is where the result goes. [LoopOutput] makes a step of a loop
	// its finalizer.
	OutputKey string
	// OnError is what a loop does when one of its steps fails, and for a step
	// of another type what its loop does when it fails; empty for the default.
	OnError loop.ErrorPolicy
	// CanExitLoop reports whether the agent, and for a workflow agent all that
	// is in it, may end the nearest loop around it.
	CanExitLoop bool
	// Model is the name of the model that the agent asks, as provider/name; on a
	// workflow agent, that of all agents in it that name none. Empty leaves it
	// to those around, and in the end to whoever runs the definition.
	Model string
	// SubAgents are those of a workflow agent, in the order of the file.
	SubAgents []*Agent
	// ResultKey, ExitWhen and ExitReason are those of a task.
	ResultKey  string
	ExitWhen   string
	ExitReason string
	// Step is how the loop around treats the agent, which is one of its steps;
	// nil if the file does not say.
	Step *Step
	// Effect is what a task does to the world outside; empty is the default of
	// its type.
	Effect agent.Effect
	// Reconcile finds out whether a task was done that must not be done twice: an agent
	// of the type command or http, with its own fields alone; nil asks a person.
	Reconcile *Agent
	// Callbacks are who is told what the agent does; nil if nobody is. Those of
	// models and tools on a workflow agent are for all in it.
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

	parent *Agent
	tool   bool       // parent has it as a tool
	alias  *yaml.Node // where an alias stands for it; nil if none does
	src    *source.Source
	node   *yaml.Node
	broken bool                  // a field could not be read
	unread []string              // fields that could not be read, or not whole
	anyone bool                  // it may exit because nobody is said to
	nodes  map[string]*yaml.Node // the values of fields, by path
}

// LoopOutput is the output key that makes a step of a loop its finalizer.
const LoopOutput = "loop_output"

// Parallel is what only parallel agents have.
type Parallel struct {
	// MaxConcurrency is how many run at once; 0 is all.
	MaxConcurrency uint
}

// Command is a program to run. No shell is involved.
type Command struct {
	Args        []string
	Stdin       string
	Env         map[string]string
	CleanEnv    bool
	Dir         string
	Timeout     time.Duration // 0: as long as it likes; of a step of a loop, see Step
	OutputLimit int64         // bytes; 0: taskagent's default
	JSON        bool
	OKExitCodes []int
	// Unsafe allows placeholders where a value could be run as code.
	Unsafe bool
}

// Expression computes values of the state.
type Expression struct {
	Set   map[string]string
	Value string
}

// HTTP is a request to send.
type HTTP struct {
	URL       string
	Method    string
	Headers   map[string]string
	Body      string
	BodyJSON  any // a body that the file gives as a map or a list
	JSON      bool
	Timeout   time.Duration // 0: taskagent's default; of a step of a loop, see Step
	SizeLimit int64         // bytes; 0: taskagent's default
	OKStatus  []int
	// RedirectHosts are other servers to which a redirect may lead.
	RedirectHosts []string
}

// Position is where the agent begins in its file.
func (a *Agent) Position() Position { return positionOf(a.src.Of(a.node)) }

// FieldPosition is where a field's value begins, such as "max_iterations",
// "command[1]" or "env.PATH"; ok is false if the file does not give it.
func (a *Agent) FieldPosition(field string) (p Position, ok bool) {
	n, ok := a.nodes[field]
	if !ok {
		return Position{}, false
	}
	return positionOf(a.src.Of(n)), true
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

// at is the place of a field, or of the field that holds it, or of the agent.
func (a *Agent) at(field string) source.Span {
	for f := field; f != ""; f = outer(f) {
		if n, ok := a.nodes[f]; ok {
			return a.src.Of(n)
		}
	}
	return a.src.Of(a.node)
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

// loopAround is the nearest loop that the agent is in; nil if there is none.
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

// finalizer is the step that runs after the loop; nil if there is none.
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
