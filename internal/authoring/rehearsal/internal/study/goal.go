// SPDX-License-Identifier: Apache-2.0

package study

import (
	"math"
	"slices"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session/mark"
)

// Way is one way in which a loop can end.
type Way struct {
	Name   string
	Reason loop.StopReason
	By     *definition.Agent // who asks to leave
}

// goal is what has to happen for a loop to end.
type goal struct {
	Ways []Way
	// Scorers are the agents whose answers decide the score. Judged reports that one of them is a
	// model or a remote agent.
	Scorers []*definition.Agent
	Judged  bool
	// Study chooses the values that expressions compute from; nil if none do.
	Study *study
}

// Learn finds out how each loop can end. The plans must be there.
func (c *Cast) Learn(state map[string]any, script []scripted.Answer) {
	for _, l := range c.Loops {
		g := &goal{}
		c.Goals[l.Name] = g
		c.learnScore(l, g)
		if l.Loop.StopWhen != nil {
			g.Ways = append(g.Ways, Way{Name: "stop_when", Reason: loop.ReasonCondition})
		}
		c.learnExits(l, g)
		if s := l.Loop.Score; s != nil && (s.MinDelta != nil || s.MinDeltaPercent != nil) {
			g.Ways = append(g.Ways, Way{Name: "score that hardly improves", Reason: loop.ReasonConverged})
		}
		g.Study = c.studied(l, g, state, script)
	}
}

func (c *Cast) learnScore(l *definition.Agent, g *goal) {
	s := l.Loop.Score
	if s == nil {
		return
	}
	keys := keysIn(s.Expr)
	keys[s.Key] = s.Key != ""
	for _, a := range c.Leaves(l) {
		if keys[a.OutputKey] && a.OutputKey != "" && Reaches(a) {
			g.Scorers = append(g.Scorers, a)
			g.Judged = g.Judged || a.Type == definition.TypeLLM || a.Type == definition.TypeA2A
		}
	}
	if s.Target != nil || s.DimensionTarget != nil {
		g.Ways = append(g.Ways, Way{Name: "score.target", Reason: loop.ReasonTarget})
	}
}

func (c *Cast) learnExits(l *definition.Agent, g *goal) {
	for _, a := range c.Steps(l) {
		switch {
		case a.ExitWhen != "":
			g.Ways = append(g.Ways, Way{"exit_when of " + a.Name, loop.ReasonExit, a})
		case a.Human != nil && a.Human.Ask == mark.AskApproval && a.CanExitLoop:
			g.Ways = append(g.Ways, Way{"approval by " + a.Name, loop.ReasonExit, a})
		case a.Type == definition.TypeLLM && c.MayExit(a):
			g.Ways = append(g.Ways, Way{"exit_loop by " + a.Name, loop.ReasonExit, a})
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

// FinishAt is the iteration in which stand-ins end a loop.
const FinishAt = 3

// scale is the range of the made-up scores of a loop.
type scale struct {
	Goal, Span float64 // the last score, and its distance from the first
	Sense      float64 // 1 if higher is better, else -1
}

func scaleOf(s *loop.Score) scale {
	sc := scale{Goal: 8, Sense: 1}
	if s.Judge != nil && s.Judge.Compare != "" { // what it answers
		return scale{Goal: 2, Span: 2, Sense: 1}
	}
	switch {
	case s.Target != nil && s.DimensionTarget != nil && s.LowerIsBetter:
		sc.Goal = min(*s.Target, *s.DimensionTarget)
	case s.Target != nil && s.DimensionTarget != nil:
		sc.Goal = max(*s.Target, *s.DimensionTarget)
	case s.Target != nil:
		sc.Goal = *s.Target
	case s.DimensionTarget != nil:
		sc.Goal = *s.DimensionTarget
	}
	sc.Span = 0.5 * math.Abs(sc.Goal)
	if sc.Goal == 0 {
		sc.Span = 5
	}
	if s.MinDelta != nil {
		sc.Span = max(sc.Span, *s.MinDelta*8)
	}
	if s.LowerIsBetter {
		sc.Sense = -1
	}
	return sc
}

// ScaleOf is the scale of a loop's score, limited to the scores that can be computed.
func (c *Cast) ScaleOf(l *definition.Agent) scale {
	sc := scaleOf(l.Loop.Score)
	if s := c.Goals[l.Name].Study; s.Scores() {
		sc = s.reach(sc, l.Loop.Score.Target == nil && l.Loop.Score.DimensionTarget == nil)
	}
	return sc
}

// At is the score at a part of the way: 0 is the first score, 1 the goal.
func (sc scale) At(far float64) float64 { return Tidy(sc.Goal - sc.Sense*sc.Span*(1-far)) }

func Tidy(f float64) float64 { return math.Round(f*1e6) / 1e6 }

// Course is the score of iteration i in a run without faults that ends in iteration n in the given
// way. The score rises. It reaches the goal only if the way is the target.
func (sc scale) Course(w Way, i, n int) float64 {
	far := float64(min(i, n)-1) / float64(max(n-1, 1))
	switch w.Reason {
	case loop.ReasonTarget:
		if n == 1 {
			far = 1
		}
		return sc.At(far)
	case loop.ReasonConverged:
		far = float64(min(i, n-1)-1) / float64(max(n-1, 1))
		return sc.At(0.8 * max(0, far))
	}
	return sc.At(0.8 * far)
}

func (w Way) String() string {
	if w.Name == "" {
		return "its limits"
	}
	return w.Name
}

// ExpressionsOf returns the expressions of a condition.
func ExpressionsOf(c *loop.Condition) []string {
	if c == nil {
		return nil
	}
	if c.Expr != "" {
		return []string{c.Expr}
	}
	all := ExpressionsOf(c.Not)
	for _, part := range slices.Concat(c.Any, c.All) {
		all = append(all, ExpressionsOf(&part)...)
	}
	return all
}
