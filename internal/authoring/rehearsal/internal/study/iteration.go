// SPDX-License-Identifier: Apache-2.0

package study

import (
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

// iteration computes one iteration. It does not change the given state.
func (s *study) iteration(state map[string]any, n int, to Aim, some picks) *iterationResult {
	at := &iterationResult{state: maps.Clone(state)}
	for _, a := range s.inOrder(s.loop) {
		if s.over() {
			return at
		}
		s.step(a, n, to, some, at, state)
	}
	s.judge(at, n, to)
	return at
}

// step computes what an agent writes into the state.
func (s *study) step(a *definition.Agent, n int, to Aim, some picks, at *iterationResult, prev map[string]any) {
	switch {
	case a.Expression != nil:
		s.compute(a, n, at, prev)
		s.leave(a, n, to, map[string]any{"value": at.state[a.OutputKey]}, at, prev)
	case !Reaches(a):
		if a.OutputKey != "" {
			at.state[a.OutputKey] = a.Text
		}
	default:
		l := s.standsIn(a, n, to, some)
		if a.OutputKey != "" {
			at.state[a.OutputKey] = l.Value
		}
		if a.ResultKey != "" {
			at.state[a.ResultKey] = Result(a, l)
		}
		s.leave(a, n, to, Result(a, l), at, prev)
		for key, n := range s.Needs.Side[a.Name] {
			if v, picked := some[n]; picked {
				at.state[key] = v
			}
		}
	}
}

// leave evaluates the exit_when of an agent.
func (s *study) leave(a *definition.Agent, n int, to Aim, result map[string]any, at *iterationResult, prev map[string]any) {
	p := s.program(a.ExitWhen)
	if a.ExitWhen == "" || s.LoopAround(a) != s.loop || p == nil {
		return
	}
	vals := s.values(at, n, prev)
	vals["result"] = result
	if _, err := expr.EvalBool(p, vals); err != nil {
		at.errs++
	}
	at.off += s.far(s.partsOf(a.ExitWhen), to.Exit == a.Name, vals)
}

// standsIn is what the stand-in of an agent leaves.
func (s *study) standsIn(a *definition.Agent, n int, to Aim, some picks) Line {
	here := Place{Loops: map[string]int{s.loop.Name: n}, Within: s.loop.Name, Number: Decimal(float64(n)), Sample: 1}
	f := s.Form(a, here)
	if own, ok := Scripted(s.script, a, n); ok {
		f.Say(own.Text)
		return f.Line(a)
	}
	f.Picks = some
	g := s.Goals[s.loop.Name]
	if sc := s.loop.Loop.Score; to.Rated && !s.computed && slices.Contains(g.Scorers, a) {
		f.Grade(sc, to.Score)
	}
	return f.Line(a)
}

func (s *study) program(src string) expr.Program {
	p, known := s.programs[src]
	if !known {
		p, _ = expr.Compile(src, conditionVars()...) // nil is skipped; the definition was checked
		s.programs[src] = p
	}
	return p
}

func (s *study) partsOf(src string) *loop.Condition {
	c, known := s.parts[src]
	if !known {
		c = parts(src)
		s.parts[src] = c
	}
	return c
}

// compute computes what an expression agent writes.
func (s *study) compute(a *definition.Agent, n int, at *iterationResult, prev map[string]any) {
	vals := s.values(at, n, prev)
	next := maps.Clone(at.state)
	eval := func(src string) (any, bool) {
		if src == "" {
			return nil, false
		}
		p := s.program(src)
		if p == nil {
			return nil, false
		}
		v, err := expr.Eval(p, vals)
		if err != nil {
			at.errs++
		}
		return v, err == nil
	}
	for _, key := range SortedKeys(a.Expression.Set) {
		if v, ok := eval(a.Expression.Set[key]); ok {
			next[key] = v
		}
	}
	if v, ok := eval(a.Expression.Value); ok && a.OutputKey != "" {
		next[a.OutputKey] = v
	}
	at.state = next
}

func (s *study) values(at *iterationResult, n int, prev map[string]any) map[string]any {
	vals := conditionVals(at.state, n)
	if n > 1 && prev != nil {
		vals["prev"] = prev
	}
	vals["max_iterations"] = int(s.loop.Loop.MaxIterations)
	return vals
}

// judge evaluates the score and the stop condition after an iteration.
func (s *study) judge(at *iterationResult, n int, to Aim) {
	if sc := s.loop.Loop.Score; sc != nil {
		alone := *sc
		alone.Judge = nil
		plan, tally := loop.Plan{Steps: []loop.Step{{Name: "all"}}, Score: &alone}, new(loop.Tally)
		if plan.Add(tally, loop.Outcome{Iteration: n, State: at.state}); tally.Score != nil {
			at.score, at.scored = *tally.Score, true
		} else if sc.Expr != "" {
			at.errs++
		}
	}
	if s.loop.Loop.StopWhen == nil {
		return
	}
	vals := s.values(at, n, nil)
	if at.scored {
		vals["score"], vals["scores"] = at.score, []float64{at.score}
	}
	at.off += s.far(s.loop.Loop.StopWhen, to.Stop, vals)
}

// far counts the parts of a condition that would have to change for the condition to have the
// wanted value.
func (s *study) far(c *loop.Condition, want bool, vals map[string]any) float64 {
	switch {
	case c.Expr != "":
		if parts := s.partsOf(c.Expr); parts.Expr == "" {
			return s.far(parts, want, vals)
		}
		p := s.program(c.Expr)
		if p == nil {
			return 1
		}
		if yes, err := expr.EvalBool(p, vals); (err == nil && yes) == want {
			return 0
		}
		return 1
	case c.Not != nil:
		return s.far(c.Not, !want, vals)
	}
	least, sum := math.Inf(1), 0.0
	for _, part := range slices.Concat(c.All, c.Any) {
		d := s.far(&part, want, vals)
		least, sum = min(least, d), sum+d
	}
	if (c.All != nil) == want {
		return sum
	}
	return least
}

// off is the distance of an iteration from its aim; 0 means that the aim is reached.
func (s *study) off(to Aim, got *iterationResult) float64 {
	off := 1e6*float64(got.errs) + 1000*got.off
	if to.Rated && s.computed {
		switch d := math.Abs(got.score - to.Score); {
		case !got.scored:
			off += 1000
		case d > 1e-6*max(1, math.Abs(to.Score)):
			off += 900 * d / (d + max(1, math.Abs(to.Score)))
		}
	}
	return off
}

func asNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	}
	return 0, false
}

// conditionVars are the variables of conditions, of scores and of tasks, all together.
var conditionVars = sync.OnceValue(func() []expr.Var {
	all := loop.Variables()
	for _, v := range taskagent.Variables() {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
})

// conditionVals are values of these variables.
func conditionVals(state map[string]any, iteration int) map[string]any {
	return map[string]any{
		"state": state, "result": map[string]any{}, "prev": map[string]any{},
		"score": 5.0, "best_score": 5.0, "scores": []float64{5}, "iteration": iteration, "max_iterations": 0,
		"usage":   map[string]any{"calls": 1, "input_tokens": 1, "output_tokens": 1, "tokens": 2, "cost": 0.0},
		"elapsed": 10.0, "user_input": "", "findings": []any{},
	}
}
