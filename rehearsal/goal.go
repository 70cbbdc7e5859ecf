// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"math"
	"slices"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session/mark"
)

// way is one way in which a loop is meant to end.
type way struct {
	name   string
	reason loop.StopReason
	by     *definition.Agent // who asks to leave
}

// goal is what the stand-ins in a loop have to leave behind for it to end.
type goal struct {
	ways []way
	// scorers are the stand-ins that give the score, and judged says that one of
	// them asks a model.
	scorers []*definition.Agent
	judged  bool
	// study works out what is computed; nil if nothing is.
	study *study
}

// learn finds out what loops are waiting for. It needs the plans.
func (c *cast) learn(state map[string]any, script []scripted.Answer) {
	for _, l := range c.loops {
		g := &goal{}
		c.goals[l.Name] = g
		c.learnScore(l, g)
		if l.Loop.StopWhen != nil {
			g.ways = append(g.ways, way{name: "stop_when", reason: loop.ReasonCondition})
		}
		c.learnExits(l, g)
		if s := l.Loop.Score; s != nil && (s.MinDelta != nil || s.MinDeltaPercent != nil) {
			g.ways = append(g.ways, way{name: "score that hardly improves", reason: loop.ReasonConverged})
		}
		g.study = c.studied(l, g, state, script)
	}
}

func (c *cast) learnScore(l *definition.Agent, g *goal) {
	s := l.Loop.Score
	if s == nil {
		return
	}
	keys := keysIn(s.Expr)
	keys[s.Key] = s.Key != ""
	for _, a := range c.leaves(l) {
		if keys[a.OutputKey] && a.OutputKey != "" && reaches(a) {
			g.scorers = append(g.scorers, a)
			g.judged = g.judged || a.Type == definition.TypeLLM || a.Type == definition.TypeA2A
		}
	}
	if s.Target != nil || s.DimensionTarget != nil {
		g.ways = append(g.ways, way{name: "score.target", reason: loop.ReasonTarget})
	}
}

func (c *cast) learnExits(l *definition.Agent, g *goal) {
	for _, a := range c.steps(l) {
		switch {
		case a.ExitWhen != "":
			g.ways = append(g.ways, way{"exit_when of " + a.Name, loop.ReasonExit, a})
		case a.Human != nil && a.Human.Ask == mark.AskApproval && a.CanExitLoop:
			g.ways = append(g.ways, way{"approval by " + a.Name, loop.ReasonExit, a})
		case a.Type == definition.TypeLLM && c.mayExit(a):
			g.ways = append(g.ways, way{"exit_loop by " + a.Name, loop.ReasonExit, a})
		}
	}
}

func okCodes(a *definition.Agent) []int {
	if len(a.Command.OKExitCodes) > 0 {
		return a.Command.OKExitCodes
	}
	return []int{0}
}

func okStatus(a *definition.Agent) []int {
	if len(a.HTTP.OKStatus) > 0 {
		return a.HTTP.OKStatus
	}
	return []int{200, 201, 202, 204}
}

// finishAt is the iteration in which stand-ins bring loops to their end.
const finishAt = 3

// scale is the range in which the made-up scores of a loop are.
type scale struct {
	goal, span float64 // at the end, and how much less (or more) at the beginning
	sense      float64 // 1: higher is better
}

func scaleOf(s *loop.Score) scale {
	sc := scale{goal: 8, sense: 1}
	switch {
	case s.Target != nil && s.DimensionTarget != nil && s.LowerIsBetter:
		sc.goal = min(*s.Target, *s.DimensionTarget)
	case s.Target != nil && s.DimensionTarget != nil:
		sc.goal = max(*s.Target, *s.DimensionTarget)
	case s.Target != nil:
		sc.goal = *s.Target
	case s.DimensionTarget != nil:
		sc.goal = *s.DimensionTarget
	}
	sc.span = 0.5 * math.Abs(sc.goal)
	if sc.goal == 0 {
		sc.span = 5
	}
	if s.MinDelta != nil {
		sc.span = max(sc.span, *s.MinDelta*8)
	}
	if s.LowerIsBetter {
		sc.sense = -1
	}
	return sc
}

// scaleOf is that of a loop's score, within what it can be.
func (c *cast) scaleOf(l *definition.Agent) scale {
	sc := scaleOf(l.Loop.Score)
	if s := c.goals[l.Name].study; s.scores() {
		sc = s.reach(sc, l.Loop.Score.Target == nil && l.Loop.Score.DimensionTarget == nil)
	}
	return sc
}

// at is the score that far: 0 is the beginning, 1 the goal.
func (sc scale) at(far float64) float64 { return tidy(sc.goal - sc.sense*sc.span*(1-far)) }

func tidy(f float64) float64 { return math.Round(f*1e6) / 1e6 }

// course is how a loop's score goes in a run in which nothing goes wrong, and that
// ends in the given way in iteration n: it rises, and is at its goal then only if
// that is the way.
func (sc scale) course(w way, i, n int) float64 {
	far := float64(min(i, n)-1) / float64(max(n-1, 1))
	switch w.reason {
	case loop.ReasonTarget:
		if n == 1 {
			far = 1
		}
		return sc.at(far)
	case loop.ReasonConverged:
		far = float64(min(i, n-1)-1) / float64(max(n-1, 1))
		return sc.at(0.8 * max(0, far))
	}
	return sc.at(0.8 * far)
}

func (w way) String() string {
	if w.name == "" {
		return "its limits"
	}
	return w.name
}

// expressionsOf are the expressions of a condition.
func expressionsOf(c *loop.Condition) []string {
	if c == nil {
		return nil
	}
	if c.Expr != "" {
		return []string{c.Expr}
	}
	all := expressionsOf(c.Not)
	for _, part := range slices.Concat(c.Any, c.All) {
		all = append(all, expressionsOf(&part)...)
	}
	return all
}
