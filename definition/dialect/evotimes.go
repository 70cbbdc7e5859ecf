// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"strings"
)

// times reads the times of a loop. Without any, they are those that Evo AI
// documents: 300 seconds for an iteration, 1800 for all of them.
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
		text, ok := seconds(t)
		if !ok {
			r.fail(t.at(), a.was, f.theirs, "%s must be a number of seconds above 0, got %s", f.theirs, t.what())
			continue
		}
		given = true
		a.set(f.ours, text, t)
		r.mapped(t.at(), a.was, f.theirs, f.ours)
	}
	if t := evoTime(v, "sub_agent_timeout"); !t.empty() {
		r.subAgentTimes(a, t)
	}
	if !given {
		r.add(Mapped, a.at, a.was, "time", "timeouts: standard", "300 s for an iteration and so for each sub-agent, 1800 s in all")
	}
}

// evoTime is a time of a loop: beside its other fields, or in its timeouts.
func evoTime(v value, key string) value {
	if t := evoField(v, key); !t.empty() {
		return t
	}
	times := evoField(v, "timeouts")
	for _, p := range times.pairs() {
		if k := strings.TrimSuffix(evoKey(p.key), "_timeout"); k == strings.TrimSuffix(key, "_timeout") || k+"s" == key || k == "sub_agents" && key == "sub_agent_timeout" {
			times.ask(p.key)
			return p.value
		}
	}
	return value{file: v.file, reads: v.reads}
}

// preset reads timeouts that are one word, and reports whether they are.
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
	a.set("timeouts", name, t)
	r.mapped(t.at(), a.was, "timeouts", "")
	return true
}

// subAgentTimes gives each step that has no time of its own the one that the loop
// gives all of them, or each by its name.
func (r *evoReader) subAgentTimes(a *agent, t value) {
	give := func(sub *agent, t value) {
		if !slices.ContainsFunc(sub.extra, func(f field) bool { return f.key == "timeout" }) {
			r.stepTimeout(sub, t)
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

// stepTimeout reads how long an agent may take as a step.
func (r *evoReader) stepTimeout(a *agent, t value) {
	if n, ok := seconds(t); ok {
		a.set("timeout", n, t)
		r.mapped(t.at(), a.was, "timeout", "")
		return
	}
	r.fail(t.at(), a.was, "timeout", "timeout must be a number of seconds above 0, got %s", t.what())
}
