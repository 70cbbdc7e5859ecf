// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// evoLimit is the number of agent runs after which Evo AI ends a workflow.
const evoLimit = 10

var evoNodes = []string{"start-node", "agent-node", "condition-node", "message-node", "delay-node", "end-node"}

// graph reads a workflow of nodes and edges.
func (r *evoReader) graph(a *agent, v value) {
	g := &graph{importer: r.importer, of: a, limit: evoLimit}
	byID := make(map[string]*vertex)
	for _, n := range v.get("nodes").items() {
		x := r.vertex(a, n)
		if x == nil {
			return
		}
		if byID[x.id] != nil {
			r.fail(n.at(), a.was, "workflow", "two nodes of the workflow have the id %q", x.id)
			return
		}
		byID[x.id], g.all = x, append(g.all, x)
		if g.start == nil && x.kind == starting {
			g.start = x
		}
	}
	if len(g.all) == 0 {
		r.fail(v.at(), a.was, "workflow", "the workflow has no nodes")
		return
	}
	if g.start == nil {
		g.start = g.all[0]
		r.changed(g.start.at, a.was, "workflow", "", "it has no start-node, so it begins with its first node, as "+
			"in Evo AI")
	}
	for _, e := range v.get("edges").items() {
		if !r.edge(a, byID, e) {
			return
		}
	}
	for _, x := range g.all {
		r.several(a, x)
	}
	g.carry()
	if len(a.subs) > 0 {
		r.add(Mapped, v.at(), a.was, "workflow", string(a.typ), "")
	}
	if g.begun >= evoLimit {
		r.changed(v.at(), a.was, "workflow", "", "Evo AI ends a workflow after %d agent runs; here all of them run",
			evoLimit)
	}
}

// after adds the agents that a workflow has in addition to its graph. They run after the graph.
func (r *evoReader) after(a *agent, v value) {
	subs := evoField(v, "sub_agents")
	if subs.empty() || len(a.subs) == 0 {
		return
	}
	if a.typ != definition.TypeSequential {
		inner := &agent{at: a.at, name: a.name + "_graph", was: a.was, typ: a.typ, subs: a.subs, extra: a.extra}
		a.typ, a.subs, a.extra = definition.TypeSequential, []*agent{inner}, nil
	}
	r.subAgents(a, subs)
	r.changed(subs.at(), a.was, "sub_agents", "", "they run one after the other after the workflow, as in Evo AI")
}

// vertex reads a node. It returns nil if it has reported why the node is left out.
func (r *evoReader) vertex(a *agent, n value) *vertex {
	data := n.get("data")
	x := &vertex{id: n.get("id").text(), at: n.at(), kind: leftAside}
	x.title = strconv.Quote(x.id)
	if label := data.get("label").text(); label != "" && label != x.id {
		x.title += " (" + label + ")"
	}
	if x.id == "" {
		r.fail(n.at(), a.was, "workflow", "a node of the workflow needs an id")
		return nil
	}
	switch kind := n.get("type").text(); strings.TrimSuffix(kind, "-node") {
	case "start":
		x.kind = starting
	case "end":
	case "agent":
		x.kind, x.step = stepping, func() *agent { return r.graphAgent(a, n) }
	case "message":
		x.kind, x.step = stepping, func() *agent { return r.message(a, n) }
	case "delay":
		x.kind = waiting
		x.wait = r.waits(a, n)
	case "condition":
		x.kind = deciding
		x.outcomes = func(said *agent) ([]outcome, bool) { return r.outcomes(a, n, x, said) }
	default:
		r.fail(n.get("type").at(), a.was, "workflow", "there is no node type %q", kind).Advice = meant(kind,
			evoNodes)
		return nil
	}
	return x
}

// graphAgent returns the agent of a node.
func (r *evoReader) graphAgent(a *agent, n value) *agent {
	ref := n.get("data").get("agent")
	if ref.isMap() && ref.get("type").isNull() {
		ref = ref.get("id")
	}
	if ref.isNull() {
		ref = n.get("data").get("agent_id")
	}
	if ref.empty() {
		r.fail(n.at(), a.was, "workflow", "the node %q names no agent", n.get("id").text())
		return nil
	}
	return r.ref(a, ref)
}

// message returns an agent that writes the text of a node.
func (r *evoReader) message(a *agent, n value) *agent {
	data := n.get("data")
	said := data.get("message")
	if said.isMap() {
		if kind := said.get("type").text(); kind != "" && kind != "text" {
			r.dropped(said.get("type").at(), a.was, "message type "+kind, "", "an agent of type template says text")
		}
		said = said.get("content")
	}
	sub := &agent{at: n.at(), typ: definition.TypeTemplate, name: cmp.Or(data.get("label").text(), a.name+"_message")}
	sub.was = sub.name
	sub.extra = append(sub.extra, field{key: "text", value: said.text(), filled: true})
	sub.came("text", said)
	return sub
}

// waits returns the waiting time of a node, in seconds.
func (r *evoReader) waits(a *agent, n value) float64 {
	d := n.get("data").get("delay")
	seconds, ok := d.get("value").number()
	unit := map[string]float64{"": 1, "seconds": 1, "minutes": 60, "hours": 3600}[d.get("unit").text()]
	switch {
	case unit == 0:
		r.fail(d.get("unit").at(), a.was, "delay", "a delay is in seconds, minutes or hours, got %s",
			d.get("unit").what())
	case !ok && !d.get("value").isNull():
		r.fail(d.get("value").at(), a.was, "delay", "a delay must be a number, got %s", d.get("value").what())
	case seconds <= 0:
		r.changed(n.at(), a.was, "delay", "1s", "it is not above 0; Evo AI then waits one second")
		return 1
	}
	return seconds * unit
}

// edge reads an edge and reports whether it leads from one node to another.
func (r *evoReader) edge(a *agent, byID map[string]*vertex, e value) bool {
	from, to := byID[e.get("source").text()], byID[e.get("target").text()]
	for _, end := range []struct {
		key string
		v   *vertex
	}{{"source", from}, {"target", to}} {
		if end.v == nil {
			r.fail(e.at(), a.was, "workflow", "the edge from %q to %q has the %s %q, which is not a node",
				e.get("source").text(), e.get("target").text(), end.key, e.get(end.key).text())
			return false
		}
	}
	route := e.get("sourceHandle").text()
	if from.kind != deciding {
		route = ""
	} else if route == "" {
		route = "default"
	}
	connect(&edge{from: from, to: to, at: e.at(), route: route})
	return true
}

// several reports what Evo AI does with several edges from one node.
func (r *evoReader) several(a *agent, x *vertex) {
	if x.kind == deciding {
		last := make(map[string]*edge)
		for _, e := range x.out {
			if before := last[e.route]; before != nil {
				r.dropped(before.at, a.was, "edge "+before.String(), "",
					"a later edge has the same handle, and Evo AI follows only that one")
				before.to.in = slices.DeleteFunc(before.to.in, func(o *edge) bool { return o == before })
			}
			last[e.route] = e
		}
		x.out = slices.DeleteFunc(x.out, func(e *edge) bool { return last[e.route] != e })
		return
	}
	if len(x.out) > 1 {
		r.changed(x.at, a.was, "node "+x.title, "parallel", "several edges leave it: here all are followed at "+
			"the same time, as drawn; Evo AI follows only the last").Advice =
			"remove the other edges if you want that"
	}
}

// outcomes returns the possible outcomes of a condition node. Evo AI follows the edge of the first condition that
// holds. If none holds, it follows the edge at the bottom handle, or ends. A condition without an edge uses another one.
func (r *evoReader) outcomes(a *agent, n value, x *vertex, said *agent) ([]outcome, bool) {
	if !r.comparable(a, n, said) {
		return nil, false
	}
	along := func(handles ...string) *edge {
		for _, h := range handles {
			for _, e := range x.out {
				if e.route == h {
					return e
				}
			}
		}
		return nil
	}
	var list []outcome
	if n := len(n.get("data").get("conditions").items()); n > maxConditions {
		r.fail(x.at, a.was, "workflow", "the node %s has more than %d conditions", x.title, maxConditions)
		return nil, false
	}
	for _, c := range n.get("data").get("conditions").items() {
		met, ok := r.condition(a, c, said)
		if !ok {
			return nil, false
		}
		if met == nil {
			continue
		}
		e := along(c.get("id").text())
		if e == nil {
			e = along("default", "bottom-handle")
			if e == nil && len(x.out) > 0 {
				e = x.out[0]
			}
			r.changed(c.at(), a.was, "condition "+c.get("id").text(), "",
				"it has no edge; Evo AI then takes another one: %s", orEnd(e))
		}
		list = append(list, outcome{e, met})
	}
	return append(list, outcome{edge: along("bottom-handle")}), true
}

func orEnd(e *edge) string {
	if e == nil {
		return "the workflow ends"
	}
	return e.String()
}

// comparable reports whether the answer of an agent is a text, and gives it a state key.
func (r *evoReader) comparable(a *agent, n value, said *agent) bool {
	id := n.get("id").text()
	switch {
	case said.typ == definition.TypeParallel || said.typ == definition.TypeLoop:
		r.fail(n.at(), a.was, "workflow", "the condition %q reads the last text, but %s", id,
			map[bool]string{true: "several agents speak before it at the same time",
				false: "a cycle comes before it"}[said.typ == definition.TypeParallel]).Advice =
			"put one agent before it, and let the condition read its text"
		return false
	case slices.ContainsFunc(said.extra, func(f field) bool { return f.key == "output_schema" }):
		r.fail(n.at(), a.was, "workflow", "the condition %q reads the text of %s, which answers in JSON", id, said.was).Advice =
			"remove the output_schema; or write a definition with stop_when: state." +
				cmp.Or(said.outputKey, "KEY") + ".FIELD == …"
		return false
	case said.outputKey == "":
		said.outputKey = strings.ReplaceAll(cleanName(said.name), "-", "_") + "_output"
		r.changed(said.place("output_key"), said.was, "output_key", said.outputKey,
			"it gets one, because the condition %q reads its text", id)
	}
	return true
}

var evoNumbers = map[string]string{"greater_than": ">", "greater_than_or_equal": ">=", "less_than": "<",
	"less_than_or_equal": "<="}

var evoOperators = []string{
	"is_defined", "is_not_defined", "equals", "not_equals", "contains", "not_contains", "starts_with", "ends_with", "greater_than",
	"greater_than_or_equal", "less_than", "less_than_or_equal", "matches", "not_matches",
}

// condition returns the expression of a condition. expr is nil if the condition never holds.
func (r *evoReader) condition(a *agent, c value, said *agent) (expr func() string, ok bool) {
	data := c.get("data")
	op, want, fieldName := data.get("operator").text(), data.get("value").text(), data.get("field").text()
	switch {
	case c.get("type").text() != "previous-output":
		r.dropped(c.at(), a.was, "condition "+c.get("id").text(), "", "its type is %s, so in Evo AI it is never true",
			c.get("type").what())
		return nil, true
	case fieldName != "content":
		r.fail(c.at(), a.was, "workflow", "a condition reads %q, which belongs to Evo AI's own run",
			fieldName).Advice = "let it read content, the text of the agent before it"
		return nil, false
	case !slices.Contains(evoOperators, op):
		r.fail(data.get("operator").at(), a.was, "workflow", "there is no operator %q", op).Advice = meant(op, evoOperators)
		return nil, false
	}
	plain := strings.Replace(op, "not_", "", 1)
	not := ""
	if plain != op {
		not = "!"
	}
	if plain == "is_defined" {
		want = ""
	}
	pattern := map[string]string{"contains": regexp.QuoteMeta(want), "starts_with": "^" + regexp.QuoteMeta(want),
		"ends_with": regexp.QuoteMeta(want) + "$", "matches": want}[plain]
	switch sign := evoNumbers[op]; {
	case sign != "":
		number, isNumber := data.get("value").number()
		if want != "" && !isNumber {
			r.fail(data.get("value").at(), a.was, "workflow", "a condition compares with %s, which is not a number",
				data.get("value").what())
			return nil, false
		}
		text := strconv.FormatFloat(number, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return func() string {
			key := stateKey(said) + ".trim()"
			return key + `.matches("^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)$") && double(` + key + ") " + sign + " " + text
		}, true
	case op == "is_defined", op == "not_equals":
		return func() string { return stateKey(said) + " != " + strconv.Quote(want) }, true
	case op == "is_not_defined", op == "equals":
		return func() string { return stateKey(said) + " == " + strconv.Quote(want) }, true
	}
	if _, err := regexp.Compile("(?i)" + pattern); err != nil {
		r.fail(data.get("value").at(), a.was, "workflow", "the pattern of a condition cannot be read: %v",
			err).Advice = "RE2 has no look-ahead and no back-references"
		return nil, false
	}
	return func() string { return not + stateKey(said) + ".matches(" + strconv.Quote("(?i)"+pattern) + ")" }, true
}
