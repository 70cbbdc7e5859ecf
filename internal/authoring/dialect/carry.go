// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// carry sets a field of the definition to a value, and reports an entry of the file as carried over.
func (i *importer) carry(a *agent, p pair, ours string, v any) {
	a.set(ours, v, p.value)
	i.mapped(p.at, a.was, p.key, ours)
}

// carryWhole carries over a whole number, and reports another value.
func (i *importer) carryWhole(a *agent, p pair, ours string) {
	if n, ok := p.value.whole(); ok {
		i.carry(a, p, ours, n)
		return
	}
	i.fail(p.at, a.was, p.key, "%s must be a whole number, got %s", p.key, p.value.what())
}

// carryTime carries over a time. If the value is not a time, it reports the value and returns false.
func (i *importer) carryTime(a *agent, p pair, ours string) bool {
	text, ok := seconds(p.value)
	if !ok {
		i.fail(p.at, a.was, p.key, "%s must be a number of seconds above 0, got %s", p.key, p.value.what())
		return false
	}
	i.carry(a, p, ours, text)
	return true
}

// carryDescription carries over the description of an agent.
func (i *importer) carryDescription(a *agent, p pair) {
	a.description = p.value.text()
	a.came("description", p.value)
	i.mapped(p.at, a.was, p.key, "description")
}

// carryKey carries over the key for an agent's answer. The key of a finalizer is reported later, when the loop around it is known.
func (i *importer) carryKey(a *agent, p pair) {
	a.outputKey = p.value.text()
	a.came("output_key", p.value)
	if a.outputKey != definition.LoopOutput || i.opts.Dialect == ADK {
		i.mapped(p.at, a.was, p.key, "output_key")
	}
}

// carryText adds a text to the instructions of an agent.
func (i *importer) carryText(a *agent, p pair) {
	a.tell(p.value.text(), p.value, false)
	i.mapped(p.at, a.was, p.key, "instructions")
}

// carrySame carries over a field that a definition has too, under the same name.
func (i *importer) carrySame(a *agent, p pair) { i.carry(a, p, p.key, copyOf(p.value)) }

// carryModel sets the model of an agent to the one in the file.
func (i *importer) carryModel(a *agent, p pair) { i.useModel(a, p, p.value.text()) }

// asksUser gives an agent without instructions the request of the user.
func (i *importer) asksUser(a *agent, theirs string) {
	if a.instructions == "" {
		a.instructions = "{{user_input}}"
		i.changed(a.at, a.was, theirs, "instructions", "it has none, so the user's request takes its place")
	}
}

// carryMCP adds a tool server from its map in the file.
func (i *importer) carryMCP(a *agent, item value, theirs string, server object) {
	a.tools = append(a.tools, tool{value: object{{key: "mcp", value: server}}, from: item})
	i.mapped(item.at(), a.was, theirs, "tools mcp")
}

// remoteMCP returns a tool server with a URL, without its secrets.
func (i *importer) remoteMCP(a *agent, theirs string, server value) object {
	out := object{{key: "url", value: i.address(a, theirs+" url", server.get("url"))}}
	if h := server.get("headers"); !h.empty() {
		out = append(out, field{key: "headers", value: i.secrets(a, theirs+" headers", h, "headers")})
	}
	return out
}

// root returns the root agent: the only loop of tops, which no other agent contains, or else the only one of tops. If
// the options name an agent, the file does not have it. name is the name of one of all.
func root[T any](i *importer, at place, all, tops, loops []T, name func(T) string) (first T, ok bool) {
	if len(loops) == 1 {
		tops = loops
	}
	missing := i.opts.Agent != ""
	if len(tops) == 1 && !missing {
		return tops[0], true
	}
	if !missing {
		all = tops
	}
	var names []string
	for _, a := range all {
		names = append(names, name(a))
	}
	if missing {
		i.fail(at, "", "", "there is no agent %q", i.opts.Agent).Advice = "there are " + strings.Join(names, ", ")
	} else {
		i.fail(at, "", "", "several agents are in no other agent: %s", strings.Join(names, ", ")).Advice =
			"choose the first agent with --agent " + names[0]
	}
	return first, false
}
