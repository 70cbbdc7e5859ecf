// SPDX-License-Identifier: Apache-2.0

// Package graph draws definitions.
package graph

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Formats maps the name of a format to the function that draws it.
var Formats = map[string]func(io.Writer, *Node) error{
	"ascii": drawASCII, "mermaid": drawMermaid,
}

// Node is an agent in a drawing. All its texts are on one line and have no control characters; each format escapes them as it
// needs.
type Node struct {
	id    string
	agent string // name in the file
	name  string
	kind  definition.Type
	// about holds what is drawn beside the name: state keys, tools.
	about []string
	// steps run in this order, or at the same time in a node of the kind parallel. The steps of a loop do not contain its
	// finalizer, which is nil if there is none.
	steps     []*Node
	finalizer *Node
	// exits reports whether the agent may end the innermost loop around it, and star whether it is a finalizer.
	exits, star bool
	// stops are the conditions that end a loop, without the exits of its steps.
	stops []string
}

// Of returns the nodes of an agent and its sub-agents. The IDs are numbers in the order of the file, so they contain no text of
// the file.
func Of(root *definition.Agent) *Node {
	ids := 0
	var walk func(a *definition.Agent) *Node
	walk = func(a *definition.Agent) *Node {
		n := &Node{id: fmt.Sprintf("n%d", ids), agent: a.Name, name: graphName(a), kind: a.Type, about: graphAbout(a)}
		ids++
		for _, sub := range inOrder(a) {
			s := walk(sub)
			s.star = a.Loop != nil && sub.OutputKey == definition.LoopOutput
			if s.star && !a.Loop.FinalizeEach {
				n.finalizer = s
				continue
			}
			n.steps = append(n.steps, s)
		}
		for _, way := range a.Stops() {
			if way.By != "" {
				markExit(n, way.By)
				continue
			}
			n.stops = append(n.stops, brief.Line(way.Text, 80))
		}
		return n
	}
	return walk(root)
}

// inOrder returns the sub-agents in the order in which they run.
func inOrder(a *definition.Agent) []*definition.Agent {
	if a.Loop == nil || len(a.Loop.Order) == 0 {
		return a.SubAgents
	}
	subs := slices.Clone(a.SubAgents)
	place := func(s *definition.Agent) int { return slices.Index(a.Loop.Order, s.Name) }
	slices.SortStableFunc(subs, func(x, y *definition.Agent) int { return place(x) - place(y) })
	return subs
}

// markExit marks the agent with a name in a loop, but not in a loop inside that loop.
func markExit(n *Node, name string) {
	for _, s := range n.steps {
		s.exits = s.exits || s.agent == name
		if s.kind != definition.TypeLoop {
			markExit(s, name)
		}
	}
}

func graphName(a *definition.Agent) string {
	if a.DisplayName != "" && a.DisplayName != a.Name {
		return brief.Line(a.DisplayName, 60) + " (" + brief.Line(a.Name, 60) + ")"
	}
	return brief.Line(a.Name, 60)
}

func graphAbout(a *definition.Agent) []string {
	var about []string
	if a.OutputKey != "" {
		about = append(about, "-> "+brief.Line(a.OutputKey, 60))
	}
	if a.Expression != nil && len(a.Expression.Set) > 0 {
		var keys []string
		for key := range a.Expression.Set {
			keys = append(keys, brief.Line(key, 60))
		}
		slices.Sort(keys)
		about = append(about, "-> "+strings.Join(keys, ", "))
	}
	if a.LLM == nil {
		return about
	}
	var tools []string
	for _, t := range a.LLM.Tools {
		switch {
		case t.Func != "":
			tools = append(tools, t.Func)
		case t.Agent != nil:
			tools = append(tools, t.Agent.Name)
		case t.MCP != nil:
			tools = append(tools, t.MCP.String())
		}
	}
	if tools != nil {
		about = append(about, "calls "+brief.Line(strings.Join(tools, ", "), 80))
	}
	return about
}

// label returns the lines of a node: its name, and what is drawn beside the name.
func (n *Node) label() []string {
	first := n.name
	if n.star {
		first = "★ " + first
	}
	lines := []string{first, string(n.kind)}
	for _, about := range n.about {
		lines = append(lines, strings.Replace(about, "-> ", "→ ", 1))
	}
	if n.exits {
		lines = append(lines, "may end the loop")
	}
	return lines
}

// exiters returns the agents in a loop that may end the loop.
func (n *Node) exiters() []*Node {
	var all []*Node
	for _, s := range n.steps {
		if s.exits {
			all = append(all, s)
		}
		if s.kind != definition.TypeLoop {
			all = append(all, s.exiters()...)
		}
	}
	return all
}

// firstIn and lastIn return the first and the last agent in a box; for a node that is not a box, the node itself.
func (n *Node) firstIn() *Node {
	for len(n.steps) > 0 {
		n = n.steps[0]
	}
	return n
}

func (n *Node) lastIn() *Node {
	for len(n.steps) > 0 {
		n = n.steps[len(n.steps)-1]
	}
	return n
}
