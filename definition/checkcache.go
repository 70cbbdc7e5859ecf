// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/template"
)

// caches finds out what the steps read that are answered from a cache.
func (c *checker) caches() {
	for a := range c.def.Root.All {
		if c.full() {
			return
		}
		if a.Step == nil || a.Step.Cache == nil || a.Step.Cache.Key != "" {
			continue
		}
		names, why := c.namesOf(a)
		if why != "" {
			c.report(a.at("cache"), CodeCache, "what %q depends on is not known: %s", a.Name, why).
				Hint = `say it, as cache: {key: "{{draft}}"}`
			continue
		}
		a.Step.Cache.reads = slices.Sorted(maps.Keys(names))
	}
}

// cacheKey checks the key that a file gives.
func (c *checker) cacheKey(a *Agent) {
	if a.Step != nil && a.Step.Cache != nil {
		c.template(a, "cache.key", a.Step.Cache.Key, template.Mustache)
	}
}

// namesOf lists what an agent, and all in it, read of what is outside, by the
// names that texts use; why is set if that cannot be said.
func (c *checker) namesOf(a *Agent) (names map[string]bool, why string) {
	names = make(map[string]bool)
	for sub := range a.All {
		if sub.Type == TypeLLM {
			return nil, fmt.Sprintf("%q asks a model, which sees more than its instructions name", sub.Name)
		}
		if sub.Type == TypeA2A && (sub.A2A.Payload == nil || !sub.A2A.NewContext) {
			return nil, fmt.Sprintf("%q may know what it was asked before; give it a payload and new_context: true", sub.Name)
		}
		if sub.loopAround() == a.parent {
			counters(sub, names)
		}
	}
	for i := range c.reads {
		rd := &c.reads[i]
		if !rd.agent.in(a) || rd.inner && !rd.known(c.keys) {
			continue
		}
		if rd.any {
			return nil, fmt.Sprintf("%s may read any key", rd.field)
		}
		kind, key := rd.split()
		switch {
		case (kind == "built in" || kind == "loop") && rd.loop() != a.parent && rd.name != "user_input":
		case kind == "loop":
			head, _, _ := strings.Cut(rd.name, ".")
			names[head+"."+key] = true
		case kind == "built in":
			names[rd.name] = true
		case kind == "outside" && !strings.HasPrefix(rd.name, "artifact."):
			head, _, _ := strings.Cut(rd.name, ".")
			names[head] = true
		case kind == "outside":
			names[rd.name] = true
		default:
			names[key] = true
		}
	}
	return names, ""
}

// in reports whether an agent is another one, or in it.
func (a *Agent) in(around *Agent) bool {
	for ; a != nil; a = a.parent {
		if a == around {
			return true
		}
	}
	return false
}

// counters adds what a task's expressions read besides the state.
func counters(a *Agent, names map[string]bool) {
	var texts []string
	if a.ExitWhen != "" {
		texts = append(texts, a.ExitWhen)
	}
	if e := a.Expression; e != nil {
		texts = slices.AppendSeq(append(texts, e.Value), maps.Values(e.Set))
	}
	vars := vocabulary.TaskVariables(true)
	for _, text := range texts {
		p, err := expr.Compile(text, vars...)
		if err != nil {
			continue // reported
		}
		for variable, name := range vocabulary.TaskCounters {
			if keys, all := p.Reads(variable); all || len(keys) > 0 {
				names[name] = true
			}
		}
	}
}
