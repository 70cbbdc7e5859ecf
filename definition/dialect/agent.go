// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/refrain-dev/refrain/definition"

// agent is an agent on its way into a definition: what the dialects have in
// common, in our words.
type agent struct {
	at           place
	name         string // ours
	was          string // theirs
	typ          definition.Type
	description  string
	instructions string
	outputKey    string
	model        string
	exit         *bool // whether it may end the loop around; nil if nothing says
	subs         []*agent
	tools        []tool
	order        []*agent
	extra        []field // all further fields

	around *agent // whose sub-agent or tool it is
	isTool bool
}

// field is a field of the definition and its value: text, bool, int, float64,
// []any, object or *yaml.Node.
type field struct {
	key   string
	value any
	// filled says that texts in the value have placeholders.
	filled bool
}

// object is a map that keeps its order.
type object []field

// tool is what a model can call: an agent, or a value as a definition has it.
type tool struct {
	agent *agent
	value any
}

func (a *agent) set(key string, v any) { a.extra = append(a.extra, field{key: key, value: v}) }

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
