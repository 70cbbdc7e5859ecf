// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
)

// study is of a loop whose end, or whose score, is computed by expressions from what
// stand-ins leave: they have to leave what makes it come out as it is to. It works
// out iterations with the real expressions, and looks for that.
type study struct {
	*cast
	loop     *definition.Agent
	script   []scripted.Answer
	begin    map[string]any // the state before the loop
	programs map[string]*expr.Program
	parts    map[string]*loop.Condition // of expressions
	free     []*need                    // what can be chosen
	owner    map[*need]*definition.Agent
	choices  map[*need][]any
	known    map[aim]picks // what has led there once, whatever the score

	computed  bool // the score is, and stand-ins can change it
	low, high float64
}

// aim is what an iteration is to come to.
type aim struct {
	score float64
	rated bool   // the score matters
	stop  bool   // stop_when holds
	exit  string // the expression that ends the loop; "": none
}

// seen is what an iteration comes to.
type seen struct {
	state  map[string]any
	score  float64
	scored bool
	errs   int     // expressions that cannot be evaluated
	off    float64 // parts of conditions that have not come to what they are to
}

// studied is the study of a loop, or nil if nothing in it has to be worked out.
func (c *cast) studied(l *definition.Agent, g *goal, state map[string]any, script []scripted.Answer) *study {
	s := &study{
		cast: c, loop: l, script: script, programs: make(map[string]*expr.Program), parts: make(map[string]*loop.Condition),
		owner: make(map[*need]*definition.Agent), choices: make(map[*need][]any), known: make(map[aim]picks),
	}
	for _, a := range s.inOrder(l) {
		if !reaches(a) || len(s.answers(a)) > 0 {
			continue
		}
		all := c.needs.output[a.Name].leaves()
		for _, key := range sortedKeys(c.needs.side[a.Name]) {
			all = append(all, c.needs.side[a.Name][key])
		}
		for _, f := range sortedKeys(c.needs.result[a.Name].fields) {
			if f != "json" {
				all = append(all, c.needs.result[a.Name].fields[f].leaves()...)
			}
		}
		for _, n := range all {
			if s.owner[n] == nil && n.read && !(ends(a) && n == c.needs.output[a.Name].fields["approved"]) {
				s.owner[n], s.free = a, append(s.free, n)
			}
		}
	}
	if len(s.free) == 0 {
		return nil
	}
	s.before(state)
	s.offer()
	s.rate(g)
	return s
}

// scores reports whether the score is worked out; that of a loop without a study is
// not.
func (s *study) scores() bool { return s != nil && s.computed }

// ends reports whether a person's yes ends the loop: it is not there to be chosen.
func ends(a *definition.Agent) bool { return approving(a) && a.CanExitLoop }

// inOrder are the agents that do something, in the order in which they run.
func (c *cast) inOrder(of *definition.Agent) []*definition.Agent {
	if of.Loop == nil || len(of.Loop.Order) == 0 {
		return c.leaves(of)
	}
	var all []*definition.Agent
	for _, sub := range of.SubAgents {
		if !slices.Contains(of.Loop.Order, sub.Name) {
			all = append(all, c.leaves(sub)...)
		}
	}
	for _, name := range slices.Backward(of.Loop.Order) {
		if sub := c.agents[name]; sub != nil {
			all = append(c.leaves(sub), all...)
		}
	}
	return all
}

// answers are those of the script for an agent.
func (s *study) answers(a *definition.Agent) []scripted.Answer {
	return slices.DeleteFunc(slices.Clone(s.script), func(ans scripted.Answer) bool { return ans.Agent != a.Name })
}

// before works out the state with which the loop begins.
func (s *study) before(state map[string]any) {
	s.begin = maps.Clone(state)
	if s.begin == nil {
		s.begin = make(map[string]any)
	}
	for _, a := range s.leaves(s.def.Root) {
		if s.stepIn(a, s.loop) != nil {
			break
		}
		s.step(a, 0, aim{}, nil, &seen{state: s.begin}, nil)
	}
}
