// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
)

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
			i.changed(a.place("name"), a.was, "name", name, "names are unique here, and another agent is called %q", want)
		case a.was != "" && name != a.was:
			i.changed(a.place("name"), a.was, "name", name, "a name begins with a letter and goes on with letters, digits, _ and -%s", i.shown(a))
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
	return "; people are shown the one that it had"
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
			why, advice = "it is a tool here, and a tool cannot end the loop of the agent that calls it", "give the agent that calls it can_exit_loop: true"
		case a.loop() == nil:
			why = "it ends a loop, and this agent is in none"
		case a.final():
			why = "it gives the last word, when the loop has stopped already"
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
