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
	exits bool            // an agent of the loop that is written may end it
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

// instead is what to do in ADK about a field that it has not.
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

// unsaid notes the fields of an agent that ADK has not.
func (e *exporter) unsaid(a *definition.Agent) {
	for _, f := range definition.Fields() {
		if _, given := a.FieldPosition(f.Name); given && !said[f.Name] {
			doc := strings.TrimPrefix(f.Doc, "of a loop's step: ")
			about, _, _ := strings.Cut(strings.NewReplacer(":", ";", ".", ";", ",", ";", "(", ";").Replace(doc), ";")
			e.dropped(at(a, f.Name), a.Name, f.Name, instead[f.Name], "ADK has no such field (%s)", strings.TrimSpace(about))
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
