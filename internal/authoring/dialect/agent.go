// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/edit"
	"github.com/refrain-dev/refrain/model/provider"
)

// agent is an agent during the conversion to a definition, with the fields that all dialects have.
type agent struct {
	at           place
	whole        value  // the map of the agent in the file
	name         string // the name in the definition
	was          string // the name in the file
	typ          definition.Type
	description  string
	instructions string
	outputKey    string
	model        string
	exit         *bool // whether it may end the loop around it; nil if not specified
	plainKey     bool  // its loop is a cycle of a graph, where loop_output has no meaning
	subs         []*agent
	tools        []tool
	order        []*agent
	extra        []field // all further fields
	// from has the places of the fields in the file, by their names in the definition. A text that was made of
	// several values has several places.
	from map[string][]value

	around *agent // the agent whose sub-agent or tool it is
	isTool bool
}

// field is a field of the definition and its value, which is a string, bool, int, float64, []string, []any, object or *yaml.Node.
type field struct {
	key   string
	value any
	from  []value // the origin in the file, if the agent does not record it
	// filled is true if strings in the value have placeholders.
	filled bool
}

// object is a map that keeps its order.
type object []field

// tool is a tool of a model: an agent, or a value in the form of a definition.
type tool struct {
	agent *agent
	value any
	from  value
}

// set adds a field, with its origin if it comes from the file.
func (a *agent) set(key string, v any, from ...value) {
	a.extra = append(a.extra, field{key: key, value: v})
	a.came(key, from...)
}

// came records the origin of a field.
func (a *agent) came(key string, from ...value) {
	if a.from == nil {
		a.from = make(map[string][]value)
	}
	if len(from) > 0 {
		a.from[key] = from
	}
}

// place returns the place of a field in the file, or else of the agent's name.
func (a *agent) place(key string) place {
	for _, k := range []string{key, "name"} {
		if from := a.from[k]; len(from) > 0 && from[0].Node != nil {
			return from[0].at()
		}
	}
	return a.at
}

// tell adds a text to the instructions, before or after the existing text.
func (a *agent) tell(text string, from value, first bool) {
	if first {
		a.instructions = joinTexts(text, a.instructions)
		a.came("instructions", append([]value{from}, a.from["instructions"]...)...)
		return
	}
	a.instructions = joinTexts(a.instructions, text)
	a.came("instructions", append(slices.Clip(a.from["instructions"]), from)...)
}

// walk visits the agent and all agents below it, each before its own sub-agents.
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

// link sets around in each agent.
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

// loop returns the nearest loop in whose iterations the agent runs. It returns nil if there is none, or if the agent is a tool.
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

// asTools makes the sub-agents of an agent that calls a model its tools, because a definition cannot transfer a
// conversation to another agent.
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

// joinTexts joins two texts with an empty line.
func joinTexts(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return strings.TrimRight(first, "\n") + "\n\n" + second
}

// find returns the sub-agent with a name in the file, or nil if there is none.
func find(subs []*agent, was string) *agent {
	for _, s := range subs {
		if s.was == was && was != "" {
			return s
		}
	}
	return nil
}

// aliases has the names of providers in LiteLLM, which ADK and Evo AI use.
var aliases = map[string]string{
	"google": "gemini", "vertex_ai": "gemini", "ollama_chat": "ollama", "openai_chat": "openai", "claude": "anthropic",
	"scripted": "", // no product has this provider; a file must not name scripts of this project
}

// modelName returns a model's name as provider/name, or "" if the provider is unknown.
func modelName(name string) string {
	name = strings.TrimSpace(name)
	before, rest, slash := strings.Cut(name, "/")
	if to, ok := aliases[before]; slash && ok {
		if to == "" {
			return ""
		}
		name = to + "/" + rest
	}
	_, model, err := provider.Find(name)
	switch e, isName := errors.AsType[*provider.NameError](err); {
	case err == nil && !strings.Contains(name, "/"):
		return "gemini/" + model // as in ADK, a name without a provider is Gemini's
	case err == nil:
		return name
	case isName && !slash:
		if e.Meant == "" && (strings.HasPrefix(name, "o1") || strings.HasPrefix(name, "o3") ||
			strings.HasPrefix(name, "o4")) {
			return "openai/" + name
		}
		return e.Meant
	}
	return ""
}

// useModel sets the model of an agent to the one that an entry of the file names.
func (i *importer) useModel(a *agent, p pair, name string) {
	a.model = modelName(name)
	a.came("model", p.value)
	switch {
	case a.model == "":
		i.dropped(p.at, a.was, p.key, "write model: provider/name; doc/models.md lists the providers",
			"there is no provider here for the model %q", name)
	case a.model == name:
		i.mapped(p.at, a.was, p.key, "")
	default:
		i.mapped(p.at, a.was, p.key, "model "+a.model)
	}
}

// settle changes the names, keys and permissions of a tree so that a definition can have them. It returns the
// definition and the origins of its nodes.
func (i *importer) settle(root *agent) (*yaml.Node, origins) {
	root.link()
	i.names(root)
	keys := i.outputKeys(root)
	i.exits(root)
	inputs := i.placeholders(root, keys)
	if len(inputs) > 0 {
		root.extra = append(root.extra, field{key: "inputs", value: inputs})
	}
	from := make(origins)
	n := from.emit(root)
	edit.Order(n)
	return n, from
}

// names gives each agent a unique and valid name.
func (i *importer) names(root *agent) {
	taken := make(map[string]bool)
	root.walk(func(a *agent) {
		want := cleanName(a.name)
		if a.isTool {
			want = asciiName(want)
		}
		name := want
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", want, n)
		}
		taken[name] = true
		switch {
		case name != want:
			i.changed(a.place("name"), a.was, "name", name, "names are unique here, and another agent is called %q",
				want)
		case a.was != "" && name != a.was:
			i.changed(a.place("name"), a.was, "name", name, "a name starts with a letter, followed by letters, "+
				"digits, _ and -%s", i.shown(a))
		}
		a.name = name
	})
}

// shown keeps an invalid name as the display name, and returns a text for the report.
func (i *importer) shown(a *agent) string {
	text := strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, a.was))
	if text == "" || utf8.RuneCountInString(text) > 100 {
		return ""
	}
	a.set("display_name", text, a.from["name"]...)
	return "; people see its original name"
}

// cleanName returns the valid name that is closest to a text.
func cleanName(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsLetter(r), b.Len() > 0 && (unicode.IsDigit(r) || r == '-' || r == '_'):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	name := b.String()
	if runes := []rune(name); len(runes) > maxName {
		name = string(runes[:maxName])
	}
	if name != s { // a replaced character must not end the name
		name = strings.TrimRight(name, "_-")
	}
	switch name {
	case "":
		return "agent"
	case "user":
		return "user_agent"
	}
	return name
}

// maxName leaves space for a number in the 100 characters of a name.
const maxName = 90

// asciiName returns the name closest to a text that providers accept for a tool.
func asciiName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '_'
		}
		return r
	}, s)
	if s = strings.TrimLeft(s, "_-0123456789"); s == "" {
		s = "agent"
	}
	s = s[:min(len(s), 55)]
	if s == "exit_loop" || s == "exitLoop" {
		s += "_agent"
	}
	return s
}

// exits removes permissions that have no effect or do harm.
func (i *importer) exits(root *agent) {
	root.walk(func(a *agent) {
		if a.exit == nil {
			return
		}
		why, advice := "", ""
		switch {
		case a.loop() == nil && a.isTool:
			why, advice = "it is a tool here, and a tool cannot end the loop of the agent that calls it",
				"give the agent that calls it can_exit_loop: true"
		case a.loop() == nil:
			why = "it ends a loop, but this agent is not in a loop"
		case a.final():
			why = "it runs after the loop has stopped"
		default:
			return
		}
		if *a.exit {
			i.dropped(a.place("can_exit_loop"), a.was, "exit_loop", advice, "%s", why)
		}
		a.exit = nil
	})
}

// final reports whether the agent is the finalizer of its loop or in it.
func (a *agent) final() bool {
	for ; a != nil && a.around != nil; a = a.around {
		if a.outputKey == definition.LoopOutput {
			return true
		}
		if a.around.typ == definition.TypeLoop {
			return false
		}
	}
	return false
}

// deny forbids every step of a loop to end it, if the other product lets no agent end it. In a definition every model
// may end a loop in which no agent has a permission.
func (i *importer) deny(l *agent) {
	named := false
	for _, sub := range l.subs {
		sub.walk(func(a *agent) {
			named = named || a.exit != nil && *a.exit && (a == sub || inside(a, sub))
		})
	}
	if named {
		return
	}
	for _, sub := range l.subs {
		if sub.exit == nil && asks(sub) && sub.outputKey != definition.LoopOutput {
			sub.exit = new(bool)
		}
	}
}

// inside reports whether an exit in a ends the loop that has step as a step.
func inside(a, step *agent) bool {
	if step.typ == definition.TypeLoop {
		return false
	}
	return slices.ContainsFunc(step.subs, func(s *agent) bool { return s == a || inside(a, s) })
}

// asks reports whether an agent calls a model, itself or in its sub-agents outside inner loops.
func asks(a *agent) bool {
	return a.typ == definition.TypeLLM || a.typ != definition.TypeLoop && slices.ContainsFunc(a.subs, asks)
}
