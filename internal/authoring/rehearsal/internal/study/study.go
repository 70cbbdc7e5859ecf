// SPDX-License-Identifier: Apache-2.0

// Package study finds out what the stand-ins of a definition have to answer, without running it: how
// each loop can end, which values its expressions read, and which values lead to a given score, a
// condition or an exit.
//
//	cast := study.NewCast(def)
//	cast.Learn(state, nil) // how each loop can end, in cast.Goals
package study

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
)

// study is about a loop whose end or score is computed from what stand-ins leave. It computes
// iterations with the real expressions, and searches for values that reach an aim.
type study struct {
	*Cast
	loop     *definition.Agent
	script   []scripted.Answer
	begin    map[string]any // the state before the loop
	programs map[string]expr.Program
	parts    map[string]*loop.Condition // of expressions, split at &&, || and !
	free     []*need                    // the values that the study chooses
	owner    map[*need]*definition.Agent
	choices  map[*need][]any

	computed  bool // the score is computed, and stand-ins can change it
	low, high float64
}

// Aim is the wanted result of an iteration.
type Aim struct {
	Score float64
	Rated bool   // the score matters
	Stop  bool   // stop_when holds
	Exit  string // the agent whose exit_when ends the loop; empty if none does
}

// iterationResult is the result of an iteration.
type iterationResult struct {
	state  map[string]any
	score  float64
	scored bool
	errs   int     // expressions that failed
	off    float64 // parts of conditions that do not have the wanted value
}

// studied is the study of a loop; nil if nothing in it is computed.
func (c *Cast) studied(l *definition.Agent, g *goal, state map[string]any, script []scripted.Answer) *study {
	s := &study{
		Cast: c, loop: l, script: script, programs: make(map[string]expr.Program),
		parts: make(map[string]*loop.Condition),
		owner: make(map[*need]*definition.Agent), choices: make(map[*need][]any),
	}
	for _, a := range s.inOrder(l) {
		if _, given := Scripted(script, a, 1); given || !Reaches(a) {
			continue
		}
		all := c.Needs.output[a.Name].leaves()
		for _, key := range SortedKeys(c.Needs.Side[a.Name]) {
			all = append(all, c.Needs.Side[a.Name][key])
		}
		for _, f := range SortedKeys(c.Needs.result[a.Name].fields) {
			if f != "json" {
				all = append(all, c.Needs.result[a.Name].fields[f].leaves()...)
			}
		}
		for _, n := range all {
			if s.owner[n] == nil && n.read && !(Ends(a) && n == c.Needs.output[a.Name].fields["approved"]) {
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

// Scores reports whether the study chooses values for the score.
func (s *study) Scores() bool { return s != nil && s.computed }

// Ends reports whether a person's approval ends the loop. The scene decides it, not the study.
func Ends(a *definition.Agent) bool { return Approving(a) && a.CanExitLoop }

// inOrder returns the agents without sub-agents, in the order in which they run.
func (c *Cast) inOrder(of *definition.Agent) []*definition.Agent {
	if of.Loop == nil || len(of.Loop.Order) == 0 {
		return c.Leaves(of)
	}
	var all []*definition.Agent
	for _, sub := range of.SubAgents {
		if !slices.Contains(of.Loop.Order, sub.Name) {
			all = append(all, c.Leaves(sub)...)
		}
	}
	for _, name := range slices.Backward(of.Loop.Order) {
		if sub := c.Agents[name]; sub != nil {
			all = append(c.Leaves(sub), all...)
		}
	}
	return all
}

// Scripted returns the answer of a script for an agent: its n-th answer is for iteration n, its last one for all later
// iterations.
func Scripted(script []scripted.Answer, a *definition.Agent, iteration int) (answer scripted.Answer, ok bool) {
	own := slices.DeleteFunc(slices.Clone(script), func(ans scripted.Answer) bool { return ans.Agent != a.Name })
	if len(own) == 0 {
		return answer, false
	}
	return own[min(max(iteration, 1), len(own))-1], true
}

// before computes the state at the beginning of the loop.
func (s *study) before(state map[string]any) {
	s.begin = maps.Clone(state)
	if s.begin == nil {
		s.begin = make(map[string]any)
	}
	for _, a := range s.Leaves(s.Def.Root) {
		if s.StepIn(a, s.loop) != nil {
			break
		}
		s.step(a, 0, Aim{}, nil, &iterationResult{state: s.begin}, nil)
	}
}

// Course is the course of the iterations of a loop in a scene.
type Course struct {
	mu     sync.Mutex
	states []map[string]any // before each iteration
	firsts []picks          // the values found for each
	found  map[string]picks
	vain   map[Aim]bool // aims that were not reached; their score is ignored
}

// At finds the values for iteration n with the aim to. The function aims gives the aim of each
// earlier iteration.
func (c *Course) At(s *study, n int, to Aim, aims func(int) Aim) picks {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found == nil {
		c.found, c.vain, c.states = make(map[string]picks), make(map[Aim]bool), []map[string]any{s.begin}
	}
	for k := len(c.states); k < n; k++ {
		some := c.look(s, k, aims(k))
		c.states = append(c.states, s.iteration(c.states[k-1], k, aims(k), some).state)
	}
	return c.look(s, n, to)
}

func (c *Course) look(s *study, n int, to Aim) picks {
	key := fmt.Sprint(n, to)
	if some, ok := c.found[key]; ok {
		return some
	}
	var last picks
	if len(c.firsts) > 0 {
		last = c.firsts[len(c.firsts)-1]
	}
	kind := Aim{Stop: to.Stop, Exit: to.Exit}
	some, there := s.find(c.states[n-1], n, to, last, !c.vain[kind])
	c.vain[kind] = c.vain[kind] || !there
	c.found[key], c.firsts = some, append(c.firsts, some)
	return some
}
