// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// adkReader reads Agent Config, in which each agent has a file.
type adkReader struct {
	*importer
	open   []string         // the files that lead to the current one
	parsed map[string]value // by file, because several agents may refer to the same file
}

func (r *adkReader) root(name string, data []byte) *agent {
	v, ok := r.parse(name, data)
	if !ok {
		return nil
	}
	r.open, r.parsed = []string{path.Clean(r.opts.Path)}, make(map[string]value)
	a := r.agent(v)
	if a != nil {
		r.loops(a)
	}
	return a
}

// The keys of Agent Config, by class.
var (
	adkBase = []string{"agent_class", "name", "description", "sub_agents", "before_agent_callbacks",
		"after_agent_callbacks"}
	adkLLM = []string{
		"model", "model_code", "instruction", "static_instruction", "output_key", "accumulate_output_key", "input_schema", "output_schema",
		"include_contents", "tools", "disallow_transfer_to_parent", "disallow_transfer_to_peers", "generate_content_config",
		"before_model_callbacks", "after_model_callbacks", "before_tool_callbacks", "after_tool_callbacks",
	}
	adkLoop = []string{"max_iterations"}
)

var adkClasses = map[string]definition.Type{
	"LlmAgent": definition.TypeLLM, "Agent": definition.TypeLLM, "LoopAgent": definition.TypeLoop,
	"SequentialAgent": definition.TypeSequential, "ParallelAgent": definition.TypeParallel,
}

func adkKeys(t definition.Type) []string {
	switch t {
	case definition.TypeLLM:
		return slices.Concat(adkBase, adkLLM)
	case definition.TypeLoop:
		return slices.Concat(adkBase, adkLoop)
	}
	return adkBase
}

// agent reads an agent. It returns nil if it has reported why the agent cannot be read.
func (r *adkReader) agent(v value) *agent {
	if r.tooMany(v.at()) {
		return nil
	}
	if !v.isMap() {
		r.fail(v.at(), "", "", "an agent is a map of fields, got %s", v.what())
		return nil
	}
	a := &agent{at: v.at(), whole: v, was: v.get("name").text(), name: v.get("name").text()}
	a.came("name", v.get("name"))
	v.of(a)
	a.came("sub_agents", v.get("sub_agents"))
	ok := true
	if a.typ, ok = r.class(a, v.get("agent_class")); !ok {
		return nil
	}
	r.name(a, v.get("name"))
	if className(v) == "Workflow" {
		return r.workflow(a, v)
	}
	for _, p := range v.pairs() {
		v.ask(p.key)
		if r.known(a, p) {
			r.field(a, p)
		}
	}
	if a.typ == definition.TypeLLM {
		if v.get("instruction").isNull() && a.instructions == "" {
			r.fail(a.at, a.was, "instruction", "an LlmAgent needs an instruction")
		}
		if a.typ == definition.TypeLLM && v.get("include_contents").isNull() {
			a.set("context", "full")
		}
	}
	if a.typ.Workflow() && v.get("sub_agents").empty() {
		r.fail(a.at, a.was, "sub_agents", "%s has no sub_agents: it would run for ever and do nothing",
			v.get("agent_class").text())
	}
	if a.typ == definition.TypeLoop && v.get("max_iterations").isNull() {
		a.set("max_iterations", 0, v.get("name"))
		r.add(Mapped, a.at, a.was, "no max_iterations", "max_iterations: 0", "no limit")
	}
	r.asTools(a, v.get("sub_agents").at(), "sub_agents", "ADK")
	return a
}

// shortClass returns the name of one of ADK's own classes without its package.
func shortClass(given string) string {
	name := given
	for _, pkg := range []string{"google.adk.agents.", "google.adk.workflow."} {
		name = strings.TrimPrefix(name, pkg)
	}
	if _, last, ok := strings.Cut(name, "."); ok && given != name &&
		strings.EqualFold(strings.ReplaceAll(name[:len(name)-len(last)-1], "_", ""), last) {
		name = last // google.adk.agents.loop_agent.LoopAgent
	}
	return name
}

// className returns the class of an agent.
func className(v value) string { return shortClass(v.get("agent_class").text()) }

// class returns the type of agent for agent_class.
func (r *adkReader) class(a *agent, v value) (definition.Type, bool) {
	given, name := v.text(), shortClass(v.text())
	if name == "" {
		return definition.TypeLLM, true
	}
	if name == "Workflow" { // a graph, which becomes other agents
		return definition.TypeSequential, true
	}
	if t := adkClasses[name]; t != "" {
		r.mapped(v.at(), a.was, "agent_class "+given, "type "+string(t))
		return t, true
	}
	switch {
	case slices.Contains(adkNodes, name):
		r.fail(v.at(), a.was, "agent_class", "a %s can only be a node of a Workflow", name).Advice = "name it in the edges of a Workflow"
	case strings.Contains(name, ".") && len(r.open) > 1:
		a.whole.all()
		r.dropped(v.at(), a.was, "agent_class", "an agent of type command, http or expression may do the same",
			"%s is a class in your code, and code is not read", given)
	default:
		it := r.fail(v.at(), a.was, "agent_class", "there is no agent_class %q", given)
		it.Advice = meant(name, []string{"LlmAgent", "LoopAgent", "SequentialAgent", "ParallelAgent"})
		if strings.Contains(name, ".") {
			it.Message = given + " is a class in your code, and code is not read"
		}
	}
	return "", false
}

var pythonName = lazyregexp.New(`^[\p{L}_][\p{L}\p{N}_]*$`)

func (r *adkReader) name(a *agent, v value) {
	switch {
	case a.was == "":
		r.fail(a.at, "", "name", "an agent needs a name")
	case a.was == "user":
		r.fail(v.at(), a.was, "name", `an agent cannot be named "user": that name stands for the person`)
	case cleanName(a.was) != a.was: // a changed name is reported when all names are known
	case !pythonName().MatchString(a.was):
		r.add(Mapped, v.at(), a.was, "name", "", "ADK for Python refuses it: there it is an identifier, of letters, "+
			"digits and _")
	default:
		r.mapped(v.at(), a.was, "name", "")
	}
}

// known reports whether a key belongs to the class. A key that does not is an error, because ADK for Go ignores it,
// so that a mistyped limit would have no effect.
func (r *adkReader) known(a *agent, p pair) bool {
	if slices.Contains(adkKeys(a.typ), p.key) {
		return !p.value.isNull()
	}
	it := r.fail(p.at, a.was, p.key, "unknown field %q", p.key)
	if it.Advice = meant(p.key, adkKeys(a.typ)); it.Advice == "" {
		switch {
		case slices.Contains(adkLLM, p.key):
			it.Advice = "it belongs to an LlmAgent"
		case slices.Contains(adkLoop, p.key):
			it.Advice = "it belongs to a LoopAgent; without agent_class this is an LlmAgent"
		default:
			it.Advice = "ADK for Go ignores unknown fields; ADK for Python refuses them"
		}
	}
	return false
}

func (r *adkReader) field(a *agent, p pair) {
	v := p.value
	switch p.key {
	case "agent_class", "name": // already read
	case "sub_agents":
		r.subAgents(a, v)
	case "description":
		r.carryDescription(a, p)
	case "max_iterations":
		n, ok := v.whole()
		if !ok || v.isText() {
			r.fail(v.at(), a.was, p.key, "max_iterations must be a whole number, got %s", v.what())
			return
		}
		r.carry(a, p, p.key, n)
	case "before_agent_callbacks", "after_agent_callbacks", "before_model_callbacks", "after_model_callbacks",
		"before_tool_callbacks", "after_tool_callbacks":
		r.callbacks(a, p)
	default:
		r.llmField(a, p)
	}
}

// callbacks reports code that runs around an agent, a model or a tool.
func (r *adkReader) callbacks(a *agent, p pair) {
	if p.value.empty() {
		return
	}
	var names []string
	p.value.all()
	for _, c := range p.value.items() {
		names = append(names, c.get("name").text())
	}
	r.dropped(p.at, a.was, p.key, "write callbacks in the definition: {before_agent: [{command: […]}]}, {webhook: "+
		"https://…} or, in a Go program, {func: name}; where one sets escalate, write stop_when or exit_when",
		"%s is code, and a definition does not run code", strings.Join(names, ", "))
}

// subAgents reads the files in sub_agents.
func (r *adkReader) subAgents(a *agent, v value) {
	if !v.isList() {
		r.fail(v.at(), a.was, "sub_agents", "sub_agents must be a list, got %s", v.what())
		return
	}
	for _, item := range v.items() {
		if sub := r.ref(a, item); sub != nil {
			a.subs = append(a.subs, sub)
		}
	}
	if len(a.subs) > 0 {
		r.mapped(v.at(), a.was, "sub_agents", "")
	}
}

// ref reads the agent in the file config_path. It returns nil if it has reported why the agent cannot be read.
func (r *adkReader) ref(a *agent, item value) *agent {
	if !r.only(a, item, "sub_agents", "a sub-agent", "config_path", "code") {
		return nil
	}
	file, code := item.get("config_path").text(), item.get("code").text()
	switch {
	case file != "" && code != "", file == "" && code == "":
		r.fail(item.at(), a.was, "sub_agents", "a sub-agent is {config_path: file.yaml} or {code: package.object}")
		return nil
	case code != "":
		item.all()
		r.dropped(item.at(), a.was, "sub_agents code", "write the agent in a file, or in Go",
			"%s is an agent in your code, and code is not read", code)
		return nil
	}
	return r.file(a, item.get("config_path"), file)
}

// only reports whether a map has no other keys.
func (r *adkReader) only(a *agent, item value, fieldName, what string, keys ...string) bool {
	for _, p := range item.pairs() {
		if slices.Contains(keys, p.key) {
			continue
		}
		it := r.fail(p.at, a.was, fieldName, "unknown field %q of %s", p.key, what)
		if it.Advice = meant(p.key, keys); what == "a sub-agent" && slices.Contains([]string{"name", "agent_class", "instruction"}, p.key) {
			it.Advice = "ADK has no agent in the place of a reference: write it in a file of its own, and {config_path: file.yaml} here"
		}
		return false
	}
	return true
}

// file reads the agent in a file of the folder.
func (r *adkReader) file(a *agent, v value, name string) *agent {
	inner, done, ok := r.inFile(a, v, name)
	if !ok {
		return nil
	}
	defer done()
	return r.agent(inner)
}

// inFile returns the content of a file of the folder. Until done is called, a reference to the file is reported as a cycle.
func (r *adkReader) inFile(a *agent, v value, name string) (_ value, done func(), ok bool) {
	target := path.Join(path.Dir(r.open[len(r.open)-1]), name)
	switch {
	case path.IsAbs(name) || filepath.IsAbs(name) || strings.Contains(name, `\`):
		r.fail(v.at(), a.was, "config_path", "config_path must be a path with slashes, relative to this file, got %q",
			name)
		return value{}, nil, false
	case !filepath.IsLocal(target):
		r.fail(v.at(), a.was, "config_path", "config_path %q leads out of the agent's folder", name)
		return value{}, nil, false
	case slices.Contains(r.open, target):
		r.fail(v.at(), a.was, "config_path", "config_path %q leads in a circle", name)
		return value{}, nil, false
	case r.opts.FS == nil:
		r.fail(v.at(), a.was, "config_path", "config_path %q cannot be followed: the agent was not read from a folder",
			name)
		return value{}, nil, false
	}
	inner, known := r.parsed[target]
	if !known {
		data, err := source.ReadFile(r.opts.FS, target)
		if err != nil {
			it := r.fail(v.at(), a.was, "config_path", "config_path %q cannot be read: %v", name, source.Cause(err))
			it.Advice = r.similar(target)
			return value{}, nil, false
		}
		if inner, ok = r.parse(r.folder+target, data); !ok {
			return value{}, nil, false
		}
		r.parsed[target] = inner
	}
	r.open = append(r.open, target)
	return inner, func() { r.open = r.open[:len(r.open)-1] }, true
}

// similar returns the advice for a missing file.
func (r *adkReader) similar(target string) string {
	entries, err := fs.ReadDir(r.opts.FS, path.Dir(target))
	if err != nil || len(entries) > 1000 {
		return ""
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return r.near(path.Base(target), names)
}

// loops reports for each loop how ADK and a definition differ.
func (r *adkReader) loops(root *agent) {
	outermost := true
	root.link()
	root.walk(func(a *agent) {
		if a.typ != definition.TypeLoop {
			return
		}
		r.deny(a)
		switch nested := a.loop() != nil; {
		case nested:
			r.changed(a.at, a.was, "exit_loop", "", "leaving this loop leaves only this one; in ADK the loops around "+
				"it end too")
		default:
			a.set("timeouts", "none")
			if outermost {
				r.changed(a.at, a.was, "time", "timeouts: none", "ADK bounds no loop by time").Advice = "take the line away for 5 minutes an iteration and 30 in all"
			}
			outermost = false
		}
	})
}
