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
	"github.com/refrain-dev/refrain/model/provider"
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

// aliases are how LiteLLM, which ADK and Evo AI use, calls providers.
var aliases = map[string]string{
	"google": "gemini", "vertex_ai": "gemini", "ollama_chat": "ollama", "openai_chat": "openai", "claude": "anthropic",
	"scripted": "", // no product has one; a file must not name scripts of ours
}

// modelName is a model's name as provider/name; empty if it names none that
// there is here.
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
		return "gemini/" + model // as ADK, a bare name is Gemini's
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

// useModel gives an agent the model that the file names.
func (i *importer) useModel(a *agent, v value, at place, fieldName, name string) {
	a.model = modelName(name)
	a.came("model", v)
	switch {
	case a.model == "":
		i.dropped(at, a.was, fieldName, "write model: provider/name; doc/models.md lists the providers",
			"there is no provider here for the model %q", name)
	case a.model == name:
		i.mapped(at, a.was, fieldName, "")
	default:
		i.mapped(at, a.was, fieldName, "model "+a.model)
	}
}

// settle makes the names, keys and permissions of a tree such that a definition
// can have them, and writes it with what it comes from.
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
	return from.emit(root), from
}

// names gives each agent a name of its own that an agent can have.
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

// shown keeps a name for people that an agent cannot have, and says so.
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

// cleanName is the nearest name that an agent can have.
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
	if name != s { // what stands for something else is not to be its end
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

// maxName leaves room for a number in the 100 characters that a name can have.
const maxName = 90

// asciiName is the nearest name that providers take for a tool.
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

// exits takes away permissions that would do nothing, or harm.
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

// final reports whether the agent is, or is in, the finalizer of its loop.
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

// deny says of each step of a loop that it may not end it, where the other
// product lets nobody: here every model may, if nobody is said to.
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

// inside reports whether an exit in a is one of the loop that step is a step of.
func inside(a, step *agent) bool {
	if step.typ == definition.TypeLoop {
		return false
	}
	return slices.ContainsFunc(step.subs, func(s *agent) bool { return s == a || inside(a, s) })
}

// asks reports whether an agent, or one in it but not in a loop in it, asks a
// model.
func asks(a *agent) bool {
	return a.typ == definition.TypeLLM || a.typ != definition.TypeLoop && slices.ContainsFunc(a.subs, asks)
}
