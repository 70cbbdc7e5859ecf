// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// graph is a workflow of nodes and edges, which a definition has not: there are
// sequences, agents at the same time, and loops. What of it these can say
// exactly is made of them, and the rest is told edge by edge.
type graph struct {
	*importer
	of    *agent
	start *vertex
	all   []*vertex
	// joins says that only a vertex of kind joining waits for all who lead to it.
	joins bool
	// limit is how many agents run before the product ends the workflow, if it
	// does that; begun is how many do before a loop.
	limit int
	begun int
	seen  map[*vertex]bool
	made  []*agent  // agents that stand for no node
	open  []*vertex // where the cycles begin that are being made
	told  []*vertex // which run more than once
}

// vertex is a node of a graph.
type vertex struct {
	id    string
	title string // how people know it
	at    place
	kind  vertexKind
	step  func() *agent // what runs there; nil if the report says why nothing does
	wait  float64
	out   []*edge
	in    []*edge
	// outcomes are, for a condition over what an agent said, what may come of it,
	// the first that is met; ok is false if the report says why that is not known.
	outcomes func(said *agent) (list []outcome, ok bool)
}

// outcome is the edge that is taken when a condition is met; nil for none, with
// which the workflow ends. The last outcome has no condition.
type outcome struct {
	edge *edge
	met  func() string
}

type vertexKind int

const (
	stepping  vertexKind = iota // an agent
	starting                    // and nothing else
	waiting                     // some time
	deciding                    // which edge to go along
	joining                     // waits for all edges that lead to it
	leftAside                   // what was told already
)

// edge leads from one vertex to another, perhaps only for a route.
type edge struct {
	from, to *vertex
	at       place
	route    string // the product's name for when it is taken; empty if always
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

// cycle is a loop that is being made.
type cycle struct {
	head *vertex
	exit *vertex // where the way goes on, if it does
	left bool    // a way out was found
	stop func() string
	said *agent // the last that said something
}

// Limits of a graph that is worked on: what people draw is far below.
const (
	maxVertices   = 300
	maxConditions = 30 // of one vertex
)

// carry makes steps of the whole graph.
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

// chain makes steps of the vertices from one on up to another, which is not among
// them. In a cycle it goes on to where that begins again.
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

// step carries over one vertex and says which is the next.
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

// delay makes an agent wait.
func (g *graph) delay(a *agent, v *vertex, key string, seconds float64) {
	text := fmt.Sprintf("%gs", seconds)
	a.set(key, text)
	g.changed(v.at, g.of.was, "node "+v.title, key, "%s waits %s", a.was, text)
}

// waits reports whether the agent has a delay, which only a step can have.
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

// backTo are the edges that lead back to a vertex from where it has led.
func (g *graph) backTo(v *vertex) []*edge {
	if len(v.in) == 0 {
		return nil
	}
	from := reach(v, g.open)
	return slices.DeleteFunc(slices.Clone(v.in), func(e *edge) bool { return !from[e.from] })
}

// reaches reports whether a way leads from one vertex to another.
func reaches(from, to *vertex) bool { return reach(from, nil)[to] }

// reach are the vertices that ways lead to from one, and that itself.
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

// fork makes a parallel agent of several edges that are all taken.
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

// meeting is the first vertex that all ways from one lead to; nil if there is
// none.
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

// make is an agent that stands for no node, but for how they are connected.
func (g *graph) make(what string, t definition.Type, v *vertex) *agent {
	a := &agent{at: v.at, typ: t, name: cleanName(g.of.name) + "_" + what}
	a.was = a.name
	g.made = append(g.made, a)
	return a
}

// routed reports edges that code chooses between.
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
