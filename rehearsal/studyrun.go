// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

// iteration works one out. Its state is a new one.
func (s *study) iteration(state map[string]any, n int, to aim, some picks) *seen {
	at := &seen{state: maps.Clone(state)}
	for _, a := range s.inOrder(s.loop) {
		s.step(a, n, to, some, at, state)
	}
	s.judge(at, n)
	return at
}

// step works out what an agent leaves in the state.
func (s *study) step(a *definition.Agent, n int, to aim, some picks, at *seen, prev map[string]any) {
	switch {
	case a.Expression != nil:
		s.compute(a, n, at, prev)
	case !reaches(a):
		if a.OutputKey != "" {
			at.state[a.OutputKey] = a.Text
		}
	default:
		l := s.standsIn(a, n, to, some)
		if a.OutputKey != "" {
			at.state[a.OutputKey] = l.value
		}
		if a.ResultKey != "" {
			at.state[a.ResultKey] = result(a, l)
		}
		for key, n := range s.needs.side[a.Name] {
			if v, picked := some[n]; picked {
				at.state[key] = v
			}
		}
	}
}

// standsIn is what the stand-in of an agent leaves.
func (s *study) standsIn(a *definition.Agent, n int, to aim, some picks) line {
	here := place{loops: map[string]int{s.loop.Name: n}, within: s.loop.Name, number: decimal(float64(n)), sample: 1}
	f := s.form(a, here)
	if own := s.answers(a); own != nil {
		f.need, f.words = nil, own[min(max(n, 1), len(own))-1].Text
		_ = json.Unmarshal([]byte(f.words), &f.base) // else it is no JSON
		return f.line(a)
	}
	f.picks = some
	g := s.goals[s.loop.Name]
	if sc := s.loop.Loop.Score; to.rated && !s.computed && slices.Contains(g.scorers, a) {
		s.grade(a, sc, to.score, f)
	}
	f.take(a, g.open[a.Name])
	return f.line(a)
}

func (s *study) program(src string) *expr.Program {
	p, known := s.programs[src]
	if !known {
		p, _ = expr.Compile(src, conditionVars()...) // the definition was checked; else it is skipped
		s.programs[src] = p
	}
	return p
}

// compute works out an agent that is made of expressions.
func (s *study) compute(a *definition.Agent, n int, at *seen, prev map[string]any) {
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
		v, err := p.Eval(vals)
		if err != nil {
			at.errs++
		}
		return v, err == nil
	}
	for _, key := range sortedKeys(a.Expression.Set) {
		if v, ok := eval(a.Expression.Set[key]); ok {
			next[key] = v
		}
	}
	if v, ok := eval(a.Expression.Value); ok && a.OutputKey != "" {
		next[a.OutputKey] = v
	}
	at.state = next
	if a.ExitWhen == "" || s.loopAround(a) != s.loop {
		return
	}
	vals = s.values(at, n, prev)
	vals["result"] = map[string]any{"value": next[a.OutputKey]}
	if yes, ok := eval(a.ExitWhen); ok && yes == true {
		at.exits = append(at.exits, a.Name)
	}
}

func (s *study) values(at *seen, n int, prev map[string]any) map[string]any {
	vals := conditionVals(at.state, n)
	if n > 1 && prev != nil {
		vals["prev"] = prev
	}
	vals["max_iterations"] = int(s.loop.Loop.MaxIterations)
	return vals
}

// judge looks at an iteration as the loop does when it has ended.
func (s *study) judge(at *seen, n int) {
	if sc := s.loop.Loop.Score; sc != nil {
		at.score, at.scored = s.score(sc, at, n)
	}
	if s.loop.Loop.StopWhen == nil {
		return
	}
	vals := s.values(at, n, nil)
	if at.scored {
		vals["score"], vals["scores"] = at.score, []float64{at.score}
	}
	at.stop = s.holds(s.loop.Loop.StopWhen, vals)
}

func (s *study) score(sc *loop.Score, at *seen, n int) (float64, bool) {
	v := at.state[sc.Key]
	if sc.Expr != "" {
		p := s.program(sc.Expr)
		if p == nil {
			return 0, false
		}
		got, err := p.Eval(s.values(at, n, nil))
		if err != nil {
			at.errs++
			return 0, false
		}
		v = got
	}
	if _, isMap := v.(map[string]any); isMap {
		for name := range strings.SplitSeq(cmp.Or(sc.Field, "score"), ".") {
			m, _ := v.(map[string]any)
			v = m[name]
		}
	}
	return asNumber(v)
}

// holds evaluates a condition.
func (s *study) holds(c *loop.Condition, vals map[string]any) bool {
	switch {
	case c.Expr != "":
		p := s.program(c.Expr)
		if p == nil {
			return false
		}
		yes, err := p.EvalBool(vals)
		return err == nil && yes
	case c.Not != nil:
		return !s.holds(c.Not, vals)
	case c.Any != nil:
		return slices.ContainsFunc(c.Any, func(c loop.Condition) bool { return s.holds(&c, vals) })
	}
	return !slices.ContainsFunc(c.All, func(c loop.Condition) bool { return !s.holds(&c, vals) })
}

// off says how far an iteration is from what it is to come to; 0 is there.
func (s *study) off(to aim, got *seen) float64 {
	off := 1e6 * float64(got.errs)
	if s.loop.Loop.StopWhen != nil && got.stop != to.stop {
		off += 1000
	}
	wanted := to.exit != ""
	if wanted != slices.Contains(got.exits, to.exit) {
		off += 1000
	}
	for _, name := range got.exits {
		if name != to.exit {
			off += 1000
		}
	}
	if to.rated && s.computed {
		switch d := math.Abs(got.score - to.score); {
		case !got.scored:
			off += 1000
		case d > 1e-6*max(1, math.Abs(to.score)):
			off += 900 * d / (d + max(1, math.Abs(to.score)))
		}
	}
	return off
}
