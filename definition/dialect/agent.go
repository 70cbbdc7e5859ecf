// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// agent is an agent on its way into a definition: what the dialects have in
// common, in our words.
type agent struct {
	at           place
	whole        value  // the map that it is in the file
	name         string // ours
	was          string // theirs
	typ          definition.Type
	description  string
	instructions string
	outputKey    string
	model        string
	exit         *bool // whether it may end the loop around; nil if nothing says
	plainKey     bool  // its loop is a cycle of a graph, where loop_output means nothing
	subs         []*agent
	tools        []tool
	order        []*agent
	extra        []field // all further fields
	// from is where the fields stand in the file, by our names; a text that was
	// made of several has several.
	from map[string][]value

	around *agent // whose sub-agent or tool it is
	isTool bool
}

// field is a field of the definition and its value: text, bool, int, float64,
// []any, object or *yaml.Node.
type field struct {
	key   string
	value any
	from  []value // where it stands in the file, if that is not the agent's to say
	// filled says that texts in the value have placeholders.
	filled bool
}

// object is a map that keeps its order.
type object []field

// tool is what a model can call: an agent, or a value as a definition has it.
type tool struct {
	agent *agent
	value any
	from  value
}

// set adds a field, with what it comes from if the file has it.
func (a *agent) set(key string, v any, from ...value) {
	a.extra = append(a.extra, field{key: key, value: v})
	a.came(key, from...)
}

// came notes where a field comes from.
func (a *agent) came(key string, from ...value) {
	if a.from == nil {
		a.from = make(map[string][]value)
	}
	if len(from) > 0 {
		a.from[key] = from
	}
}

// place is where a field stands in the file, or else the agent's name.
func (a *agent) place(key string) place {
	for _, k := range []string{key, "name"} {
		if from := a.from[k]; len(from) > 0 && from[0].Node != nil {
			return from[0].at()
		}
	}
	return a.at
}

// tell adds a text to the instructions, before or after what is there already.
func (a *agent) tell(text string, from value, first bool) {
	if first {
		a.instructions = joined(text, a.instructions)
		a.came("instructions", append([]value{from}, a.from["instructions"]...)...)
		return
	}
	a.instructions = joined(a.instructions, text)
	a.came("instructions", append(slices.Clip(a.from["instructions"]), from)...)
}

// walk visits the agent and all below it, each before those in it.
func (a *agent) walk(visit func(*agent)) {
	visit(a)
	for _, t := range a.tools {
		if t.agent != nil {
			t.agent.walk(visit)
		}
	}
	for _, sub := range a.subs {
		sub.walk(visit)
	}
}

// link tells each agent whose it is.
func (a *agent) link() {
	for _, t := range a.tools {
		if t.agent != nil {
			t.agent.around, t.agent.isTool = a, true
			t.agent.link()
		}
	}
	for _, sub := range a.subs {
		sub.around = a
		sub.link()
	}
}

// loop is the nearest loop whose pass the agent is part of; nil if there is
// none, or if the agent is a tool.
func (a *agent) loop() *agent {
	for ; a.around != nil; a = a.around {
		if a.isTool {
			return nil
		}
		if a.around.typ == definition.TypeLoop {
			return a.around
		}
	}
	return nil
}

// asTools gives an agent that asks a model its sub-agents as tools: there is no
// handing over of a conversation here.
func (i *importer) asTools(a *agent, at place, fieldName, product string) {
	if a.typ != definition.TypeLLM || len(a.subs) == 0 {
		return
	}
	for _, sub := range a.subs {
		a.tools = append(a.tools, tool{agent: sub})
	}
	i.changed(at, a.was, fieldName, "tools",
		"in %s the model hands the conversation over to one of them; here it asks them as tools, and gets their answers", product)
	a.subs = nil
}

// joined is two texts with an empty line between them.
func joined(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return strings.TrimRight(first, "\n") + "\n\n" + second
}

// find is the sub-agent that has a name in the file; nil if none has.
func find(subs []*agent, was string) *agent {
	for _, s := range subs {
		if s.was == was && was != "" {
			return s
		}
	}
	return nil
}
