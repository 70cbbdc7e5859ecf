// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/tool/exitlooptool"
)

// toolNames are what an element of tools can be, or begin with.
var toolNames = []string{exitlooptool.Name, exitlooptool.Alias, "agent", "mcp"}

const toolsHint = "the tools are exit_loop, {agent: {…}} and {mcp: {…}}"

func (r *reader) tools(a *Agent, n *yaml.Node) {
	items, _ := r.items(n, "tools")
	for i, item := range items {
		if r.full() {
			return
		}
		field := index("tools", i)
		a.nodes[field] = item
		if item.Kind == yaml.MappingNode {
			r.toolMap(a, field, item)
		} else {
			r.toolName(a, field, item)
		}
	}
}

// toolName reads the name of a tool.
func (r *reader) toolName(a *Agent, field string, n *yaml.Node) {
	name, ok := r.text(n, field)
	switch {
	case !ok:
	case name == exitlooptool.Name || name == exitlooptool.Alias:
		if a.exitTool() != nil {
			r.report(r.src.of(n), CodeDuplicate, "the exit tool is given twice")
			return
		}
		llmOf(a).Tools = append(llmOf(a).Tools, Tool{Exit: name, field: field})
	case slices.Contains(toolNames, name):
		r.report(r.src.of(n), CodeTool, "the tool %s needs to be described", name).Hint = "write {" + name + ": {…}}"
	default:
		r.report(r.src.of(n), CodeTool, "there is no tool %q", name).Hint = didYouMean(name, toolNames, "%q", toolsHint)
	}
}

// toolMap reads {agent: …} or {mcp: …}.
func (r *reader) toolMap(a *Agent, field string, n *yaml.Node) {
	ps, ok := r.pairs(n, field)
	if !ok {
		return
	}
	if len(ps) != 1 {
		r.report(r.src.of(n), CodeTool, "%s must be one tool, got %d fields", field, len(ps)).Hint = toolsHint
		return
	}
	p := ps[0]
	switch p.key {
	case "agent":
		if p.value.Kind != yaml.MappingNode {
			r.wrong(p.value, field+".agent", "a map with a name, or with a ref")
			return
		}
		if inner := r.agent(p.value, a); inner != nil {
			inner.tool = true
			llmOf(a).Tools = append(llmOf(a).Tools, Tool{Agent: inner, field: field})
		}
	case "mcp":
		if m := r.mcp(a, field+".mcp", p.value); m != nil {
			llmOf(a).Tools = append(llmOf(a).Tools, Tool{MCP: m, field: field + ".mcp"})
		}
	case exitlooptool.Name, exitlooptool.Alias:
		r.report(r.src.of(p.at), CodeTool, "the tool %s has no settings", p.key).Hint = "write its name alone"
	default:
		r.report(r.src.of(p.at), CodeTool, "there is no tool %q", p.key).Hint = didYouMean(p.key, toolNames, "%q", toolsHint)
	}
}

var mcpFields = []string{"command", "env", "url", "headers"}

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
			items, _ := r.items(p.value, f)
			for i, item := range items {
				arg, _ := r.words(item, index(f, i))
				m.Command = append(m.Command, arg)
			}
		case "env":
			m.Env = r.texts(a, p.value, f)
		case "url":
			m.URL, _ = r.text(p.value, f)
		case "headers":
			m.Headers = r.texts(a, p.value, f)
		default:
			r.report(r.src.of(p.at), CodeField, "unknown field %q of an MCP server", p.key).
				Hint = didYouMean(p.key, mcpFields, "%q", "it has command and env, or url and headers")
		}
	}
	if len(r.problems) > before {
		return nil
	}
	return m
}

// exitTool is the exit tool among the tools; nil if it is not one.
func (a *Agent) exitTool() *Tool {
	if a.LLM == nil {
		return nil
	}
	for i := range a.LLM.Tools {
		if t := &a.LLM.Tools[i]; t.Exit != "" {
			return t
		}
	}
	return nil
}
