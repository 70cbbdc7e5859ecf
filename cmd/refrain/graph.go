// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/cmd/refrain/internal/deffile"
	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

// graphFormats are the ways to draw a definition.
var graphFormats = map[string]func(io.Writer, *graphNode) error{
	"ascii": graphASCII, "mermaid": graphMermaid, "dot": graphDot,
}

func newGraph(e *term.Env) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "graph FILE",
		Short: "Draw a definition as a graph",
		Long: `Draw the structure of a definition. A loop is a box with an arrow back to its first
step; steps stand in the order in which they run. The graph shows how each loop ends and
who may end it, which state key each agent writes, and with a star the finalizer, which
runs once after its loop.

Files of other products are drawn as refrain would run them.`,
		Example: `  refrain graph loop.yaml
  refrain graph loop.yaml --format mermaid >loop.mmd
  refrain graph loop.yaml --format dot | dot -Tsvg >loop.svg`,
		Args: term.Args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			draw, ok := graphFormats[format]
			if !ok {
				near := expr.Nearest(format, []string{"ascii", "mermaid", "dot"})
				if near != "" {
					return fmt.Errorf("--format %q: did you mean %s?", format, near)
				}
				return fmt.Errorf("--format %q: use ascii, mermaid or dot", format)
			}
			def, err := deffile.Load(e, args[0])
			if err != nil {
				return term.UsageError(err)
			}
			return draw(e.Stdout, graphOf(def.Root))
		},
	}
	cmd.Flags().StringVar(&format, "format", "ascii", "ascii, mermaid or dot")
	return cmd
}

// graphNode is an agent as it is drawn. All texts are on one line and without
// control characters; what else they need depends on the format.
type graphNode struct {
	id    string
	agent string // as the file has it
	name  string
	kind  definition.Type
	// about is what is said of it beside the name: what it writes, its tools.
	about []string
	// steps run in this order, or at the same time if the kind is parallel. Those
	// of a loop are without its finalizer, which is nil if there is none.
	steps     []*graphNode
	finalizer *graphNode
	// exits reports that the agent may end the nearest loop around it, and star
	// that it is a finalizer.
	exits, star bool
	// stops are the ways in which a loop ends, but for those of its steps.
	stops []string
}

// graphOf makes the nodes of an agent and all in it. Ids are numbers in the order
// of the file: nobody's names are in them.
func graphOf(root *definition.Agent) *graphNode {
	ids := 0
	var walk func(a *definition.Agent) *graphNode
	walk = func(a *definition.Agent) *graphNode {
		n := &graphNode{id: fmt.Sprintf("n%d", ids), agent: a.Name, name: graphName(a), kind: a.Type, about: graphAbout(a)}
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
			who, _, found := strings.Cut(way.Text, ": ")
			if way.Reason == loop.ReasonExit && found {
				markExit(n, who)
				continue
			}
			n.stops = append(n.stops, term.OneLine(way.Text, 80))
		}
		return n
	}
	return walk(root)
}

// inOrder are the sub-agents as they run.
func inOrder(a *definition.Agent) []*definition.Agent {
	if a.Loop == nil || len(a.Loop.Order) == 0 {
		return a.SubAgents
	}
	subs := slices.Clone(a.SubAgents)
	place := func(s *definition.Agent) int { return slices.Index(a.Loop.Order, s.Name) }
	slices.SortStableFunc(subs, func(x, y *definition.Agent) int { return place(x) - place(y) })
	return subs
}

// markExit marks the agent of a name, anywhere in a loop but not in one inside it.
func markExit(n *graphNode, name string) {
	for _, s := range n.steps {
		s.exits = s.exits || s.agent == name
		if s.kind != definition.TypeLoop {
			markExit(s, name)
		}
	}
}

func graphName(a *definition.Agent) string {
	if a.DisplayName != "" && a.DisplayName != a.Name {
		return term.OneLine(a.DisplayName, 60) + " (" + term.OneLine(a.Name, 60) + ")"
	}
	return term.OneLine(a.Name, 60)
}

func graphAbout(a *definition.Agent) []string {
	var about []string
	if a.OutputKey != "" {
		about = append(about, "-> "+term.OneLine(a.OutputKey, 60))
	}
	if a.Expression != nil && len(a.Expression.Set) > 0 {
		var keys []string
		for key := range a.Expression.Set {
			keys = append(keys, term.OneLine(key, 60))
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
		about = append(about, "calls "+term.OneLine(strings.Join(tools, ", "), 80))
	}
	return about
}

// label is the lines of a node: what it is, and what is said of it.
func (n *graphNode) label() []string {
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

// exiters are the agents in a loop that may end it.
func (n *graphNode) exiters() []*graphNode {
	var all []*graphNode
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

// firstIn and lastIn are the agents with which a box begins and ends; of one that
// is no box, itself.
func (n *graphNode) firstIn() *graphNode {
	for len(n.steps) > 0 {
		n = n.steps[0]
	}
	return n
}

func (n *graphNode) lastIn() *graphNode {
	for len(n.steps) > 0 {
		n = n.steps[len(n.steps)-1]
	}
	return n
}
