// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/agent"
)

// MCP is a server of tools: a command to start, or the URL of one that runs.
type MCP struct {
	Command []string
	// Env are environment variables of the command, besides the few that
	// programs need; PassEnv names those that it is given as they are where the
	// definition is run. It sees no other.
	Env     map[string]string
	PassEnv []string
	URL     string
	Headers map[string]string
	// Only are the tools that the model is given, by the server's names; nil is
	// all.
	Only []string
	// Prefix is put before the names that the model sees.
	Prefix string
	// Confirm are the tools, by the server's names, that a person has to consent
	// to each time; ConfirmAll is all of them.
	Confirm    []string
	ConfirmAll bool
	// Effect is what calls do to the world outside; empty is what the server
	// says, or else agent.Idempotent.
	Effect agent.Effect
}

var mcpFields = mcpShape().PropertyOrder

// mcp reads how a server of tools is reached; nil if it cannot be read.
func (r *reader) mcp(a *Agent, field string, n *yaml.Node) *MCP {
	ps, ok := r.pairs(n, field)
	if !ok {
		return nil
	}
	a.nodes[field] = n
	m, before := &MCP{}, len(r.problems)
	for _, p := range ps {
		f := field + "." + p.key
		a.nodes[f] = p.value
		switch p.key {
		case "command":
			m.Command = r.list(p.value, f, r.words)
		case "env":
			r.mcpEnv(a, m, f, p.value)
		case "url":
			m.URL, _ = r.text(p.value, f)
		case "headers":
			m.Headers = r.texts(a, p.value, f)
		case "only":
			m.Only = r.toolList(p.value, f)
		case "prefix":
			m.Prefix, _ = r.text(p.value, f)
		case "confirm":
			if p.value.Kind == yaml.SequenceNode {
				m.Confirm = r.toolList(p.value, f)
			} else if p.value.ShortTag() == "!!bool" {
				m.ConfirmAll, _ = r.boolean(p.value, f)
			} else {
				r.wrong(p.value, f, "true, or a list of tools")
			}
		case "effect":
			m.Effect = r.effect(p.value, f, effects)
		default:
			r.report(r.src.Of(p.at), CodeField, "unknown field %q of an MCP server", p.key).
				Hint = didYouMean(p.key, mcpFields, "%q", "it has command and env, or url and headers, and only, prefix, confirm and effect")
		}
	}
	if len(r.problems) > before {
		return nil
	}
	return m
}

// variable is what the name of an environment variable can be.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// mcpEnv reads a map of variables, or a list where NAME is passed on and
// NAME=value is set.
func (r *reader) mcpEnv(a *Agent, m *MCP, field string, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		m.Env = r.texts(a, n, field)
		return
	}
	items, _ := r.items(n, field)
	for i, item := range items {
		f := index(field, i)
		a.nodes[f] = item
		text, ok := r.text(item, f)
		if !ok {
			continue
		}
		name, value, set := strings.Cut(text, "=")
		switch {
		case !variable.MatchString(name):
			r.report(r.src.Of(item), CodeValue, "%q is not the name of an environment variable", name).Hint = "write NAME to pass it on, or NAME=value"
		case set:
			if m.Env == nil {
				m.Env = make(map[string]string)
			}
			m.Env[name] = value
		default:
			m.PassEnv = append(m.PassEnv, name)
		}
	}
}

// toolList reads a list of names of tools, which is not empty.
func (r *reader) toolList(n *yaml.Node, what string) []string {
	names := r.list(n, what, r.text)
	if n.Kind == yaml.SequenceNode && len(names) == 0 {
		r.report(r.src.Of(n), CodeValue, "%s is an empty list", what).Hint = "leave it out, or name tools"
	}
	for i, name := range names {
		if slices.Index(names, name) < i {
			r.report(r.src.Of(n), CodeDuplicate, "%s names %q twice", what, name)
		}
	}
	return names
}

func (r *reader) list(n *yaml.Node, what string, read func(*yaml.Node, string) (string, bool)) []string {
	items, _ := r.items(n, what)
	var all []string
	for i, item := range items {
		text, _ := read(item, index(what, i))
		all = append(all, text)
	}
	return all
}
