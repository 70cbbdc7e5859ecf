// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// The keys of a Workflow and of a node, and those that have no equivalent in a definition.
var (
	adkFlow     = []string{"agent_class", "name", "description", "edges", "max_concurrency"}
	adkFlowGone = []string{
		"rerun_on_resume", "wait_for_output", "retry_config", "timeout", "auth_config", "state_schema", "input_schema", "output_schema", "graph",
		"before_agent_callbacks", "after_agent_callbacks", "sub_agents",
	}
	adkNodes = []string{"JoinNode", "FunctionNode", "ToolNode"}
)

// flow is the state of reading a Workflow.
type flow struct {
	*adkReader
	graph *graph
	a     *agent
	known map[string]*vertex // by the name that edges use
}

// workflow reads a Workflow, whose edges connect files, functions and inline agents.
func (r *adkReader) workflow(a *agent, v value) *agent {
	f := &flow{adkReader: r, a: a, known: make(map[string]*vertex)}
	f.graph = &graph{importer: r.importer, of: a, joins: true}
	a.came("workflow", v.get("edges"))
	before := r.report.Count(Failed)
	for _, p := range v.pairs() {
		v.ask(p.key)
		f.field(p)
	}
	edges := v.get("edges")
	if len(edges.items()) == 0 {
		r.fail(a.place("workflow"), a.was, "edges", "a Workflow needs edges, as [START, writer.yaml, critic.yaml]")
		return a
	}
	f.graph.start = &vertex{id: "START", title: "START", at: edges.at(), kind: starting}
	f.known["START"], f.graph.all = f.graph.start, []*vertex{f.graph.start}
	for _, item := range edges.items() {
		f.edges(item)
	}
	f.check()
	if r.report.Count(Failed) > before {
		return a
	}
	f.graph.carry()
	if r.report.Count(Failed) == before {
		r.add(Mapped, edges.at(), a.was, "agent_class Workflow, edges", "type "+string(a.typ), "")
		f.concurrency(v.get("max_concurrency"))
	}
	return a
}

// field reads a key of a Workflow.
func (f *flow) field(p pair) {
	switch {
	case p.value.isNull():
	case p.key == "description":
		f.carryDescription(f.a, p)
	case slices.Contains(adkFlow, p.key):
	case slices.Contains(adkFlowGone, p.key):
		p.value.all()
		f.dropped(p.at, f.a.was, p.key, "", "it concerns the graph or code, and a definition has neither")
	default:
		it := f.fail(p.at, f.a.was, p.key, "unknown field %q of a Workflow", p.key)
		it.Advice = meant(p.key, slices.Concat(adkFlow, adkFlowGone))
	}
}

// concurrency limits how many agents run at the same time.
func (f *flow) concurrency(v value) {
	n, ok := v.whole()
	if v.isNull() || ok && n == 0 {
		return
	}
	if !ok {
		f.fail(v.at(), f.a.was, "max_concurrency", "max_concurrency must be a whole number, got %s", v.what())
		return
	}
	bounded := 0
	f.a.walk(func(a *agent) {
		if a.typ == definition.TypeParallel && (a == f.a || slices.Contains(f.graph.made, a)) {
			a.set("max_concurrency", n, v)
			bounded++
		}
	})
	if bounded == 0 {
		f.dropped(v.at(), f.a.was, "max_concurrency", "", "no two agents run at once")
		return
	}
	f.mapped(v.at(), f.a.was, "max_concurrency", "")
}

// edges reads one item of edges, which is a chain or {from_node, to_node, route}.
func (f *flow) edges(item value) {
	if item.isMap() && !item.get("from_node").isNull() && !item.get("to_node").isNull() {
		if !f.only(f.a, item, "edges", "an edge", "from_node", "to_node", "route") {
			return
		}
		from, to := f.node(item.get("from_node")), f.node(item.get("to_node"))
		if from != nil && to != nil {
			f.connect(from, to, item, item.get("route"))
		}
		return
	}
	if !item.isList() || len(item.items()) < 2 {
		f.fail(item.at(), f.a.was, "edges", "an edge is a list of two or more nodes, as [START, writer.yaml], or "+
			"{from_node, to_node, route}, got %s", item.what())
		return
	}
	var last []*vertex
	for n, element := range item.items() {
		next := f.element(last, element, n > 0)
		if next == nil {
			return
		}
		last = next
	}
}

// element reads an element of a chain, which is a node, several parallel nodes, or a map of routes. It connects the
// nodes before with the element, and returns the element's nodes.
func (f *flow) element(before []*vertex, v value, connected bool) []*vertex {
	type end struct {
		at, node, route value
	}
	var ends []end
	switch {
	case v.isList():
		for _, item := range v.items() {
			ends = append(ends, end{at: item, node: item})
		}
	case v.isMap() && !f.isNode(v):
		for _, p := range v.pairs() {
			route := value{Node: node(p.key), file: v.file}
			targets := []value{p.value}
			if p.value.isList() {
				targets = p.value.items()
			}
			for _, t := range targets {
				ends = append(ends, end{at: t, node: t, route: route})
			}
		}
	default:
		ends = []end{{at: v, node: v}}
	}
	var list []*vertex
	for _, e := range ends {
		to := f.node(e.node)
		if to == nil {
			return nil
		}
		list = append(list, to)
		for _, from := range before {
			if connected {
				f.connect(from, to, e.at, e.route)
			}
		}
	}
	if len(list) == 0 {
		f.fail(v.at(), f.a.was, "edges", "there is no node in %s", v.what())
		return nil
	}
	return list
}

func (f *flow) connect(from, to *vertex, at, route value) {
	text := route.text()
	if route.isList() {
		text = strings.Join(route.texts(), " or ")
	}
	if text != "" {
		text = "route " + text
	}
	for _, e := range from.out {
		if e.to == to {
			f.fail(at.at(), f.a.was, "edges", "the edge %s is given twice", e)
			return
		}
	}
	connect(&edge{from: from, to: to, at: at.at(), route: text})
}

// isNode reports whether a map is a node and not a map of routes.
func (f *flow) isNode(v value) bool {
	return slices.ContainsFunc([]string{"agent_class", "config_path", "func_code", "code", "instruction"}, func(key string) bool {
		return !v.get(key).isNull() && (key != "code" || len(v.pairs()) == 1)
	})
}

// node returns the node that a value names. It returns nil if it has reported why there is none.
func (f *flow) node(v value) *vertex {
	name := v.text()
	if v.isMap() {
		switch name = v.get("config_path").text(); {
		case name != "":
		case !v.get("code").isNull():
			name = v.get("code").text()
		default:
			return f.inline(v, v.get("name").text())
		}
	}
	if x := f.known[name]; x != nil && name != "" {
		return x
	}
	switch {
	case strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml"):
		return f.fromFile(v, name)
	case strings.Contains(name, "."):
		return f.function(v, name)
	}
	names := slices.Sorted(maps.Keys(f.known))
	f.fail(v.at(), f.a.was, "edges", "there is no node %s before this edge", v.what()).Advice =
		cmp.Or(f.near(name, names), "a node is a file such as writer.yaml, a function such as .agent.check, or named "+
			"in an edge above")
	return nil
}

func (f *flow) add(x *vertex, names ...string) *vertex {
	f.graph.all = append(f.graph.all, x)
	for _, n := range names {
		if n != "" && f.known[n] == nil {
			f.known[n] = x
		}
	}
	return x
}

// fromFile returns a node from a file.
func (f *flow) fromFile(v value, name string) *vertex {
	at := v
	if v.isMap() {
		at = v.get("config_path")
	}
	inner, done, ok := f.inFile(f.a, at, name)
	if !ok {
		return nil
	}
	defer done()
	x := f.inline(inner, inner.get("name").text())
	if x != nil {
		f.known[name] = x
		if x.kind == stepping {
			x.step = func() *agent { return f.seesInput(x, f.file(f.a, at, name), inner) }
		}
	}
	return x
}

// inline returns a node that is written inline.
func (f *flow) inline(v value, name string) *vertex {
	x := &vertex{id: name, title: cmp.Or(name, "a node without a name"), at: v.at(), kind: stepping}
	switch className(v) {
	case "JoinNode":
		x.kind = joining
	case "FunctionNode", "ToolNode":
		code := cmp.Or(v.get("func_code").text(), cmp.Or(v.get("tool_code").text(), name))
		return f.add(f.code(x, v, code), name)
	default:
		x.step = func() *agent { return f.seesInput(x, f.agent(v), v) }
	}
	return f.add(x, name)
}

// seesInput gives an agent that calls a model the context of a node, which is the answer of the node before it.
func (f *flow) seesInput(x *vertex, a *agent, v value) *agent {
	if a == nil || a.typ != definition.TypeLLM || !v.get("include_contents").isNull() {
		return a
	}
	a.extra = slices.DeleteFunc(a.extra, func(e field) bool { return e.key == "context" })
	if slices.ContainsFunc(x.in, func(e *edge) bool { return e.from.kind == joining }) {
		a.set("context", "full")
		f.changed(a.place("name"), a.was, "include_contents", "context: full", "ADK gives it a map of what the "+
			"branches said; here it sees the conversation").Advice =
			"give the branches an output_key each, and read them in its instruction"
		return a
	}
	a.set("context", "none")
	f.importer.add(Mapped, a.place("name"), a.was, "node", "context: none", "it sees what the one before it said")
	return a
}

// function returns a node for a function.
func (f *flow) function(v value, name string) *vertex {
	last := name[strings.LastIndexByte(name, '.')+1:]
	x := &vertex{id: last, title: name, at: v.at(), kind: stepping}
	return f.add(f.code(x, v, name), name, last)
}

// code adds a step for a function, which a Go program can provide.
func (f *flow) code(x *vertex, v value, name string) *vertex {
	x.title = name
	x.step = func() *agent {
		last := asciiName(cleanName(name[strings.LastIndexByte(name, '.')+1:]))
		a := &agent{at: x.at, typ: definition.TypeFunc, name: cmp.Or(v.get("name").text(), last)}
		a.was = a.name
		a.set("func", last, v)
		f.changed(x.at, f.a.was, "node "+name, "func "+last, "code is not read: a Go program has to give an agent of "+
			"that name; refrain run cannot").Advice =
			"or write an agent of type expression, command or http in its place"
		return a
	}
	return x
}

// check reports what ADK rejects in a graph.
func (f *flow) check() {
	g := f.graph
	for _, e := range g.start.in {
		f.fail(e.at, f.a.was, "edges", "the edge %s leads back to START, which nothing leads to", e)
	}
	if len(g.start.out) == 0 {
		f.fail(g.start.at, f.a.was, "edges", "no edge begins at START")
		return
	}
	endless := false
	for _, x := range g.all {
		switch {
		case x == g.start:
		case !reaches(g.start, x):
			f.fail(x.at, f.a.was, "edges", "%s cannot be reached from START", x.title)
		case x.kind == joining && len(x.in) < 2:
			f.changed(x.at, f.a.was, "JoinNode "+strconv.Quote(x.title), "",
				"one edge leads to it, so there is nothing to wait for")
		}
		for _, e := range x.out {
			if e.route == "" && !endless && backWithoutRoute(e) {
				endless = true
				f.fail(e.at, f.a.was, "edges", "the edge %s makes a cycle that nothing ends: every edge of it is "+
					"always taken, which ADK refuses as well", e).Advice =
					"write a LoopAgent with max_iterations, or with an agent that has the tool exit_loop"
			}
		}
	}
}

// backWithoutRoute reports whether a path of unconditional edges leads from the end of an edge to its beginning.
func backWithoutRoute(e *edge) bool {
	seen := make(map[*vertex]bool)
	var walk func(*vertex) bool
	walk = func(v *vertex) bool {
		if v == e.from {
			return true
		}
		if seen[v] {
			return false
		}
		seen[v] = true
		return slices.ContainsFunc(v.out, func(o *edge) bool { return o.route == "" && walk(o.to) })
	}
	return walk(e.to)
}
