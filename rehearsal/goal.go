// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"
	"maps"
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
	// met and unmet are what makes stop_when true and false; nil if that is not
	// up to stand-ins, or not found.
	met, unmet values
	// done and open are the same for the exit_when of tasks, by agent.
	done, open map[string]values
	// study works out what is computed; nil if nothing is.
	study *study
}

// learn finds out what loops are waiting for. It needs the plans.
func (c *cast) learn(state map[string]any, script []scripted.Answer) {
	for _, l := range c.loops {
		g := &goal{done: make(map[string]values), open: make(map[string]values)}
		c.goals[l.Name] = g
		c.learnScore(l, g, state)
		c.learnCondition(l, g, state)
		c.learnExits(l, g, state)
		if s := l.Loop.Score; s != nil && (s.MinDelta != nil || s.MinDeltaPercent != nil) {
			g.ways = append(g.ways, way{name: "score that hardly improves", reason: loop.ReasonConverged})
		}
		g.study = c.studied(l, g, state, script)
	}
}

func (c *cast) learnScore(l *definition.Agent, g *goal, state map[string]any) {
	s := l.Loop.Score
	if s == nil {
		return
	}
	keys := map[string]bool{s.Key: s.Key != ""}
	for _, p := range paths(s.Expr) {
		key, _ := p.key()
		keys[key] = p.root == "state"
	}
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

func (c *cast) learnCondition(l *definition.Agent, g *goal, state map[string]any) {
	if l.Loop.StopWhen == nil {
		return
	}
	g.ways = append(g.ways, way{name: "stop_when", reason: loop.ReasonCondition})
	met, unmet := values{}, values{}
	for _, w := range leavesOf(l.Loop.StopWhen) {
		free := slices.DeleteFunc(paths(w.expr), func(p path) bool { return !c.standInWrites(p) })
		vals := conditionVals(state, finishAt)
		if yes, ok := solve(w.expr, w.want, free, c.choices, vals); ok {
			maps.Copy(met, yes)
		}
		if no, ok := solve(w.expr, !w.want, free, c.choices, vals); ok {
			maps.Copy(unmet, no)
		}
	}
	g.met, g.unmet = met, unmet
}

func (c *cast) learnExits(l *definition.Agent, g *goal, state map[string]any) {
	for _, a := range c.steps(l) {
		switch {
		case a.ExitWhen != "":
			g.ways = append(g.ways, way{"exit_when of " + a.Name, loop.ReasonExit, a})
			if !reaches(a) {
				continue
			}
			free := slices.DeleteFunc(paths(a.ExitWhen), func(p path) bool {
				key, _ := p.key()
				return p.root != "result" && key != a.OutputKey && key != a.ResultKey
			})
			choices := func(p path) []any { return resultChoices(a, p.fields) }
			vals := conditionVals(state, finishAt)
			if yes, ok := solve(a.ExitWhen, true, free, choices, vals); ok {
				g.done[a.Name] = yes
			}
			if no, ok := solve(a.ExitWhen, false, free, choices, vals); ok {
				g.open[a.Name] = no
			}
		case a.Human != nil && a.Human.Ask == mark.AskApproval && a.CanExitLoop:
			g.ways = append(g.ways, way{"approval by " + a.Name, loop.ReasonExit, a})
		case a.Type == definition.TypeLLM && c.mayExit(a):
			g.ways = append(g.ways, way{"exit_loop by " + a.Name, loop.ReasonExit, a})
		}
	}
}

// standInWrites reports whether a value is one that a stand-in leaves.
func (c *cast) standInWrites(p path) bool {
	key, _ := p.key()
	return p.root == "state" && len(c.writers(key)) > 0
}

// writers are the stand-ins that write a state key.
func (c *cast) writers(key string) []*definition.Agent {
	var all []*definition.Agent
	for _, a := range c.leaves(c.def.Root) {
		if reaches(a) && key != "" && (a.OutputKey == key || a.ResultKey == key) {
			all = append(all, a)
		}
	}
	return all
}

// choices are what a value may be besides what the expression itself names.
func (c *cast) choices(p path) []any {
	key, rest := p.key()
	for _, a := range c.writers(key) {
		if a.ResultKey == key {
			return resultChoices(a, rest)
		}
	}
	return nil
}

// resultChoices are the codes with which a task does not fail.
func resultChoices(a *definition.Agent, field string) []any {
	var all []any
	switch {
	case field == "exit_code" && a.Command != nil:
		for _, code := range okCodes(a) {
			all = append(all, float64(code))
		}
	case field == "status" && a.HTTP != nil:
		for _, code := range okStatus(a) {
			all = append(all, float64(code))
		}
	}
	return all
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

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
