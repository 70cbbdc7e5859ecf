// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// loop converts a cycle to a loop, and returns the vertex that follows it.
func (g *graph) loop(head *vertex) (*agent, *vertex) {
	back := g.backTo(head)
	if len(back) > 1 {
		for _, e := range back[1:] {
			g.fail(e.at, g.of.was, "workflow", "the edge %s is a second path back to %s: a loop has one end", e, head.title).Advice =
				"let both paths meet in one node, and lead back from there"
		}
		return nil, nil
	}
	if from := back[0].from; from.kind == stepping && slices.ContainsFunc(from.out,
		func(e *edge) bool { return e.route != "" }) {
		g.routed(from)
		return nil, nil
	}
	a := g.make("loop", definition.TypeLoop, head)
	a.at = back[0].at
	c := &cycle{head: head}
	before := g.report.Count(Failed)
	begun := g.begun
	g.open = append(g.open, head)
	a.subs = g.chain(head, nil, c)
	g.open = g.open[:len(g.open)-1]
	if g.report.Count(Failed) > before {
		return nil, nil
	}
	if len(a.subs) == 0 {
		g.fail(back[0].at, g.of.was, "workflow", "no agent is on the path back to %s", head.title)
		return nil, nil
	}
	for _, s := range a.subs {
		s.plainKey = true
	}
	g.bounds(a, c, back[0], begun)
	return a, c.exit
}

// bounds sets when a loop ends.
func (g *graph) bounds(a *agent, c *cycle, back *edge, begun int) {
	n := 0
	if g.limit > 0 {
		asked := 0
		for _, s := range a.subs {
			s.walk(func(s *agent) {
				if len(s.subs) == 0 && s.typ != definition.TypeTemplate && s.typ != definition.TypeExpression {
					asked++
				}
			})
		}
		n = max(1, (g.limit-begun+max(asked, 1)-1)/max(asked, 1))
		g.changed(back.at, g.of.was, "edge "+back.String(), "max_iterations",
			"Evo AI ends a workflow after %d agent runs; here the loop ends after %s, and the steps after it run",
			g.limit, brief.Count(n, "iteration"))
	}
	a.set("max_iterations", n)
	a.set("timeouts", "none")
	if c.stop != nil {
		a.set("stop_when", lazy(c.stop))
	}
	if !c.left {
		g.deny(a)
	}
}

// decision converts a condition. In a cycle the condition becomes an exit.
func (g *graph) decision(v *vertex, in *cycle, add func(*agent)) (*vertex, bool) {
	if in == nil {
		for _, e := range v.out {
			g.fail(e.at, g.of.was, "workflow", "the edge %s is taken only sometimes, and a definition has conditions "+
				"only in loops", e).Advice =
				"keep the edge that is taken, and write the other path as a definition of its own; or give a " +
					"model both agents as tools, and let it decide"
		}
		if len(v.out) == 0 {
			g.dropped(v.at, g.of.was, "node "+v.title, "", "no edge leaves it, so it decides nothing")
		}
		return nil, len(v.out) == 0
	}
	if in.said == nil {
		g.fail(v.at, g.of.was, "workflow", "the node %s decides before any agent of its cycle has answered", v.title).Advice =
			"let the edge that leads back go to the agent before it"
		return nil, false
	}
	list, ok := v.outcomes(in.said)
	if !ok {
		return nil, false
	}
	next, ok := g.ways(v, in, list)
	if !ok {
		return nil, false
	}
	expr := func() string { return g.leaves(list, in) }
	if next == nil { // the condition is the last vertex of the cycle
		in.stop = expr
		g.add(Mapped, v.at, g.of.was, "node "+v.title, "stop_when", "checked when an iteration ends")
		return nil, true
	}
	check := &agent{at: v.at, typ: definition.TypeExpression, name: cleanName(g.of.name) + "_check",
		was: cleanName(g.of.name) + "_check"}
	check.set("exit_when", lazy(expr))
	said := in.said
	add(check)
	in.said = said
	g.add(Mapped, v.at, g.of.was, "node "+v.title, "exit_when",
		"a step of its own, as it is in the middle of the cycle")
	return next, true
}

// stays reports whether an outcome leads back to the head of the cycle.
func (in *cycle) stays(o outcome) bool {
	return o.edge != nil && (o.edge.to == in.head || reaches(o.edge.to, in.head))
}

// leaves returns the expression that is true when a condition leaves the cycle.
func (g *graph) leaves(list []outcome, in *cycle) string {
	var ways, before []string
	for _, o := range list {
		if in.stays(o) {
			if o.met != nil {
				before = append(before, "!("+o.met()+")")
			}
			continue
		}
		way := slices.Clone(before)
		if o.met != nil {
			way = append(way, o.met())
		}
		if len(way) == 0 {
			way = []string{"true"}
		}
		ways = append(ways, strings.Join(way, " && "))
	}
	switch len(ways) {
	case 0:
		return "false"
	case 1:
		return ways[0]
	}
	return "(" + strings.Join(ways, ") || (") + ")"
}

// ways checks that a condition in a cycle leads to one node in the cycle, and to one outside it or to none.
func (g *graph) ways(v *vertex, in *cycle, list []outcome) (next *vertex, ok bool) {
	stays := false
	for _, o := range list {
		switch to := target(o); {
		case in.stays(o) && stays && to != next:
			g.fail(o.edge.at, g.of.was, "workflow", "the edge %s is a branch in a cycle: the steps of a loop run one "+
				"after the other, all of them", o.edge).Advice =
				"let one agent do both, and say in its instructions which to do when"
			return nil, false
		case in.stays(o):
			next, stays = to, true
		case in.left && to != in.exit:
			at, what := v.at, "the node "+v.title+" ends the workflow"
			if o.edge != nil {
				at, what = o.edge.at, "the edge "+o.edge.String()+" leaves the cycle for another node"
			}
			other := "another path ends the workflow"
			if in.exit != nil {
				other = "another path continues to " + in.exit.title
			}
			g.fail(at, g.of.was, "workflow", "%s, and %s: a loop has one next step", what, other).Advice =
				"let all exits lead to one agent, and say in its instructions what to do in each case"
			return nil, false
		default:
			in.exit, in.left = to, true
		}
	}
	if !stays {
		g.fail(v.at, g.of.was, "workflow", "the node %s does not lead back into the cycle that it is in", v.title)
		return nil, false
	}
	if next == in.head {
		next = nil
	}
	return next, true
}

func target(o outcome) *vertex {
	if o.edge == nil {
		return nil
	}
	return o.edge.to
}

// lazy writes a text after all keys have their final names.
type lazy func() string

// stateKey returns the expression for the output key of an agent.
func stateKey(a *agent) string {
	if plainName().MatchString(a.outputKey) {
		return "state." + a.outputKey
	}
	return "state[" + strconv.Quote(a.outputKey) + "]"
}
