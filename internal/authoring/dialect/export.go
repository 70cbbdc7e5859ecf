// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// File is one file of an export.
type File struct {
	// Name is the file's name in the folder of the agent.
	Name string
	Data []byte
}

// SchemaComment is the first line of ADK's files. Editors find the schema by it.
const SchemaComment = "yaml-language-server: " +
	"$schema=https://raw.githubusercontent.com/google/adk-python/refs/heads/main/src/google/adk/agents/config_schemas/AgentConfig.json"

// Export writes a definition as ADK's Agent Config in its strict form, which uses only what ADK's schema has. It
// returns a file for each agent, and root_agent.yaml is the first. The report lists what ADK cannot express, with
// places in the definition's files. If no agent that can run is left, the report has an error and there are no files.
func Export(name string, def *definition.Definition) ([]File, *Report) {
	i := &importer{opts: Options{Dialect: ADK}, report: &Report{Dialect: ADK, Export: true, File: name, Name: def.Name}}
	e := &exporter{importer: i, names: make(map[string]string), taken: make(map[string]bool),
		paths: make(map[string]bool)}
	for a := range def.Root.All {
		e.name(a)
	}
	e.rootFields(def)
	if !e.agent(def.Root, inheritance{}, "root_agent.yaml") {
		e.fail(at(def.Root, "name"), def.Name, "", "nothing of %q is left that ADK could run", def.Name)
	}
	if e.report.Count(Failed) > 0 {
		return nil, e.report
	}
	e.report.Agents = len(e.files)
	last := len(e.files) - 1 // the root is written after all others
	return slices.Concat(e.files[last:], e.files[:last]), e.report
}

// exporter writes one definition.
type exporter struct {
	*importer
	files []File
	names map[string]string // by the names in the definition
	taken map[string]bool
	paths map[string]bool // in lower case, because some file systems ignore case
	exits bool            // an agent of the current loop may end it
}

// inheritance has what an agent gets from the agents around it.
type inheritance struct {
	model    string
	exit     bool   // the agents around it in its loop may end the loop
	purpose  string // goals and instructions of the loops around it
	inLoop   bool
	finalize bool // it is a finalizer or in one
}

// name gives an agent a name that is a Python identifier.
func (e *exporter) name(a *definition.Agent) {
	want := strings.ReplaceAll(a.Name, "-", "_")
	name := want
	for n := 2; e.taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", want, n)
	}
	e.taken[name], e.names[a.Name] = true, name
	if name != a.Name {
		e.changed(at(a, "name"), a.Name, "name", name, "a name in ADK is a Python identifier: letters, digits and _")
	}
}

// at returns the place of a field of a definition, or of its agent if the field is missing.
func at(a *definition.Agent, field string) place {
	p, ok := a.FieldPosition(field)
	if !ok {
		p = a.Position()
	}
	return p
}

// file returns a new name for a file.
func (e *exporter) file(name string) string {
	path := name + ".yaml"
	for n := 2; e.paths[strings.ToLower(path)] || path == "root_agent.yaml"; n++ {
		path = fmt.Sprintf("%s_%d.yaml", name, n)
	}
	e.paths[strings.ToLower(path)] = true
	return path
}

// said lists the fields that other functions write or report.
var said = map[string]bool{
	"name": true, "type": true, "description": true, "sub_agents": true, "order": true, "max_iterations": true, "output_key": true,
	"can_exit_loop": true, "model": true, "instructions": true, "goal": true, "context": true, "tools": true, "temperature": true,
	"max_tokens": true, "thinking": true,
	"inputs": true, "state": true, "ref": true, "finalizer": true,
}

// rootFields reports what only the root of a definition has.
func (e *exporter) rootFields(def *definition.Definition) {
	for _, in := range def.Inputs {
		e.dropped(at(def.Root, "inputs."+in.Name), def.Name, "inputs."+in.Name, "put it into the state of the session",
			"ADK has no inputs: what is read has to be in the session's state")
	}
	if len(def.State) > 0 {
		e.dropped(at(def.Root, "state"), def.Name, "state", "put it into the state of the session",
			"ADK's files have no state")
	}
}

// instead has the advice for fields that ADK lacks.
var instead = map[string]string{
	"display_name":             "write it in description",
	"prices":                   "ADK reports tokens in usage_metadata; what they cost is up to you",
	"max_model_calls":          "RunConfig(max_llm_calls=…) where the agent is run",
	"stop_when":                "write an agent in code that yields an event with actions.escalate, as the last of the loop",
	"stop_check":               "write an agent in code that yields an event with actions.escalate, after the step it is about",
	"score":                    "write an agent in code that yields an event with actions.escalate when the score is reached",
	"timeout":                  "bound the run where it is started: asyncio.timeout, or a context with a deadline in Go",
	"timeouts":                 "bound the run where it is started: asyncio.timeout, or a context with a deadline in Go",
	"iteration_timeout":        "bound the run where it is started: asyncio.timeout, or a context with a deadline in Go",
	"adaptive_timeout":         "bound the run where it is started: asyncio.timeout, or a context with a deadline in Go",
	"budget":                   "RunConfig(max_llm_calls=…) where the agent is run bounds model calls",
	"callbacks":                "before_agent_callbacks and the like name functions in code",
	"output_schema":            "output_schema names a class in code: {name: my_library.Answer}",
	"on_error":                 "a failing agent ends the run; catch it in code",
	"continue_on_error":        "a failing agent ends the run; catch it in code",
	"retry":                    "a failing agent ends the run; catch it in code",
	"request_retry":            "generate_content_config.http_options.retry_options",
	"circuit":                  "a failing agent ends the run; catch it in code",
	"max_consecutive_failures": "a failing agent ends the run; catch it in code",
	"delay_before":             "before_agent_callbacks in code can wait",
	"delay_after":              "after_agent_callbacks in code can wait",
	"iteration_delay":          "after_agent_callbacks in code can wait",
}

// unsaid reports the fields of an agent that ADK lacks.
func (e *exporter) unsaid(a *definition.Agent) {
	for _, f := range definition.Fields() {
		if _, given := a.FieldPosition(f.Name); given && !said[f.Name] {
			about, _, _ := strings.Cut(strings.NewReplacer(":", ";", ".", ";", ",", ";", "(", ";").Replace(f.Doc), ";")
			e.dropped(at(a, f.Name), a.Name, f.Name, instead[f.Name], "ADK has no such field (%s)",
				strings.TrimSpace(about))
		}
	}
}

// agent writes an agent into a file. It returns false if there is nothing to write.
func (e *exporter) agent(a *definition.Agent, in inheritance, file string) bool {
	if a.Model != "" {
		in.model = a.Model
	}
	if _, given := a.FieldPosition("can_exit_loop"); given || a.CanExitLoop {
		in.exit = a.CanExitLoop
	}
	if !a.Type.Workflow() && a.Type != definition.TypeLLM {
		e.dropped(at(a, "type"), a.Name, "agent", "write it as a BaseAgent in code and name it in sub_agents: "+
			"[{code: …}]",
			"an agent of type %s: ADK's files have only agents that ask a model", a.Type)
		return false
	}
	e.unsaid(a)
	e.mapped(at(a, "name"), a.Name, "name", "")
	out := object{{key: "name", value: e.names[a.Name]}}
	if a.Description != "" {
		out = append(out, field{key: "description", value: a.Description})
		e.mapped(at(a, "description"), a.Name, "description", "")
	}
	switch a.Type {
	case definition.TypeLLM:
		out = append(object{{key: "agent_class", value: "LlmAgent"}}, e.llm(a, in, out)...)
	case definition.TypeLoop:
		return e.loop(a, in, out, file)
	default:
		class := map[definition.Type]string{definition.TypeSequential: "SequentialAgent",
			definition.TypeParallel: "ParallelAgent"}[a.Type]
		out = append(object{{key: "agent_class", value: class}}, out...)
		subs := e.subs(a.SubAgents, in)
		if len(subs) == 0 {
			e.empty(a)
			return false
		}
		e.mapped(at(a, "sub_agents"), a.Name, "sub_agents", "")
		out = append(out, field{key: "sub_agents", value: subs})
		e.outputKey(a)
	}
	e.write(file, out)
	return true
}

func (e *exporter) empty(a *definition.Agent) {
	e.dropped(at(a, "name"), a.Name, "agent", "", "nothing is left in it that ADK could run")
}

func (e *exporter) outputKey(a *definition.Agent) {
	if a.OutputKey != "" {
		e.dropped(at(a, "output_key"), a.Name, "output_key", "read the output_key of the agent in it that speaks last",
			"in ADK only an LlmAgent has one")
	}
}

// subs writes sub-agents and returns references to them.
func (e *exporter) subs(agents []*definition.Agent, in inheritance) []any {
	var refs []any
	for _, sub := range agents {
		path := e.file(e.names[sub.Name])
		if e.agent(sub, in, path) {
			refs = append(refs, object{{key: "config_path", value: path}})
		}
	}
	return refs
}

func (e *exporter) write(file string, out object) {
	text, _, err := write(node(out), SchemaComment)
	if err != nil {
		e.fail(place{File: e.report.File}, "", "", "%s cannot be written: %v", file, err)
		return
	}
	e.files = append(e.files, File{Name: file, Data: text})
}

// contents returns the value of include_contents for a context.
func contents(c llmagent.ContextConfig) (text string, exact bool) {
	switch c.Policy {
	case llmagent.ContextNone:
		return "none", true
	case llmagent.ContextFull:
		return "default", true
	}
	return "default", false
}

// loop writes a loop. If there is a finalizer, a sequence runs the loop and then the finalizer.
func (e *exporter) loop(a *definition.Agent, in inheritance, out object, file string) bool {
	l := a.Loop
	if l.Goal != "" {
		in.purpose = joinTexts(in.purpose, "The goal: "+l.Goal)
	}
	in.purpose = joinTexts(in.purpose, l.Instructions)
	if l.Goal != "" || l.Instructions != "" {
		e.changed(at(a, "goal"), a.Name, "goal, instructions", "instruction",
			"ADK's loops have none; they follow the instruction of each agent in it")
	}
	nested := in.inLoop
	after := in // the finalizer is outside the loop
	after.exit, after.finalize = false, true
	in.exit, in.inLoop, in.finalize = false, true, false
	var finalizer *definition.Agent
	steps := slices.DeleteFunc(slices.Clone(a.SubAgents), func(sub *definition.Agent) bool {
		if sub.OutputKey == definition.LoopOutput && !l.FinalizeEach {
			finalizer = sub
			return true
		}
		return false
	})
	steps = e.ordered(a, steps)
	before := e.exits
	e.exits = false
	refs := e.subs(steps, in)
	if len(refs) == 0 {
		e.empty(a)
		return false
	}
	e.ends(a, nested)
	e.exits = e.exits || before // in ADK an exit ends the loops around it too
	if len(steps) > 0 {
		e.mapped(at(a, "sub_agents"), a.Name, "sub_agents", "")
	}
	body := object{{key: "agent_class", value: "LoopAgent"}}
	if l.MaxIterations > 0 {
		body = append(body, field{key: "max_iterations", value: int(l.MaxIterations)})
	}
	e.mapped(at(a, "max_iterations"), a.Name, "max_iterations", "")
	e.outputKey(a)
	whole := func(head object) object {
		return slices.Concat(body[:1], head, body[1:], object{{key: "sub_agents", value: refs}})
	}
	var last []any
	if finalizer != nil {
		last = e.subs([]*definition.Agent{finalizer}, after)
	}
	if len(last) == 0 {
		e.write(file, whole(out))
		return true
	}
	name := e.names[a.Name] + "_loop"
	for e.taken[name] {
		name += "_"
	}
	e.taken[name] = true
	path := e.file(name)
	e.write(path, whole(object{{key: "name", value: name}}))
	e.changed(at(finalizer, "output_key"), finalizer.Name, "loop_output", "SequentialAgent "+e.names[a.Name],
		"ADK has no finalizer: the loop, now %s, and then this agent are a sequence", name)
	seq := append(object{{key: "agent_class", value: "SequentialAgent"}}, out...)
	subs := append([]any{object{{key: "config_path", value: path}}}, last...)
	e.write(file, append(seq, field{key: "sub_agents", value: subs}))
	return true
}

// ordered sorts steps in the order in which they run.
func (e *exporter) ordered(a *definition.Agent, steps []*definition.Agent) []*definition.Agent {
	order := a.Loop.Order
	if len(order) == 0 {
		return steps
	}
	e.changed(at(a, "order"), a.Name, "order", "sub_agents", "the sub-agents are written in that order")
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, func(x, y *definition.Agent) int {
		return slices.Index(order, x.Name) - slices.Index(order, y.Name)
	})
	return steps
}

// ends reports how the end of a loop differs in ADK.
func (e *exporter) ends(a *definition.Agent, nested bool) {
	l := a.Loop
	_, timed := a.FieldPosition("timeout")
	_, preset := a.FieldPosition("timeouts")
	if !timed && !preset && l.Timeout > 0 {
		e.dropped(at(a, "name"), a.Name, "time", instead["timeout"],
			"it ends after %s, as loops do that say nothing, and ADK bounds no loop by time", l.Timeout)
	}
	switch {
	case l.MaxIterations == 0 && !e.exits:
		e.dropped(at(a, "max_iterations"), a.Name, "its end",
			"give it max_iterations; or write an agent in code that yields an event with actions.escalate",
			"in ADK nothing ends this loop: it has no max_iterations, no agent in it may end it, and what else does "+
				"is left out")
	case nested && e.exits:
		e.changed(at(a, "name"), a.Name, "exit_loop", "", "here it leaves this loop; in ADK the loops around it end too")
	}
}

// llm writes the fields of an agent that calls a model.
func (e *exporter) llm(a *definition.Agent, in inheritance, out object) object {
	l := a.LLM
	add := func(key string, v any) { out = append(out, field{key: key, value: v}) }
	if m := e.model(a, in.model); m != "" {
		add("model", m)
	}
	add("instruction", e.instruction(a, joinTexts(l.Instructions, in.purpose)))
	e.mapped(at(a, "instructions"), a.Name, "instructions", "instruction")
	if a.OutputKey != "" {
		key := adkKey(a.OutputKey)
		add("output_key", key)
		if key == a.OutputKey {
			e.mapped(at(a, "output_key"), a.Name, "output_key", "")
		} else {
			e.changed(at(a, "output_key"), a.Name, "output_key "+a.OutputKey, key,
				"ADK's placeholders take letters, digits and _; texts that read it say the same")
		}
	}
	text, exact := contents(l.Context)
	if text != "default" {
		add("include_contents", text)
	}
	if !exact {
		e.changed(at(a, "context"), a.Name, "context "+string(l.Context.Policy), "include_contents default",
			"ADK shows a model all that was said, or nothing")
	} else {
		e.mapped(at(a, "context"), a.Name, "context", "include_contents")
	}
	if g := e.generation(a); len(g) > 0 {
		add("generate_content_config", g)
	}
	if tools := e.tools(a, in); len(tools) > 0 {
		add("tools", tools)
	}
	return out
}

// model returns ADK's name for a model. Names of Gemini's models have no prefix; other models need LiteLLM in Python.
func (e *exporter) model(a *definition.Agent, name string) string {
	provider, rest, ok := strings.Cut(name, "/")
	switch {
	case name == "":
		return ""
	case !ok:
		e.mapped(at(a, "model"), a.Name, "model", "")
		return name
	case provider == "gemini":
		e.mapped(at(a, "model"), a.Name, "model", rest)
		return rest
	case provider == "scripted":
		e.dropped(at(a, "model"), a.Name, "model "+name, "give the agent a model in ADK",
			"a script is no model of ADK's")
		return ""
	}
	e.changed(at(a, "model"), a.Name, "model", name, "ADK for Python asks it through LiteLLM (pip install "+
		"google-adk[extensions]), and ADK for Go takes only Gemini")
	return name
}

// instruction writes {{key}} as {key?}, because ADK fails for {key} if the key has no value yet, which is usual in a
// first iteration. It reports placeholders that ADK cannot fill.
func (e *exporter) instruction(a *definition.Agent, text string) string {
	t, err := template.Parse(text, template.Options{})
	if err != nil {
		return text
	}
	var edits []replacement
	lost, sections := make(map[string]bool), false
	for _, ref := range t.Keys() {
		if ref.Section {
			sections = true
			continue
		}
		if slices.Contains(builtIn, ref.Name) || strings.Contains(ref.Name, ".") &&
			!strings.HasPrefix(ref.Name, "artifact.") {
			lost["{{"+ref.Name+"}}"] = true
		}
		edits = append(edits, replacement{ref.From, ref.To, "{" + adkKey(ref.Name) + "?}"})
	}
	text = replace(text, edits)
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		advice := "write it in words, or put the value into the state in code"
		if name == "{{user_input}}" {
			advice = "ADK's model sees what the user says anyway"
		}
		e.dropped(at(a, "instructions"), a.Name, name, advice, "ADK has no such value, and leaves the place empty")
	}
	if sections {
		e.dropped(at(a, "instructions"), a.Name, "sections {{#key}}…{{/key}}", "say in words when it applies",
			"ADK has no sections, so their text is always there")
		return sectionTag().ReplaceAllString(text, "")
	}
	return text
}

var sectionTag = lazyregexp.New(`\{\{\s*[#^/][^{}]*\}\}`)

// adkKey returns a key in a form that ADK's placeholders can name. ADK would treat a placeholder with a dot as plain
// text, which the model would see.
func adkKey(name string) string {
	if strings.HasPrefix(name, "artifact.") {
		return name
	}
	return strings.NewReplacer("iteration:", "iteration_", ".", "_", "-", "_").Replace(name)
}

func (e *exporter) generation(a *definition.Agent) object {
	var g object
	if t := a.LLM.Temperature; t != nil {
		g = append(g, field{key: "temperature", value: *t})
		e.mapped(at(a, "temperature"), a.Name, "temperature", "generate_content_config.temperature")
	}
	if n := a.LLM.MaxTokens; n > 0 {
		g = append(g, field{key: "max_output_tokens", value: int(n)})
		e.mapped(at(a, "max_tokens"), a.Name, "max_tokens", "generate_content_config.max_output_tokens")
	}
	if level := a.LLM.Thinking; level != "" {
		g = append(g, field{key: "thinking_config", value: object{{key: "thinking_level", value: string(level)}}})
		e.mapped(at(a, "thinking"), a.Name, "thinking", "generate_content_config.thinking_config.thinking_level")
	}
	return g
}

// tools writes the tools of a model.
func (e *exporter) tools(a *definition.Agent, in inheritance) []any {
	var out []any
	add := func(name string, args object) {
		t := object{{key: "name", value: name}}
		if args != nil {
			t = append(t, field{key: "args", value: args})
		}
		out = append(out, t)
	}
	exit := in.exit && in.inLoop && !in.finalize
	for _, t := range a.LLM.Tools {
		switch {
		case t.Exit != "":
			exit = true
		case t.Func != "":
			add("tools."+t.Func, nil)
			e.changed(at(a, "tools"), a.Name, "tools "+t.Func, "tools."+t.Func,
				"ADK takes the name of a Python function: write it in tools.py")
		case t.MCP != nil:
			if args := e.mcp(a, t.MCP); args != nil {
				add("McpToolset", args)
			}
		case t.Agent != nil:
			tool := in
			tool.exit, tool.inLoop, tool.purpose = false, false, ""
			if refs := e.subs([]*definition.Agent{t.Agent}, tool); len(refs) == 1 {
				add("AgentTool", object{{key: "agent", value: refs[0]}})
				e.mapped(at(t.Agent, "name"), a.Name, "tools agent "+t.Agent.Name, "AgentTool")
			}
		}
	}
	if exit {
		add("exit_loop", nil)
		e.exits = true
		e.mapped(at(a, "can_exit_loop"), a.Name, "can_exit_loop", "tools exit_loop")
	}
	return out
}

// mcp writes the connection to an MCP server.
func (e *exporter) mcp(a *definition.Agent, m *definition.MCP) object {
	var args object
	if len(m.Command) > 0 {
		params := object{{key: "command", value: m.Command[0]}}
		if len(m.Command) > 1 {
			args, masked := arguments(m.Command[1:])
			for n := range args {
				if masked[n] {
					e.changed(at(a, "tools"), a.Name, "tools mcp command", yours, "an argument may be a secret, and "+
						"is not copied").Advice = "write it there yourself, or pass it in the environment"
				}
			}
			params = append(params, field{key: "args", value: args})
		}
		if env := e.public(a, "env", m.Env); len(env) > 0 {
			params = append(params, field{key: "env", value: env})
		}
		args = object{{key: "stdio_connection_params", value: object{{key: "server_params", value: params}}}}
	} else {
		address := publicURL(m.URL)
		if address != m.URL {
			e.changed(at(a, "tools"), a.Name, "tools mcp url", address,
				"the parts that may be secret are not copied").Advice = "write it there yourself, and keep that file private"
		}
		params := object{{key: "url", value: address}}
		if headers := e.public(a, "headers", m.Headers); len(headers) > 0 {
			params = append(params, field{key: "headers", value: headers})
		}
		args = object{{key: "streamable_http_connection_params", value: params}}
	}
	if m.Only != nil {
		args = append(args, field{key: "tool_filter", value: m.Only})
	}
	if m.Prefix != "" {
		args = append(args, field{key: "tool_name_prefix", value: strings.TrimSuffix(m.Prefix, "_")})
	}
	e.mapped(at(a, "tools"), a.Name, "tools mcp", "McpToolset")
	if len(m.PassEnv) > 0 {
		e.dropped(at(a, "tools"), a.Name, "tools mcp env "+strings.Join(m.PassEnv, ", "),
			"set them where ADK runs, and name them in code", "ADK passes no variables on")
	}
	if len(m.Inherit) > 0 {
		e.dropped(at(a, "tools"), a.Name, "tools mcp inherit "+strings.Join(m.Inherit, ", "),
			"set the headers in code", "ADK puts no variables into headers and addresses")
	}
	if m.Effect != "" {
		e.dropped(at(a, "tools"), a.Name, "tools mcp effect", "", "ADK does not say whether a call may be made again")
	}
	if m.ConfirmAll || len(m.Confirm) > 0 {
		e.dropped(at(a, "tools"), a.Name, "tools mcp confirm", "require_confirmation is set in code",
			"ADK's files do not say what a person has to consent to")
	}
	return args
}

// public returns the variables or headers that are no secrets. It reports the others and does not copy them.
func (e *exporter) public(a *definition.Agent, kind string, m map[string]string) object {
	var o object
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if secret(key, m[key]) {
			e.dropped(at(a, "tools"), a.Name, "tools mcp "+kind+" "+key,
				"write it into the file yourself, and keep that file private", "it may be a secret, and is not copied")
			continue
		}
		o = append(o, field{key: key, value: m[key]})
	}
	return o
}
