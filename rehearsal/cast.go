// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"slices"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
)

// cast knows the agents of a definition by the parts that they play.
type cast struct {
	def    *definition.Definition
	agents map[string]*definition.Agent // by name; tools are not among them
	parent map[*definition.Agent]*definition.Agent
	tools  map[string]bool // agents that are tools, or in one
	loops  []*definition.Agent
	plans  map[string]*loop.Plan // of the loops, as the file has them
	quiet  map[string]*loop.Plan // the same, with what they wait for silenced

	needs *needs
	goals map[string]*goal // by loop
}

func newCast(def *definition.Definition) *cast {
	c := &cast{
		def: def, agents: make(map[string]*definition.Agent), parent: make(map[*definition.Agent]*definition.Agent),
		tools: make(map[string]bool), plans: make(map[string]*loop.Plan), quiet: make(map[string]*loop.Plan), goals: make(map[string]*goal),
	}
	c.add(def.Root, nil, false)
	c.needs = readNeeds(c)
	return c
}

func (c *cast) add(a, parent *definition.Agent, tool bool) {
	c.agents[a.Name], c.parent[a], c.tools[a.Name] = a, parent, tool
	if a.Type == definition.TypeLoop {
		c.loops = append(c.loops, a)
		c.plans[a.Name], c.quiet[a.Name] = a.Plan(), silenced(a.Plan())
	}
	for _, sub := range a.SubAgents {
		c.add(sub, a, tool)
	}
	if a.LLM != nil {
		for _, t := range a.LLM.Tools {
			if t.Agent != nil {
				c.add(t.Agent, a, true)
			}
		}
	}
}

// loopAround is the nearest loop that an agent is in; nil if it is in none.
func (c *cast) loopAround(a *definition.Agent) *definition.Agent {
	for p := c.parent[a]; p != nil; p = c.parent[p] {
		if p.Type == definition.TypeLoop {
			return p
		}
	}
	return nil
}

// stepIn is the step of a loop that an agent is, or is in; nil if it is not.
func (c *cast) stepIn(a, l *definition.Agent) *definition.Agent {
	for ; a != nil; a = c.parent[a] {
		if c.parent[a] == l {
			return a
		}
	}
	return nil
}

// stepIndex is its place in the loop's plan.
func (c *cast) stepIndex(a, l *definition.Agent) int {
	return slices.Index(l.SubAgents, c.stepIn(a, l))
}

// finalizes reports whether an agent is, or is in, the step of its loop that runs
// when the loop is over.
func (c *cast) finalizes(a, l *definition.Agent) bool {
	s := c.stepIn(a, l)
	return s != nil && s.OutputKey == definition.LoopOutput
}

// steps are the agents that do something in each iteration of a loop, but for
// those in a loop inside, in the order of the file.
func (c *cast) steps(l *definition.Agent) []*definition.Agent {
	var all []*definition.Agent
	for _, a := range c.leaves(l) {
		if c.loopAround(a) == l && !c.finalizes(a, l) {
			all = append(all, a)
		}
	}
	return all
}

// leaves are the agents below another one that run no others.
func (c *cast) leaves(of *definition.Agent) []*definition.Agent {
	if !of.Type.Workflow() {
		return []*definition.Agent{of}
	}
	var all []*definition.Agent
	for _, sub := range of.SubAgents {
		all = append(all, c.leaves(sub)...)
	}
	return all
}

// mayExit reports whether an agent has permission to end the loop around it.
func (c *cast) mayExit(a *definition.Agent) bool {
	l := c.loopAround(a)
	if l == nil || c.tools[a.Name] || c.finalizes(a, l) {
		return false
	}
	for ; a != l; a = c.parent[a] {
		if c.plans[l.Name].MayExit(a.Name) {
			return true
		}
	}
	return false
}

// reaches reports whether the real agent reaches out of the process: a model, a
// program, a server, a person. Those that do not are what the file says, and
// cannot hang.
func reaches(a *definition.Agent) bool {
	switch a.Type {
	case definition.TypeExpression, definition.TypeTemplate, definition.TypeSequential, definition.TypeParallel, definition.TypeLoop:
		return false
	}
	return true
}

// silenced is a plan that does not get what it waits for: its condition never holds,
// and its score never reaches its target.
func silenced(p *loop.Plan) *loop.Plan {
	quiet := *p
	if p.StopWhen != nil {
		quiet.StopWhen = &loop.Condition{Expr: "false"}
	}
	if s := p.Score; s != nil && (s.Target != nil || s.DimensionTarget != nil) {
		own := *s
		out := 1e99
		if s.LowerIsBetter {
			out = -out
		}
		own.Target, own.DimensionTarget = &out, nil
		quiet.Score = &own
	}
	return &quiet
}
