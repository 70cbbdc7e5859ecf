// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/source"
)

// evoReader reads agents in the two forms of Evo AI. In the documented form their fields are in the same map as the
// type, and agents refer to each other by name. In the exported form they have a config and IDs.
type evoReader struct {
	*importer
	all  []value
	by   map[string]value      // by ID and by name
	told map[*yaml.Node]string // their names
	refs map[string]int        // number of references to each agent
	open []value               // the agents around the current agent
}

var evoTypes = map[string]bool{
	"llm": true, "task": true, "workflow": true, "a2a": true, "loop": true, "sequential": true, "parallel": true, "external": true,
}

func (r *evoReader) root(name string, data []byte) *agent {
	v, ok := r.parse(name, data)
	if !ok {
		return nil
	}
	r.all, _ = evoAgents(v)
	if len(r.all) > maxAgents {
		r.fail(v.at(), "", "", "there are more than %d agents", maxAgents)
		return nil
	}
	r.index()
	if len(r.all) == 0 {
		r.fail(v.at(), "", "", "the file has no agents: give {agents: […]} or one agent")
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
			which := "no other agent"
			if r.used(other) {
				which = "no agent that is carried over"
			}
			r.dropped(other.at(), evoName(other), "agent", "--agent "+evoName(other)+" imports it", "%s contains it", which)
			other.all()
		}
	}
	return a
}

// evoLabel converts a label of the form to a key: "✅ Can use exit_loop" becomes can_use_exit_loop.
func evoLabel(label string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(strings.Trim(label, "✅🛑🎯⭐ :"),
		func(r rune) bool { return r == ' ' || r == '-' }), "_"))
}

// evoKey returns the JSON name for a label of the form, which may be in English or Portuguese.
func evoKey(label string) string {
	key := evoLabel(label)
	return cmp.Or(evoLabels[key], key)
}

// evoLabels has the JSON names of the labels whose name is another.
var evoLabels = map[string]string{
	"instructions": "instruction", "instruções": "instruction", "instrucoes": "instruction",
	"can_use_exit_loop": "enable_exit_loop", "pode_usar_exit_loop": "enable_exit_loop", "exit_loop": "enable_exit_loop",
	"can_exit_loop": "enable_exit_loop", "task_definition": "task", "tarefa": "task", "agent_card_url": "card_url",
	"total_loop_timeout": "total_timeout", "loop_timeout": "total_timeout", "sub_agents_timeout": "sub_agent_timeout",
	"agent_timeout": "sub_agent_timeout", "step_timeout": "sub_agent_timeout",
}

// evoField returns a field of an agent from the map of the type or from the config.
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

// evoPair returns a field of an agent with its JSON key.
func evoPair(a value, key string) pair {
	v := evoField(a, key)
	return pair{key, v.at(), v}
}

// given carries over a field of an agent, unless it is empty.
func (r *evoReader) given(a *agent, v value, key string, carry func(*agent, pair)) {
	if p := evoPair(v, key); !p.value.empty() {
		carry(a, p)
	}
}

func evoName(a value) string { return evoField(a, "name").text() }

// evoType returns the type in lower case, without "agent" at its end.
func evoType(a value) string {
	t := strings.ToLower(strings.TrimSpace(evoField(a, "type").text()))
	if n := strings.IndexByte(t, '('); n > 0 { // Workflow Agent (Sequential)
		t = t[:n]
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(t), "agent"))
}

// agent reads one agent. It returns nil if it has reported why the agent is left out. around is the loop around the
// agent, if there is one.
func (r *evoReader) agent(v value, around *agent) *agent {
	if r.tooMany(v.at()) {
		return nil
	}
	name := evoName(v)
	if slices.ContainsFunc(r.open, func(o value) bool { return o.Node == v.Node }) {
		r.fail(v.at(), name, "sub_agents", "the agent %q contains itself", name)
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
		r.changed(v.at(), a.was, "name", a.name, "it has no name").Advice = "give it a name: other agents name " +
			"it so, and runs are listed by it"
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
			"it calls %s through an API of its own", cmp.Or(evoField(v, "provider").text(), "another service"))
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
	evoField(v, "enable_exit_loop") // read later with the other fields
	r.common(a, v, kind)
	r.mayExit(a, v, around)
	return a
}

// common reads the fields of all types, and reports every field that nothing has read.
func (r *evoReader) common(a *agent, v value, kind string) {
	if a.was == "" {
		a.was = a.name
	}
	r.given(a, v, "description", r.carryDescription)
	r.given(a, v, "output_key", r.carryKey)
	if t := evoField(v, "timeout"); !t.empty() && a.typ != definition.TypeLoop {
		r.timeout(a, t)
	} else if t := evoField(v, "sub_agent_timeout"); !t.empty() && a.typ != definition.TypeLoop {
		r.timeout(a, t)
	}
	var silent []string
	var first place
	for n, in := range []value{v, v.get("config")} {
		for _, p := range in.pairs() {
			switch {
			case in.asked(p.key) || p.value.blank() || n == 0 && p.key == "config" && p.value.isMap():
				continue
			case !slices.Contains(evoSilent, evoKey(p.key)):
				r.leftOver(a, p, []string{"", "config."}[n]+p.key, kind)
			default:
				if silent = append(silent, p.key); len(silent) == 1 {
					first = p.at
				}
			}
			p.value.all()
		}
	}
	if len(silent) > 0 {
		verb := "do"
		if len(silent) == 1 {
			verb = "does"
		}
		r.dropped(first, a.was, strings.Join(silent, ", "), "", "%s not change what an agent does", verb)
	}
}

const elsewhereExit = "read its answer in the loop's stop_when, or in another agent's instructions"

// mayExit reads whether an agent may end its loop, from the loop and from the agent.
func (r *evoReader) mayExit(a *agent, v value, around *agent) {
	own := evoField(v, "enable_exit_loop")
	if own.isNull() {
		return
	}
	on, ok := own.boolean()
	if !ok {
		r.fail(own.at(), a.was, "exit_loop", "\"can use exit_loop\" must be true or false, got %s", own.what())
		return
	}
	switch {
	case around == nil || around.typ == definition.TypeLLM:
		if on {
			r.dropped(own.at(), a.was, "exit_loop", "", "it ends a loop, but this agent is not in a loop")
		}
	case around.typ == "" && on: // a node of a graph
		r.dropped(own.at(), a.was, "exit_loop", "", "a workflow follows its edges, in Evo AI too")
	case around.typ == "":
	case on && a.outputKey == definition.LoopOutput:
		r.dropped(own.at(), a.was, "exit_loop", "", "it runs after the loop has stopped")
	case on && a.typ == definition.TypeA2A:
		r.dropped(own.at(), a.was, "exit_loop", elsewhereExit, "a remote agent cannot call it")
	default:
		a.exit = &on
		a.came("can_exit_loop", own)
		r.mapped(own.at(), a.was, "exit_loop", fmt.Sprintf("can_exit_loop: %v", on))
	}
}

// evoAgents finds the agents of a file: one agent, a list, or an export that has them under agents, data or both. An
// agent at the top level of an export is one of them. listed reports whether the file has a list called agents.
func evoAgents(v value) (all []value, listed bool) {
	for range source.MaxDepth {
		inner := v.get("data")
		if !v.isMap() || inner.isNull() || inner.isScalar() || !evoField(v.peek(), "type").isNull() ||
			v.get("agents").isList() {
			break
		}
		v = inner
	}
	all = v.items()
	if list := v.get("agents"); list.isList() {
		all, listed = list.items(), true
		if name := evoName(v.peek()); name != "" && !evoField(v.peek(), "type").isNull() &&
			!slices.ContainsFunc(all, func(a value) bool { return evoName(a.peek()) == name }) {
			v.ask("agents")
			all = append([]value{v}, all...)
		} else if data := v.get("data"); data.isMap() && name == "" { // the exported agent; the agents that it refers to are next to it
			all = append([]value{data}, all...)
		} else if name == "" {
			all = append(data.items(), all...)
		}
	} else if v.isMap() {
		all = []value{v}
	}
	return slices.DeleteFunc(all, func(a value) bool { return !a.isMap() }), listed
}

// evoRef returns the ID or the name by which a value refers to another agent. The value is a string, or an entry such
// as {agent_id: …}. evoRef returns "" if the value is an inline agent.
func evoRef(ref value) string {
	if !ref.isMap() {
		return ref.text()
	}
	ref = ref.peek()
	if id := ref.get("agent_id").text(); id != "" {
		return id
	}
	if slices.ContainsFunc(ref.pairs(), func(p pair) bool {
		key := evoKey(p.key)
		return slices.Contains([]string{"type", "instruction", "config", "task", "sub_agents", "endpoint", "card_url",
			"model"}, key)
	}) {
		return ""
	}
	if id := ref.get("id").text(); id != "" {
		return id
	}
	return evoName(ref)
}

// first returns the root agent. It is the agent that the options name, or the only agent, or the only loop, that no
// other agent contains.
func (r *evoReader) first() (value, bool) {
	var tops, loops []value
	for _, a := range r.all {
		if r.names(r.opts.Agent, a) {
			return a, true
		}
		if r.used(a) {
			continue
		}
		tops = append(tops, a)
		if evoType(a) == "loop" {
			loops = append(loops, a)
		}
	}
	if len(tops) == 0 && r.opts.Agent == "" {
		return r.all[0], true // each is in another one; the cycle is reported later
	}
	return root(r.importer, place{File: r.report.File}, r.all, tops, loops, evoName)
}

// used reports whether another agent refers to this one.
func (r *evoReader) used(a value) bool {
	own := 0
	for _, ref := range evoRefs(a) {
		if r.names(evoRef(ref), a) {
			own++
		}
	}
	n := r.refs[a.get("id").text()]
	if name := r.told[a.Node]; name != a.get("id").text() {
		n += r.refs[name]
	}
	return n > own
}

// index records the names and IDs of all agents, including inline ones, and counts the references to each.
func (r *evoReader) index() {
	r.by, r.told, r.refs = make(map[string]value), make(map[*yaml.Node]string), make(map[string]int)
	var add func(a value, depth int)
	add = func(a value, depth int) {
		if _, seen := r.told[a.Node]; seen || depth > source.MaxDepth {
			return
		}
		r.told[a.Node] = evoName(a)
		for _, name := range []string{a.get("id").text(), r.told[a.Node]} {
			if _, taken := r.by[name]; !taken && name != "" {
				r.by[name] = a
			}
		}
		for _, ref := range evoRefs(a) {
			if name := evoRef(ref); name != "" {
				r.refs[name]++
			} else if ref.isMap() {
				add(ref, depth+1)
			}
		}
	}
	for _, a := range r.all {
		add(a, 0)
	}
}

// names reports whether an ID or a name belongs to an agent.
func (r *evoReader) names(ref string, a value) bool {
	return ref != "" && (ref == a.get("id").text() || ref == r.told[a.Node])
}

// evoRefs returns the values by which an agent refers to others.
func evoRefs(a value) []value {
	a = a.peek()
	config := a.get("config")
	refs := slices.Concat(config.get("sub_agents").items(), evoField(a, "sub_agents").items(),
		config.get("agent_tools").items())
	for _, task := range config.get("tasks").items() {
		refs = append(refs, task.get("agent_id"))
	}
	for _, n := range config.get("workflow").get("nodes").items() {
		refs = append(refs, n.get("data").get("agent").get("id"), n.get("data").get("agent_id"))
	}
	return refs
}

// times reads the time limits of a loop. The defaults are those in Evo AI's documentation, which are 300 seconds for
// an iteration and 1800 for the loop.
func (r *evoReader) times(a *agent, v value) {
	given := r.preset(a, v)
	if !given {
		a.set("timeouts", "standard")
	}
	for _, f := range []struct{ theirs, ours string }{{"iteration_timeout", "iteration_timeout"}, {"total_timeout", "timeout"}, {"timeout", "timeout"}} {
		t := evoTime(v, f.theirs)
		if t.empty() || f.theirs == "timeout" && !evoTime(v, "total_timeout").empty() {
			continue
		}
		given = r.carryTime(a, pair{f.theirs, t.at(), t}, f.ours) || given
	}
	if t := evoTime(v, "sub_agent_timeout"); !t.empty() {
		r.subAgentTimes(a, t)
	}
	if !given {
		r.add(Mapped, a.at, a.was, "time", "timeouts: standard",
			"300 s for each iteration and each sub-agent, 1800 s in all")
	}
}

// evoTime returns a time limit of a loop, from a field of its own or from timeouts.
func evoTime(v value, key string) value {
	if t := evoField(v, key); !t.empty() {
		return t
	}
	times := evoField(v, "timeouts")
	for _, p := range times.pairs() {
		if k := strings.TrimSuffix(evoKey(p.key), "_timeout"); k == strings.TrimSuffix(key, "_timeout") ||
			k+"s" == key || k == "sub_agents" && key == "sub_agent_timeout" {
			times.ask(p.key)
			return p.value
		}
	}
	return value{file: v.file, reads: v.reads}
}

// preset reads timeouts with a single word. It returns false for any other form.
func (r *evoReader) preset(a *agent, v value) bool {
	t := evoField(v, "timeouts")
	if t.empty() || !t.isScalar() {
		return false
	}
	names := []string{"fast", "standard", "long", "none"}
	name := strings.ToLower(t.text())
	if !slices.Contains(names, name) {
		r.fail(t.at(), a.was, "timeouts", "timeouts must be fast, standard, long or none, or a map of seconds, got %s", t.what()).Advice = meant(name, names)
		return true
	}
	r.carry(a, pair{"timeouts", t.at(), t}, "timeouts", name)
	return true
}

// subAgentTimes gives each step without a time limit the limit that the loop gives to this step by name, or else to all steps.
func (r *evoReader) subAgentTimes(a *agent, t value) {
	give := func(sub *agent, t value) {
		if !slices.ContainsFunc(sub.extra, func(f field) bool { return f.key == "timeout" }) {
			r.timeout(sub, t)
		}
	}
	if t.isMap() {
		for _, p := range t.pairs() {
			t.ask(p.key)
			sub := r.step(a, p.key)
			if sub == nil {
				r.fail(p.at, a.was, "sub_agent_timeout", "Agent with ID %s not found among the sub-agents", p.key)
				continue
			}
			give(sub, p.value)
		}
		return
	}
	for _, sub := range a.subs {
		give(sub, t)
	}
}

// timeout reads the time limit of an agent as a step.
func (r *evoReader) timeout(a *agent, t value) {
	r.carryTime(a, pair{"timeout", t.at(), t}, "timeout")
}
