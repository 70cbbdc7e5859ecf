// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
)

// evoReader reads agents as Evo AI documents them and as it exports them: the
// first have fields beside their type and name each other, the second have a
// config and IDs.
type evoReader struct {
	*importer
	all  []value
	by   map[string]value      // by ID and by name
	told map[*yaml.Node]string // their names
	refs map[string]int        // how often an agent names another so
	open []value               // the agents around the current one
}

var evoTypes = map[string]bool{
	"llm": true, "task": true, "workflow": true, "a2a": true, "loop": true, "sequential": true, "parallel": true, "external": true,
}

func (r *evoReader) root(name string, data []byte) *agent {
	v, ok := r.parse(name, data)
	if !ok {
		return nil
	}
	r.all = r.list(v)
	if len(r.all) > maxAgents {
		r.fail(v.at(), "", "", "there are more than %d agents", maxAgents)
		return nil
	}
	r.index()
	if len(r.all) == 0 {
		r.fail(v.at(), "", "", "there are no agents in it: want {agents: […]} or one agent")
		return nil
	}
	first, ok := r.first()
	if !ok {
		return nil
	}
	a := r.agent(first, nil)
	if r.failed > 0 {
		return a
	}
	for _, other := range r.all {
		if _, read := r.reads.owner[other.Node]; !read {
			r.dropped(other.at(), evoName(other), "agent", "--agent "+evoName(other)+" imports it", "%s", r.apart(other))
			other.all()
		}
	}
	return a
}

// apart says why an agent is not carried over.
func (r *evoReader) apart(a value) string {
	if r.used(a) {
		return "it is in none of the agents that are carried over"
	}
	return "it is in no other agent"
}

// evoKey writes a label of the form, in English or Portuguese, as the JSON does.
func evoKey(key string) string {
	key = strings.ToLower(strings.Join(strings.FieldsFunc(strings.Trim(key, "✅🛑🎯⭐ :"), func(r rune) bool { return r == ' ' || r == '-' }), "_"))
	switch key {
	case "instructions", "instruções", "instrucoes":
		return "instruction"
	case "can_use_exit_loop", "pode_usar_exit_loop", "exit_loop", "can_exit_loop":
		return "enable_exit_loop"
	case "task_definition", "tarefa":
		return "task"
	case "agent_card_url":
		return "card_url"
	case "total_loop_timeout", "loop_timeout":
		return "total_timeout"
	case "sub_agents_timeout", "agent_timeout", "step_timeout":
		return "sub_agent_timeout"
	}
	return key
}

// evoField is a field of an agent, beside its type or in its config.
func evoField(a value, key string) value {
	for _, at := range []value{a, a.get("config")} {
		for _, p := range at.pairs() {
			if evoKey(p.key) == key && !p.value.isNull() {
				at.ask(p.key)
				return p.value
			}
		}
	}
	return value{file: a.file, reads: a.reads}
}

func evoName(a value) string { return evoField(a, "name").text() }

// evoType is the type in small letters, without "agent" after it.
func evoType(a value) string {
	t := strings.ToLower(strings.TrimSpace(evoField(a, "type").text()))
	if n := strings.IndexByte(t, '('); n > 0 { // Workflow Agent (Sequential)
		t = t[:n]
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(t), "agent"))
}

// agent reads one agent; nil if the report says why there is none. The loop is
// the agent that has it, if that is one.
func (r *evoReader) agent(v value, around *agent) *agent {
	if r.tooMany(v.at()) {
		return nil
	}
	name := evoName(v)
	if slices.ContainsFunc(r.open, func(o value) bool { return o.Node == v.Node }) {
		r.fail(v.at(), name, "sub_agents", "the agent %q is in itself", name)
		return nil
	}
	r.open = append(r.open, v)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	a := &agent{at: v.at(), name: name, was: name}
	v.of(a)
	a.came("name", evoField(v, "name"))
	a.came("sub_agents", evoField(v.peek(), "sub_agents"))
	kind := evoType(v)
	if name == "" {
		a.was = cmp.Or(v.get("id").text(), cmp.Or(kind, "llm")+"_agent")
		a.name = a.was
		r.changed(v.at(), a.was, "name", a.name, "it has no name").Advice = "give it one: others name it so, and a run is listed by it"
	}
	switch kind {
	case "llm", "":
		r.llm(a, v)
	case "loop", "sequential", "parallel":
		r.composite(a, v, definition.Type(kind))
	case "task":
		a = r.task(a, v)
	case "workflow":
		a = r.workflow(a, v)
	case "a2a":
		a = r.remote(a, v)
	case "external":
		v.all()
		r.dropped(v.at(), name, "type external", "an agent of type http can send the same request",
			"it asks %s over an API of its own", cmp.Or(evoField(v, "provider").text(), "another service"))
		return nil
	default:
		it := r.fail(evoField(v, "type").at(), name, "type", "Invalid agent type: %s", kind)
		it.Advice = meant(kind, []string{"llm", "task", "workflow", "a2a", "loop", "sequential", "parallel"})
		return nil
	}
	if a == nil {
		return nil
	}
	a.whole = v
	evoField(v, "enable_exit_loop") // is read when the rest is
	r.common(a, v, kind)
	r.mayExit(a, v, around)
	return a
}

// common reads what all types have, and looks at every other field.
func (r *evoReader) common(a *agent, v value, kind string) {
	if a.was == "" {
		a.was = a.name
	}
	if d := evoField(v, "description").text(); d != "" {
		a.description = d
		a.came("description", evoField(v, "description"))
		r.mapped(evoField(v, "description").at(), a.was, "description", "")
	}
	if key := evoField(v, "output_key"); !key.empty() {
		a.outputKey = key.text()
		a.came("output_key", key)
		if a.outputKey != definition.LoopOutput {
			r.mapped(key.at(), a.was, "output_key", "")
		}
	}
	if t := evoField(v, "timeout"); !t.empty() && a.typ != definition.TypeLoop {
		r.stepTimeout(a, t)
	} else if t := evoField(v, "sub_agent_timeout"); !t.empty() && a.typ != definition.TypeLoop {
		r.stepTimeout(a, t)
	}
	for _, p := range v.pairs() {
		if p.key != "config" || !p.value.isMap() {
			r.leftOver(a, v, p, p.key, kind)
		}
	}
	for _, p := range v.get("config").pairs() {
		r.leftOver(a, v.get("config"), p, "config."+p.key, kind)
	}
	r.bookkeeping(a, v)
}

const elsewhereExit = "read its answer in the loop's stop_when, or in another agent's instructions"

// mayExit reads who may end the loop around: what the loop says, and what the
// agent says itself.
func (r *evoReader) mayExit(a *agent, v value, around *agent) {
	own := evoField(v, "enable_exit_loop")
	if own.isNull() {
		return
	}
	on, ok := own.boolean()
	if !ok {
		r.fail(own.at(), a.was, "exit_loop", "whether it can use exit_loop must be true or false, got %s", own.what())
		return
	}
	switch {
	case around == nil || around.typ == definition.TypeLLM:
		if on {
			r.dropped(own.at(), a.was, "exit_loop", "", "it ends a loop, and this agent is in none")
		}
	case around.typ == "" && on: // it is a node of a graph
		r.dropped(own.at(), a.was, "exit_loop", "", "a workflow goes on as its edges say, also in Evo AI")
	case around.typ == "":
	case on && a.outputKey == definition.LoopOutput:
		r.dropped(own.at(), a.was, "exit_loop", "", "it gives the last word, when the loop has stopped already")
	case on && a.typ == definition.TypeA2A:
		r.dropped(own.at(), a.was, "exit_loop", elsewhereExit, "an agent elsewhere cannot call it")
	default:
		a.exit = &on
		a.came("can_exit_loop", own)
		r.mapped(own.at(), a.was, "exit_loop", fmt.Sprintf("can_exit_loop: %v", on))
	}
}
