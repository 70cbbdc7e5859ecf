// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// graph is a workflow of nodes and edges. A definition has sequences, parallel agents and loops instead. The parts of
// the graph that these express exactly are converted, and each remaining edge is reported.
type graph struct {
	*importer
	of    *agent
	start *vertex
	all   []*vertex
	// joins says that only a vertex of kind joining waits for all edges that lead to it.
	joins bool
	// limit is the number of agent runs after which the product ends the workflow, or 0 for no limit. begun is the
	// number of agent runs before a loop.
	limit int
	begun int
	seen  map[*vertex]bool
	made  []*agent  // agents that correspond to no node
	open  []*vertex // the heads of the cycles around the current vertex
	told  []*vertex // reported vertices that would run more than once
}

// vertex is a node of a graph.
type vertex struct {
	id    string
	title string // the name for people
	at    place
	kind  vertexKind
	step  func() *agent // makes the agent; nil if the reason was reported
	wait  float64
	out   []*edge
	in    []*edge
	// outcomes returns, for a condition over an agent's answer, the possible outcomes in the order in which they are
	// tested. ok is false if it has reported why they are unknown.
	outcomes func(said *agent) (list []outcome, ok bool)
}

// outcome is the edge that the workflow follows when a condition is met. Without an edge the workflow ends. The last
// outcome has no condition.
type outcome struct {
	edge *edge
	met  func() string
}

type vertexKind int

const (
	stepping  vertexKind = iota // an agent
	starting                    // the start, which runs nothing
	waiting                     // for some time
	deciding                    // which edge to follow
	joining                     // waits for all edges that lead to it
	leftAside                   // already reported
)

// edge leads from one vertex to another, always or only for a route.
type edge struct {
	from, to *vertex
	at       place
	route    string // the product's name for the condition; empty if there is none
}

func (e *edge) String() string {
	s := e.from.title + " → " + e.to.title
	if e.route != "" {
		s += " (" + e.route + ")"
	}
	return s
}

// connect adds an edge.
func connect(e *edge) {
	e.from.out, e.to.in = append(e.from.out, e), append(e.to.in, e)
}

// cycle is a cycle that is being converted to a loop.
type cycle struct {
	head *vertex
	exit *vertex // the vertex after the loop; nil if the workflow ends there
	left bool    // an exit was found
	stop func() string
	said *agent // the last agent that has answered
}

// Limits of a graph. They are far above what a person draws.
const (
	maxVertices   = 300
	maxConditions = 30 // in one vertex
)

// carry converts the whole graph to steps.
func (g *graph) carry() {
	if len(g.all) > maxVertices {
		g.fail(g.of.place("workflow"), g.of.was, "workflow", "the workflow has more than %d nodes", maxVertices)
		return
	}
	g.seen = make(map[*vertex]bool)
	before := g.report.Count(Failed)
	steps := g.chain(g.start, nil, nil)
	for _, v := range g.all {
		if !g.seen[v] && g.report.Count(Failed) == before {
			g.dropped(v.at, g.of.was, "node "+v.title, "", "no edge leads to it, so it never runs")
		}
	}
	if g.report.Count(Failed) > before {
		return
	}
	if len(steps) == 0 {
		g.fail(g.of.place("workflow"), g.of.was, "workflow", "the workflow has no agents")
		return
	}
	if len(steps) == 1 && slices.Contains(g.made, steps[0]) && !steps[0].waits() {
		only := steps[0]
		g.of.typ, g.of.subs, g.of.extra = only.typ, only.subs, append(g.of.extra, only.extra...)
		return
	}
	g.of.typ, g.of.subs = definition.TypeSequential, steps
}

// chain converts the vertices from v up to until, without until, to steps. In a cycle it stops at the head of the cycle.
func (g *graph) chain(v, until *vertex, in *cycle) []*agent {
	var steps []*agent
	wait := 0.0
	var delayed *vertex
	add := func(a *agent) {
		if wait > 0 {
			g.delay(a, delayed, "delay_before", wait)
			wait = 0
		}
		steps = append(steps, a)
		if in != nil {
			in.said = a
		}
	}
	for first := true; v != nil && v != until; first = false {
		if slices.Contains(g.open, v) && !first {
			if in == nil || v != in.head {
				g.fail(v.at, g.of.was, "workflow", "a path leads back to the node %s out of the middle of a branch or another cycle",
					v.title).Advice = "let the paths meet in one node, and lead back from there"
			}
			break
		}
		if len(g.backTo(v)) > 0 && !slices.Contains(g.open, v) {
			a, next := g.loop(v)
			if a == nil {
				return nil
			}
			add(a)
			v = next
			continue
		}
		if g.seen[v] {
			g.fail(v.at, g.of.was, "workflow", "several paths lead to the node %s and do not begin at one node: "+
				"sequences, parallel agents and loops cannot express that", v.title).Advice =
				"write a sequence: a parallel agent with all that must run before it, and then " + v.title
			return nil
		}
		g.seen[v] = true
		next, ok := g.step(v, in, add, func(s float64) { wait, delayed = wait+s, v })
		if !ok {
			return nil
		}
		v = next
	}
	if wait > 0 {
		g.trailing(steps, delayed, wait)
	}
	return steps
}

// step converts one vertex and returns the next one.
func (g *graph) step(v *vertex, in *cycle, add func(*agent), sleep func(float64)) (*vertex, bool) {
	switch v.kind {
	case stepping:
		a := v.step()
		if a == nil {
			return nil, false
		}
		if a.typ != definition.TypeTemplate {
			g.begun++
		}
		add(a)
	case waiting:
		sleep(v.wait)
	case deciding:
		return g.decision(v, in, add)
	}
	switch {
	case len(v.out) == 0:
		return nil, true
	case slices.ContainsFunc(v.out, func(e *edge) bool { return e.route != "" }):
		g.routed(v)
		return nil, false
	case len(v.out) > 1:
		return g.fork(v, in, add)
	}
	to := v.out[0].to
	if to.kind != joining && g.joins && len(to.in) > 1 && len(g.backTo(to)) == 0 && !g.seen[to] {
		g.twice(to)
		return nil, false
	}
	return to, true
}

// delay sets a delay of an agent.
func (g *graph) delay(a *agent, v *vertex, key string, seconds float64) {
	text := fmt.Sprintf("%gs", seconds)
	a.set(key, text)
	g.changed(v.at, g.of.was, "node "+v.title, key, "%s waits %s", a.was, text)
}

// waits reports whether the agent has a delay. Only a step can have one.
func (a *agent) waits() bool {
	return slices.ContainsFunc(a.extra, func(f field) bool { return strings.HasPrefix(f.key, "delay_") })
}

func (g *graph) trailing(steps []*agent, v *vertex, seconds float64) {
	if len(steps) == 0 {
		g.dropped(v.at, g.of.was, "node "+v.title, "", "no agent comes before or after it")
		return
	}
	g.delay(steps[len(steps)-1], v, "delay_after", seconds)
}

// backTo returns the edges that lead back to a vertex from vertices that it leads to.
func (g *graph) backTo(v *vertex) []*edge {
	if len(v.in) == 0 {
		return nil
	}
	from := reach(v, g.open)
	return slices.DeleteFunc(slices.Clone(v.in), func(e *edge) bool { return !from[e.from] })
}

// reaches reports whether a path leads from one vertex to another.
func reaches(from, to *vertex) bool { return reach(from, nil)[to] }

// reach returns a vertex and all vertices that its paths lead to.
func reach(from *vertex, without []*vertex) map[*vertex]bool {
	seen := make(map[*vertex]bool)
	var walk func(*vertex)
	walk = func(v *vertex) {
		if seen[v] || slices.Contains(without, v) {
			return
		}
		seen[v] = true
		for _, e := range v.out {
			walk(e.to)
		}
	}
	walk(from)
	return seen
}

// fork converts several unconditional edges to a parallel agent.
func (g *graph) fork(v *vertex, in *cycle, add func(*agent)) (*vertex, bool) {
	join := g.meeting(v)
	p := g.make("parallel", definition.TypeParallel, v)
	for _, e := range v.out {
		if in != nil && e.to == in.head || in != nil && join == nil {
			g.fail(e.at, g.of.was, "workflow", "the edge %s is one of several from its node that lead back without "+
				"meeting first", e).Advice =
				"let them meet in one node, and lead back from there"
			return nil, false
		}
		branch := g.chain(e.to, join, nil)
		switch {
		case len(branch) == 1:
			p.subs = append(p.subs, branch[0])
		case len(branch) > 1:
			s := g.make("branch", definition.TypeSequential, e.to)
			s.subs = branch
			p.subs = append(p.subs, s)
		}
	}
	switch {
	case len(p.subs) == 0:
		return join, true
	case g.joins && join != nil && join.kind != joining:
		g.twice(join)
		return nil, false
	case len(p.subs) == 1:
		add(p.subs[0])
	default:
		add(p)
	}
	return join, true
}

// twice reports a vertex that would run once for each edge that leads to it.
func (g *graph) twice(v *vertex) {
	var from []string
	for _, e := range v.in {
		from = append(from, e.from.title)
	}
	if slices.Contains(g.told, v) {
		return
	}
	g.told = append(g.told, v)
	g.fail(v.in[len(v.in)-1].at, g.of.was, "edges", "%s runs once for each edge that leads to it, from %s: only a "+
		"JoinNode waits for all of them, as a parallel agent does here", v.title, strings.Join(from, " and ")).Advice =
		"put a node of agent_class JoinNode before it if it must run once"
}

// meeting returns the first vertex that is on all paths from a vertex, or nil if there is none.
func (g *graph) meeting(v *vertex) *vertex {
	led := make(map[*vertex]int)
	for _, e := range v.out {
		for m := range reach(e.to, g.open) {
			led[m]++
		}
	}
	var common []*vertex
	for _, m := range g.all {
		if !g.seen[m] && led[m] == len(v.out) {
			common = append(common, m)
		}
	}
	for _, m := range common {
		after := reach(m, g.open)
		if !slices.ContainsFunc(common, func(o *vertex) bool { return !after[o] }) {
			return m
		}
	}
	return nil
}

// make returns an agent for the structure of the graph, which corresponds to no node.
func (g *graph) make(what string, t definition.Type, v *vertex) *agent {
	a := &agent{at: v.at, typ: t, name: cleanName(g.of.name) + "_" + what}
	a.was = a.name
	g.made = append(g.made, a)
	return a
}

// routed reports edges whose choice depends on code.
func (g *graph) routed(v *vertex) {
	for _, e := range v.out {
		if e.route == "" {
			continue
		}
		it := g.fail(e.at, g.of.was, "edges", "the edge %s is taken if %s decides so, which is code and is not read", e,
			v.title)
		switch {
		case !slices.ContainsFunc(v.out, func(o *edge) bool { return reaches(o.to, v) }):
			it.Advice = "write the path that is taken as a SequentialAgent; or give one LlmAgent both agents as " +
				"AgentTool, and let it decide"
		case !reaches(e.to, v):
			it.Advice = "write the cycle as a LoopAgent, and a SequentialAgent around it with " + e.to.title +
				" after it"
		default:
			var body []string
			for _, b := range g.all {
				if b != v && b.kind == stepping && reaches(e.to, b) && reaches(b, v) {
					body = append(body, b.title)
				}
			}
			it.Advice = "write the cycle as a LoopAgent with sub_agents " + strings.Join(body, ", ") +
				", and give the agent that decides tools: [{name: exit_loop}]; " +
				"in a definition it is a loop with stop_when: an expression over the text of an agent"
		}
	}
}
