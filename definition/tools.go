// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/internal/vocabulary"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/agenttool"
	"github.com/refrain-dev/refrain/tool/exitlooptool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// Tool is a tool that a model can call: exit_loop, a Go function, an agent, or the tools of an MCP server. One of
// Exit, Func, Agent and MCP is set.
type Tool struct {
	// Exit is the exit tool's name, exit_loop or exitLoop.
	Exit string
	// Func is the name of one of [BuildConfig]'s Tools or Toolsets.
	Func  string
	Agent *Agent
	// Parameters describe the arguments of the Agent as JSON; nil means a request in words. Only agents that run a
	// command have them.
	Parameters *jsonschema.Schema
	MCP        *MCP

	field string // where it stands, such as tools[0]
}

// toolNames lists the names and the first keys that an element of tools can have.
var toolNames = []string{exitlooptool.Name, exitlooptool.Alias, "func", "agent", "command", "mcp"}

// toolForms shows how to write the tools that are more than a name.
var toolForms = map[string]string{
	"func": "{func: name}", "agent": "{agent: {…}}", "command": "{command: […], name: …}", "mcp": "{mcp: {…}}",
}

const toolsHint = "the tools are exit_loop, the name of a Go function, {agent: {…}}, {command: […], name: …} and " +
	"{mcp: {…}}"

// takesTools reads the tools of a model one by one.
func takesTools(p place, n *source.Node, _ *LLM) bool {
	items, ok := p.items(n, "tools")
	for i, item := range items {
		if p.full() {
			return false
		}
		field := index("tools", i)
		p.a.nodes[field] = item
		if item.Kind == source.Map {
			p.toolMap(p.a, field, item)
		} else {
			p.toolName(p.a, field, item)
		}
	}
	return ok
}

// toolName reads the name of a tool. Build checks whether there is a function of that name.
func (r *reader) toolName(a *Agent, field string, n *source.Node) {
	name, ok := r.text(n, field)
	switch {
	case !ok:
	case isExit(name):
		if a.exitTool() != nil {
			r.report(n, CodeDuplicate, "the exit tool is given twice")
			return
		}
		llmOf(a).Tools = append(llmOf(a).Tools, Tool{Exit: name, field: field})
	case toolForms[name] != "":
		r.report(n, CodeTool, "the tool %s must be a map, not a name", name).Hint = "write " + toolForms[name]
	default:
		if hint, near := meant.Hint(name, toolNames, ""); near != "" {
			r.report(n, CodeTool, "there is no tool %q", name).suggest(hint+" (a Go function is written {func: "+name+"})", near)
			return
		}
		r.function(a, field, n, name)
	}
}

// function notes the name of a function.
func (r *reader) function(a *Agent, field string, n *source.Node, name string) {
	switch {
	case isExit(name):
		r.report(n, CodeTool, "%s is not a function", name).Hint = "write its name alone"
	case !toolName().MatchString(name):
		r.report(n, CodeTool, "%q cannot be the name of a function: "+toolNameRule, name)
	default:
		llmOf(a).Tools = append(llmOf(a).Tools, Tool{Func: name, field: field})
	}
}

// toolMap reads a tool that is a map.
func (r *reader) toolMap(a *Agent, field string, n *source.Node) {
	ps, ok := r.pairs(n, field)
	if !ok {
		return
	}
	if slices.ContainsFunc(ps, func(p pair) bool { return p.key == "command" }) {
		r.commandTool(a, field, n, ps)
		return
	}
	if i := slices.IndexFunc(ps, func(p pair) bool { return meant.Types[p.key] == string(TypeCommand) }); i >= 0 {
		r.report(ps[i].at, CodeTool, "there is no tool %q", ps[i].key).Hint = "write it as {name: …, " +
			"description: …, " + meant.CommandLine(ps[i].value.Value) + "}"
		return
	}
	if len(ps) != 1 {
		r.report(n, CodeTool, "%s must be one tool, got %d fields", field, len(ps)).Hint = toolsHint
		return
	}
	p := ps[0]
	switch p.key {
	case "func":
		a.nodes[field] = p.value
		if name, ok := r.text(p.value, field+".func"); ok {
			r.function(a, field, p.value, name)
		}
	case "agent":
		if p.value.Kind != source.Map {
			r.wrong(p.value, field+".agent", "a map with a name, or with a ref")
			return
		}
		r.agentTool(a, Tool{field: field}, p.value)
	case "mcp":
		if m := r.mcp(a, field+".mcp", p.value); m != nil {
			llmOf(a).Tools = append(llmOf(a).Tools, Tool{MCP: m, field: field + ".mcp"})
		}
	case exitlooptool.Name, exitlooptool.Alias:
		r.report(p.at, CodeTool, "the tool %s has no settings", p.key).Hint = "write its name alone"
	default:
		r.report(p.at, CodeTool, "there is no tool %q", p.key).suggest(meant.Hint(p.key, toolNames, toolsHint))
	}
}

// agentTool reads an agent that is a tool; nil if it cannot be read.
func (r *reader) agentTool(a *Agent, t Tool, n *source.Node) *Agent {
	if t.Agent = r.agent(n, a); t.Agent != nil {
		t.Agent.tool = true
		llmOf(a).Tools = append(llmOf(a).Tools, t)
	}
	return t.Agent
}

// commandTool reads a command that is a tool: an agent that runs a command, with parameters. The model's arguments go
// to the command's standard input, unless its texts name the parameters.
func (r *reader) commandTool(a *Agent, field string, n *source.Node, ps []pair) {
	t := Tool{field: field, Parameters: &jsonschema.Schema{Type: "object"}}
	own := *source.Deref(n) // without parameters, which agents do not have
	own.Content = nil
	for _, p := range ps {
		switch {
		case p.key == "parameters":
			if s := r.schema(p.value, field+".parameters"); s != nil {
				t.Parameters = s
				if s.Type != "object" {
					r.report(p.value, CodeValue, "parameters must be of type object: a tool gets named values")
				}
			}
		case fieldNamed(p.key).Name == "" && suggest.Nearest(p.key, []string{"parameters"}) != "":
			r.report(p.at, CodeField, "unknown field %q", p.key).suggest(meant.Name("parameters"))
		default:
			own.Content = append(own.Content, p.at, p.value)
		}
	}
	inner := r.agentTool(a, t, &own)
	switch {
	case inner == nil:
	case inner.Type != TypeCommand:
		r.report(n, CodeTool, "a tool with a command cannot also be %s agent", article(inner.Type)).Hint = "write {agent: {…}}"
	case inner.Command.Stdin == "":
		inner.Command.Stdin = "{{user_input}}" // what an agent that is a tool is given
	}
}

func isExit(name string) bool { return name == exitlooptool.Name || name == exitlooptool.Alias }

// toolSchema returns the shape of a tool: a name or a map.
func toolSchema() shape {
	name := schema.Text()
	name.Examples = []any{"exit_loop"}
	s := &jsonschema.Schema{Type: "object", Required: []string{"command"}}
	s = &jsonschema.Schema{If: s, Then: schema.By("tool.command"), Else: schema.Either(
		schema.Settings([]schema.Entry{schema.Named("func", "the name of a Go function", schema.Text())}, "func"),
		schema.Settings([]schema.Entry{schema.Named("agent", "an agent, or the file that it is in", schema.By("step"))}, "agent"),
		schema.Settings([]schema.Entry{schema.Named("mcp", "a server of tools", schema.By("mcp"))}, "mcp"),
	)}
	return &jsonschema.Schema{If: &jsonschema.Schema{Type: "object"}, Then: s, Else: name}
}

// agentTool checks the name and the description that a model gets of an agent that is a tool.
func (c *checker) agentTool(a *Agent) {
	switch {
	case a.Name == exitlooptool.Name || a.Name == exitlooptool.Alias:
		c.report(a.at("name"), CodeTool, "the tool %q has the name of the exit tool", a.Name)
	case !toolName().MatchString(a.Name) && vocabulary.AgentName(a.Name) == "":
		c.report(a.at("name"), CodeTool, "the tool %q cannot have that name: "+toolNameRule, a.Name)
	case a.Description == "":
		c.warn(a.at("name"), CodeTool, "the tool %q has no description: the model cannot know what it is for", a.Name)
	}
}

// toolName matches names of tools that every provider accepts.
var toolName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

const toolNameRule = "providers take ASCII letters, digits, _ and -, at most 64"

// function is a tool or a toolset of a Go program.
type function struct {
	tool tool.Tool
	set  tool.Toolset
}

// Check returns the mistakes in the Go code of the config, whatever the definition: code without a name or with the
// name of other code, and nil code. Names of tools must be those that providers accept.
func (cfg *BuildConfig) Check() error {
	for name, a := range cfg.Agents {
		if name == "" || a == nil {
			return fmt.Errorf("agents for a definition: %q: give a name and a function that makes the agent", name)
		}
	}
	for name, f := range cfg.Callbacks {
		if name == "" || f == nil {
			return fmt.Errorf("callbacks for a definition: %q: give a name and a function", name)
		}
	}
	_, err := cfg.functions()
	return err
}

// functions returns the functions of the config by name.
func (cfg *BuildConfig) functions() (map[string]function, error) {
	all := make(map[string]function)
	add := func(name string, f function) error {
		_, twice := all[name]
		switch {
		case isExit(name):
			return fmt.Errorf("functions for a definition: %s is not one: every definition has it", name)
		case twice:
			return fmt.Errorf("functions for a definition: two are called %q", name)
		case !toolName().MatchString(name):
			return fmt.Errorf("functions for a definition: %q cannot be the name of one: %s", name, toolNameRule)
		}
		all[name] = f
		return nil
	}
	if slices.Contains(cfg.Tools, nil) || slices.Contains(cfg.Toolsets, nil) {
		return nil, errors.New("functions for a definition: one is nil")
	}
	for _, t := range cfg.Tools {
		if err := add(t.Name(), function{tool: t}); err != nil {
			return nil, err
		}
	}
	for _, s := range cfg.Toolsets {
		if err := add(s.Name(), function{set: s}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// resolveTools reports the functions and the variables that an agent's tools need and the process lacks.
func (b *builder) resolveTools(l *loader, a *Agent) {
	b.resolveFunctions(l, a)
	for _, t := range a.LLM.Tools {
		if t.MCP == nil {
			continue
		}
		where := ".env"
		if t.MCP.URL != "" {
			where = ".inherit"
		}
		for _, name := range t.MCP.Variables() {
			if b.cfg.Getenv(name) == "" {
				l.report(a.at(t.field+where), CodeTool, "the MCP server needs %s, which is not set", name).Hint = "set " + name + " in the environment"
			}
		}
	}
}

// resolveFunctions reports the functions that the program does not have.
func (b *builder) resolveFunctions(l *loader, a *Agent) {
	for _, t := range a.LLM.Tools {
		if _, ok := b.functions[t.Func]; t.Func != "" && !ok {
			l.report(a.at(t.field), CodeTool, "there is no function %q", t.Func).suggest(notHere(t.Func, b.functions, "functions",
				"a program in Go gives functions, with command.Tool or in BuildConfig.Tools; this program has none, "+
					"so write {command: […], name: …} or {mcp: {…}}"))
		}
	}
}

// tool adds a tool of an agent to its config.
func (b *builder) tool(a *Agent, t Tool, cfg *llmagent.Config) error {
	switch {
	case t.Exit != "":
		return exitTool(a, t.Exit, cfg)
	case t.Func != "":
		if f := b.functions[t.Func]; f.set != nil {
			cfg.Toolsets = append(cfg.Toolsets, f.set)
		} else {
			cfg.Tools = append(cfg.Tools, f.tool)
		}
		return nil
	case t.MCP != nil:
		return b.mcp(a, t.MCP, cfg)
	}
	inner, err := b.build(t.Agent)
	if err != nil {
		return err
	}
	made := agenttool.New(inner, nil)
	if t.Parameters != nil {
		if made, err = withParameters(t, made); err != nil {
			return err
		}
	}
	cfg.Tools = append(cfg.Tools, made)
	return nil
}

func exitTool(a *Agent, name string, cfg *llmagent.Config) error {
	t, err := exitlooptool.NewWith(exitlooptool.Config{Name: name, Criteria: criteria(a.loopAround().Loop)})
	if err != nil {
		return err
	}
	cfg.Tools = append(cfg.Tools, t)
	return nil
}

// withParameters makes a tool of an agent that gets its arguments as JSON: the text of the JSON is its request.
func withParameters(t Tool, asked tool.Tool) (tool.Tool, error) {
	f, ok := asked.(tool.Function)
	if !ok {
		return nil, fmt.Errorf("tool %q: a %T %w", asked.Name(), asked, tool.ErrUnusable)
	}
	return functiontool.New(functiontool.Config{Name: f.Name(), Description: f.Description(), InputSchema: t.Parameters,
		Effect: tool.EffectOf(asked), Reconcile: reconcileCommand(t, asked)},
		func(ctx tool.Context, in map[string]any) (any, error) {
			request, err := json.Marshal(in)
			if err != nil {
				return nil, err
			}
			answer, err := f.Run(ctx, map[string]any{"request": string(request)})
			if err != nil || !t.Agent.Command.JSON {
				return answer, err
			}
			text, _ := answer["result"].(string)
			return session.PlainJSON([]byte(text))
		})
}
