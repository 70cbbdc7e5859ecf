// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// list finds the agents of a file: one agent, a list, or an export that has them
// under agents, data or both. An agent that has the others beside itself is one of them.
func (r *evoReader) list(v value) []value {
	for range maxDepth {
		inner := v.get("data")
		if !v.isMap() || inner.isNull() || inner.isScalar() || !evoField(v.peek(), "type").isNull() || v.get("agents").isList() {
			break
		}
		v = inner
	}
	all := v.items()
	if list := v.get("agents"); list.isList() {
		all = list.items()
		if name := evoName(v.peek()); name != "" && !evoField(v.peek(), "type").isNull() &&
			!slices.ContainsFunc(all, func(a value) bool { return evoName(a.peek()) == name }) {
			v.ask("agents")
			all = append([]value{v}, all...)
		} else if data := v.get("data"); data.isMap() && name == "" { // the agent that was exported, and beside it those that it names
			all = append([]value{data}, all...)
		} else if name == "" {
			all = append(data.items(), all...)
		}
	} else if v.isMap() {
		all = []value{v}
	}
	return slices.DeleteFunc(all, func(a value) bool { return !a.isMap() })
}

// evoRef is the ID or the name by which a value means another agent: a text, or
// an entry such as {agent_id: …}. It is empty for an agent that stands there.
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
		return slices.Contains([]string{"type", "instruction", "config", "task", "sub_agents", "endpoint", "card_url", "model"}, key)
	}) {
		return ""
	}
	if id := ref.get("id").text(); id != "" {
		return id
	}
	return evoName(ref)
}

// first is the agent to begin with: the one named in the options, or the only
// one, or the only loop, that no other has.
func (r *evoReader) first() (value, bool) {
	var names []string
	for _, a := range r.all {
		if r.names(r.opts.Agent, a) {
			return a, true
		}
		names = append(names, evoName(a))
	}
	if r.opts.Agent != "" {
		r.fail(place{file: r.report.File}, "", "", "there is no agent %q", r.opts.Agent).Advice = "there are " + strings.Join(names, ", ")
		return value{}, false
	}
	var tops, loops []value
	for _, a := range r.all {
		if r.used(a) {
			continue
		}
		tops = append(tops, a)
		if evoType(a) == "loop" {
			loops = append(loops, a)
		}
	}
	switch {
	case len(loops) == 1:
		tops = loops
	case len(tops) == 0:
		tops = r.all // each is in another: the circle is told when it is met
	case len(tops) > 1:
		names = nil
		for _, a := range tops {
			names = append(names, evoName(a))
		}
		r.fail(place{file: r.report.File}, "", "", "there are several agents that are in no other: %s", strings.Join(names, ", ")).
			Advice = "say which to begin with: --agent " + names[0]
		return value{}, false
	}
	return tops[0], true
}

// used reports whether another agent names this one.
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

// index notes by what names agents are known, those in others too, and which of
// them are used.
func (r *evoReader) index() {
	r.by, r.told, r.refs = make(map[string]value), make(map[*yaml.Node]string), make(map[string]int)
	var add func(a value, depth int)
	add = func(a value, depth int) {
		if _, seen := r.told[a.Node]; seen || depth > maxDepth {
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

// names reports whether an ID or a name is that of an agent.
func (r *evoReader) names(ref string, a value) bool {
	return ref != "" && (ref == a.get("id").text() || ref == r.told[a.Node])
}

// evoRefs are the values by which an agent names others.
func evoRefs(a value) []value {
	a = a.peek()
	config := a.get("config")
	refs := slices.Concat(config.get("sub_agents").items(), evoField(a, "sub_agents").items(), config.get("agent_tools").items())
	for _, task := range config.get("tasks").items() {
		refs = append(refs, task.get("agent_id"))
	}
	for _, n := range config.get("workflow").get("nodes").items() {
		refs = append(refs, n.get("data").get("agent").get("id"), n.get("data").get("agent_id"))
	}
	return refs
}
