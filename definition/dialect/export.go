// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
)

// File is one file of an export.
type File struct {
	// Name is the file's name in the folder of the agent.
	Name string
	Data []byte
}

// SchemaComment is the first line of ADK's files: editors check them by it.
const SchemaComment = "yaml-language-server: $schema=https://raw.githubusercontent.com/google/adk-python/refs/heads/main/src/google/adk/agents/config_schemas/AgentConfig.json"

// Export writes a definition as ADK's Agent Config, in its strict form: a file
// for each agent, root_agent.yaml first, with nothing in it that ADK's schema
// does not have. The report says what ADK cannot say, with places in the
// definition's files. If what is left is nothing that could run, the report has
// an error and there are no files.
func Export(name string, def *definition.Definition) ([]File, *Report) {
	i := &importer{opts: Options{Dialect: ADK}, report: &Report{Dialect: ADK, Export: true, File: name, Name: def.Name}}
	e := &exporter{importer: i, names: make(map[string]string), taken: make(map[string]bool), paths: make(map[string]bool)}
	for a := range def.Root.All {
		e.name(a)
	}
	e.rootFields(def)
	if !e.agent(def.Root, inherited{}, "root_agent.yaml") {
		e.fail(at(def.Root, "name"), def.Name, "", "nothing of %q is left that ADK could run", def.Name)
	}
	if e.report.count(Failed) > 0 {
		return nil, e.report
	}
	e.report.Agents = len(e.files)
	slices.SortStableFunc(e.files, func(a, b File) int { return root(b) - root(a) })
	return e.files, e.report
}

func root(f File) int {
	if f.Name == "root_agent.yaml" {
		return 1
	}
	return 0
}

// exporter writes one definition.
type exporter struct {
	*importer
	files []File
	names map[string]string // by the definition's names
	taken map[string]bool
	paths map[string]bool // in small letters: some file systems know no others
}

// inherited is what an agent has of those around it.
type inherited struct {
	model    string
	exit     bool   // the agents around it in its loop may end it
	purpose  string // goals and instructions of the loops around
	inLoop   bool
	finalize bool // it is, or is in, a finalizer
}

// name gives an agent a name that Python takes for an identifier.
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

// at is where a field of a definition stands, or its agent.
func at(a *definition.Agent, field string) place {
	p, ok := a.FieldPosition(field)
	if !ok {
		p = a.Position()
	}
	return place{p.File, p.Line, p.Column}
}

// file is a new file's name.
func (e *exporter) file(name string) string {
	path := name + ".yaml"
	for n := 2; e.paths[strings.ToLower(path)] || path == "root_agent.yaml"; n++ {
		path = fmt.Sprintf("%s_%d.yaml", name, n)
	}
	e.paths[strings.ToLower(path)] = true
	return path
}

// said are the fields that are written, or looked at where they are.
var said = map[string]bool{
	"name": true, "type": true, "description": true, "sub_agents": true, "order": true, "max_iterations": true, "output_key": true,
	"can_exit_loop": true, "model": true, "instructions": true, "goal": true, "context": true, "tools": true, "temperature": true, "max_tokens": true,
	"inputs": true, "state": true, "ref": true, "finalizer": true,
}

// rootFields notes what only the root of a definition has.
func (e *exporter) rootFields(def *definition.Definition) {
	for _, in := range def.Inputs {
		e.dropped(at(def.Root, "inputs."+in.Name), def.Name, "inputs."+in.Name, "put it into the state of the session", "ADK has no inputs: what is read has to be in the session's state")
	}
	if len(def.State) > 0 {
		e.dropped(at(def.Root, "state"), def.Name, "state", "put it into the state of the session", "ADK's files have no state")
	}
}

// unsaid notes the fields of an agent that ADK has not.
func (e *exporter) unsaid(a *definition.Agent) {
	for _, f := range definition.Fields() {
		if _, given := a.FieldPosition(f.Name); given && !said[f.Name] {
			about, _, _ := strings.Cut(strings.NewReplacer(":", ";", ".", ";", ",", ";", "(", ";").Replace(f.Doc), ";")
			e.dropped(at(a, f.Name), a.Name, f.Name, "", "ADK has no such field (%s)", strings.TrimSpace(about))
		}
	}
}

// agent writes an agent into a file and reports whether there is one.
func (e *exporter) agent(a *definition.Agent, in inherited, file string) bool {
	if a.Model != "" {
		in.model = a.Model
	}
	if _, given := a.FieldPosition("can_exit_loop"); given || a.CanExitLoop {
		in.exit = a.CanExitLoop
	}
	if !a.Type.Workflow() && a.Type != definition.TypeLLM {
		e.dropped(at(a, "type"), a.Name, "agent", "write it as a BaseAgent in code and name it in sub_agents: [{code: …}]",
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
		class := map[definition.Type]string{definition.TypeSequential: "SequentialAgent", definition.TypeParallel: "ParallelAgent"}[a.Type]
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
		e.dropped(at(a, "output_key"), a.Name, "output_key", "read the output_key of the agent in it that speaks last", "in ADK only an LlmAgent has one")
	}
}

// subs writes sub-agents and returns the references to them.
func (e *exporter) subs(agents []*definition.Agent, in inherited) []any {
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
	text, err := render(node(out), SchemaComment)
	if err != nil {
		e.fail(place{file: e.report.File}, "", "", "%s cannot be written: %v", file, err)
		return
	}
	e.files = append(e.files, File{Name: file, Data: text})
}

// loop writes a loop. A finalizer runs after it, in a sequence around both.
func (e *exporter) loop(a *definition.Agent, in inherited, out object, file string) bool {
	l := a.Loop
	if l.Goal != "" {
		in.purpose = joined(in.purpose, "The goal: "+l.Goal)
	}
	in.purpose = joined(in.purpose, l.Instructions)
	if l.Goal != "" || l.Instructions != "" {
		e.changed(at(a, "goal"), a.Name, "goal, instructions", "instruction", "ADK's loops have none; they follow the instruction of each agent in it")
	}
	after := in // the finalizer is outside
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
	refs := e.subs(steps, in)
	if len(refs) == 0 {
		e.empty(a)
		return false
	}
	if len(steps) > 0 {
		e.mapped(at(a, "sub_agents"), a.Name, "sub_agents", "")
	}
	body := object{{key: "agent_class", value: "LoopAgent"}}
	if l.MaxIterations > 0 {
		body = append(body, field{key: "max_iterations", value: int(l.MaxIterations)})
	}
	e.mapped(at(a, "max_iterations"), a.Name, "max_iterations", "")
	e.outputKey(a)
	if finalizer == nil {
		e.write(file, append(append(body[:1:1], out...), append(body[1:], field{key: "sub_agents", value: refs})...))
		return true
	}
	return e.finalized(a, finalizer, after, out, body, refs, file)
}

// finalized writes a loop and the agent that has the last word as a sequence.
func (e *exporter) finalized(a, finalizer *definition.Agent, after inherited, out, body object, refs []any, file string) bool {
	last := e.subs([]*definition.Agent{finalizer}, after)
	if len(last) == 0 {
		e.write(file, append(append(body[:1:1], out...), append(body[1:], field{key: "sub_agents", value: refs})...))
		return true
	}
	name := e.names[a.Name] + "_loop"
	for e.taken[name] {
		name += "_"
	}
	e.taken[name] = true
	path := e.file(name)
	inner := append(body[:1:1], field{key: "name", value: name})
	e.write(path, append(inner, append(body[1:], field{key: "sub_agents", value: refs})...))
	e.changed(at(finalizer, "output_key"), finalizer.Name, "loop_output", "SequentialAgent "+e.names[a.Name], "ADK has no finalizer: the loop, now %s, and then this agent are a sequence", name)
	seq := append(object{{key: "agent_class", value: "SequentialAgent"}}, out...)
	subs := append([]any{object{{key: "config_path", value: path}}}, last...)
	e.write(file, append(seq, field{key: "sub_agents", value: subs}))
	return true
}

// ordered puts steps in the order in which they run.
func (e *exporter) ordered(a *definition.Agent, steps []*definition.Agent) []*definition.Agent {
	order := a.Loop.Order
	if len(order) == 0 {
		return steps
	}
	e.changed(at(a, "order"), a.Name, "order", "sub_agents", "the sub-agents are written in that order")
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, func(x, y *definition.Agent) int { return slices.Index(order, x.Name) - slices.Index(order, y.Name) })
	return steps
}

// contents is what include_contents says of a context.
func contents(c llmagent.Context) (text string, exact bool) {
	switch c.Policy {
	case llmagent.ContextNone:
		return "none", true
	case llmagent.ContextFull:
		return "default", true
	}
	return "default", false
}
