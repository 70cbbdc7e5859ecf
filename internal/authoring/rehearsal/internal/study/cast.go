// SPDX-License-Identifier: Apache-2.0

package study

import (
	"slices"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
)

// Cast is the agents of a definition, and the part that each plays.
type Cast struct {
	Def    *definition.Definition
	Agents map[string]*definition.Agent // by name
	Parent map[*definition.Agent]*definition.Agent
	tools  map[string]bool // agents that are tools or are inside of one
	Loops  []*definition.Agent
	Plans  map[string]*loop.Plan // of the loops, as the file has them
	Quiet  map[string]*loop.Plan // the same, without a score target and a stop condition

	Needs *needs
	Goals map[string]*goal // by loop

	// Over says that nobody waits for what is being studied: the search ends with what it has. Nil
	// means that it goes on to its end.
	Over func() bool
}

func (c *Cast) over() bool { return c.Over != nil && c.Over() }

func NewCast(def *definition.Definition) *Cast {
	c := &Cast{
		Def: def, Agents: make(map[string]*definition.Agent), Parent: make(map[*definition.Agent]*definition.Agent),
		tools: make(map[string]bool), Plans: make(map[string]*loop.Plan), Quiet: make(map[string]*loop.Plan),
		Goals: make(map[string]*goal),
	}
	c.add(def.Root, nil, false)
	c.Needs = readNeeds(c)
	return c
}

func (c *Cast) add(a, parent *definition.Agent, tool bool) {
	c.Agents[a.Name], c.Parent[a], c.tools[a.Name] = a, parent, tool
	if a.Type == definition.TypeLoop {
		c.Loops = append(c.Loops, a)
		c.Plans[a.Name], c.Quiet[a.Name] = a.Plan(), Silenced(a.Plan())
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

// LoopAround is the nearest loop around an agent; nil if there is none.
func (c *Cast) LoopAround(a *definition.Agent) *definition.Agent {
	for p := c.Parent[a]; p != nil; p = c.Parent[p] {
		if p.Type == definition.TypeLoop {
			return p
		}
	}
	return nil
}

// StepIn returns the step of a loop that an agent is or is inside of; nil if it is outside of the
// loop.
func (c *Cast) StepIn(a, l *definition.Agent) *definition.Agent {
	for ; a != nil; a = c.Parent[a] {
		if c.Parent[a] == l {
			return a
		}
	}
	return nil
}

// StepIndex is the index of that step in the plan of the loop.
func (c *Cast) StepIndex(a, l *definition.Agent) int {
	return slices.Index(l.SubAgents, c.StepIn(a, l))
}

// Finalizes reports whether an agent is the finalizer of a loop or is inside of it.
func (c *Cast) Finalizes(a, l *definition.Agent) bool {
	s := c.StepIn(a, l)
	return s != nil && s.OutputKey == definition.LoopOutput
}

// Steps returns the agents that act in each iteration of a loop, in the order of the file, without
// those in inner loops.
func (c *Cast) Steps(l *definition.Agent) []*definition.Agent {
	var all []*definition.Agent
	for _, a := range c.Leaves(l) {
		if c.LoopAround(a) == l && !c.Finalizes(a, l) {
			all = append(all, a)
		}
	}
	return all
}

// Leaves returns the agents in another one that have no sub-agents.
func (c *Cast) Leaves(of *definition.Agent) []*definition.Agent {
	if !of.Type.Workflow() {
		return []*definition.Agent{of}
	}
	var all []*definition.Agent
	for _, sub := range of.SubAgents {
		all = append(all, c.Leaves(sub)...)
	}
	return all
}

// MayExit reports whether an agent may end the loop around it.
func (c *Cast) MayExit(a *definition.Agent) bool {
	l := c.LoopAround(a)
	if l == nil || c.tools[a.Name] || c.Finalizes(a, l) {
		return false
	}
	for ; a != l; a = c.Parent[a] {
		if c.Plans[l.Name].MayExit(a.Name) {
			return true
		}
	}
	return false
}

// Reaches reports whether the real agent reaches outside of the process: a model, a program, a
// server or a person. The other agents run as the file says, and cannot hang.
func Reaches(a *definition.Agent) bool {
	switch a.Type {
	case definition.TypeExpression, definition.TypeTemplate, definition.TypeSequential, definition.TypeParallel,
		definition.TypeLoop:
		return false
	}
	return true
}

// Silenced returns a plan whose stop condition never holds and whose score never reaches its
// target.
func Silenced(p *loop.Plan) *loop.Plan {
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
