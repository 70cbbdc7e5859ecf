// SPDX-License-Identifier: Apache-2.0

package study

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// maxPairs limits the number of pairs of choices that are tried.
const maxPairs = 2_000

// offer lists the candidates for each value: literals that it is compared with, numbers of the
// expressions and of the state, and usual values.
func (s *study) offer() {
	var numbers []any
	for _, src := range s.sources() {
		numbers = append(numbers, numbersIn(src)...)
	}
	for _, key := range SortedKeys(s.begin) {
		if f, ok := asNumber(s.begin[key]); ok {
			numbers = append(numbers, f, f-1, f+1)
		}
	}
	numbers = append(numbers, 0.0, 1.0, 2.0, 10.0, 100.0, 1000.0)
	for _, n := range s.free {
		if s.over() {
			return
		}
		var all []any
		switch {
		case len(n.only) > 0:
			all = n.only
		case n.item != nil:
			all = []any{[]any{}}
		case n.kind == yesNo:
			all = []any{true, false}
		case n.kind == number:
			all = slices.Concat(n.near, numbers)
		case n.kind == words:
			all = append(slices.Clone(n.near), "", "made up", strings.Repeat("made up ", 100))
		case n.schema != nil && len(n.schema.Enum) > 0:
			for _, word := range n.schema.Enum {
				all = append(all, word)
			}
		default:
			all = slices.Concat(n.near, []any{true, false, "", "made up"}, numbers)
		}
		if n.schema != nil { // the answer is changed in the same way
			for i, v := range all {
				all[i] = fit(n.schema, v, "made up")
			}
		}
		if a := s.owner[n]; a.LLM != nil && n == s.Needs.output[a.Name] { // an empty answer writes no key
			all = slices.DeleteFunc(slices.Clone(all), func(v any) bool { return v == "" || v == " " })
		}
		s.choices[n] = unique(all)
	}
	// Values with few candidates come first, as not all pairs can be tried.
	slices.SortStableFunc(s.free, func(a, b *need) int { return cmp.Compare(len(s.choices[a]), len(s.choices[b])) })
}

// sources returns the expressions that decide the result of an iteration.
func (s *study) sources() []string {
	var all []string
	for a := range s.loop.All {
		all = append(all, a.ExitWhen)
		if a.Expression != nil {
			all = append(all, a.Expression.Value)
			for _, key := range SortedKeys(a.Expression.Set) {
				all = append(all, a.Expression.Set[key])
			}
		}
	}
	return append(all, ExpressionsOf(s.loop.Loop.StopWhen)...)
}

// rate finds the range of a computed score, and the agents whose answers change it.
func (s *study) rate(g *goal) {
	sc := s.loop.Loop.Score
	if sc == nil || sc.Expr == "" && len(g.Scorers) > 0 {
		return
	}
	given := len(g.Scorers) > 0
	usual := s.iteration(s.begin, 1, Aim{}, nil)
	for _, n := range s.free {
		for _, v := range s.choices[n] {
			got := s.iteration(s.begin, 1, Aim{}, picks{n: v})
			if !got.scored || usual.scored && got.score == usual.score {
				continue
			}
			s.computed = true
			if a := s.owner[n]; !given && !slices.Contains(g.Scorers, a) {
				g.Scorers = append(g.Scorers, a)
				g.Judged = g.Judged || a.Type == definition.TypeLLM || a.Type == definition.TypeA2A
			}
		}
	}
	if s.computed {
		least, _ := s.find(s.begin, 1, Aim{Score: -1e9, Rated: true}, nil, false)
		most, _ := s.find(s.begin, 1, Aim{Score: 1e9, Rated: true}, nil, false)
		s.low, s.high = s.iteration(s.begin, 1, Aim{}, least).score, s.iteration(s.begin, 1, Aim{}, most).score
	}
}

// find searches for values with which an iteration reaches its aim. It begins with the given ones,
// and changes one value at a time as long as that helps; with hard, two values at a time. It
// returns the best values that it found, and whether they reach the aim.
func (s *study) find(state map[string]any, n int, to Aim, first picks, hard bool) (picks, bool) {
	best := maps.Clone(first)
	if best == nil {
		best = make(picks)
	}
	left := s.off(to, s.iteration(state, n, to, best))
	try := func(some picks) bool {
		off := s.off(to, s.iteration(state, n, to, some))
		if off < left {
			left, best = off, some
			return true
		}
		return false
	}
	for better := true; better && left > 0; {
		better = false
		for _, f := range s.free {
			for _, v := range s.offered(f, to) {
				better = try(best.with(f, v)) || better
			}
			if left > 0 && to.Rated && s.computed {
				better = s.approach(state, n, to, f, best, try) || better
			}
		}
	}
	tries := 0
	if !hard || left == 0 {
		return best, left == 0
	}
	for i, f := range s.free {
		for _, g := range s.free[i+1:] {
			for _, v := range s.offered(f, to) {
				for _, w := range s.offered(g, to) {
					if tries++; left == 0 || tries > maxPairs {
						return best, left == 0
					}
					try(best.with(f, v).with(g, w))
				}
			}
		}
	}
	return best, left == 0
}

// offered returns the candidates for a value in an iteration, with those around the wanted score.
func (s *study) offered(n *need, to Aim) []any {
	all := s.choices[n]
	if to.Rated && len(n.only) == 0 && (n.kind == number || n.kind == anything) && n.item == nil {
		all = append(slices.Clone(all), to.Score, to.Score-1, to.Score+1)
	}
	return all
}

func (p picks) with(n *need, v any) picks {
	own := maps.Clone(p)
	own[n] = v
	return own
}

// approach searches for a number that gives the wanted score, by bisection between two neighbouring
// candidates.
func (s *study) approach(state map[string]any, n int, to Aim, f *need, best picks, try func(picks) bool) bool {
	score := func(x float64) (float64, bool) {
		got := s.iteration(state, n, to, best.with(f, x))
		return got.score - to.Score, got.scored
	}
	var points []float64
	for _, v := range s.choices[f] {
		if x, ok := v.(float64); ok && len(f.only) == 0 {
			points = append(points, x)
		}
	}
	slices.Sort(points)
	for i := range max(0, len(points)-1) {
		a, b := points[i], points[i+1]
		fa, oka := score(a)
		fb, okb := score(b)
		if !oka || !okb || fa*fb >= 0 {
			continue
		}
		straight := a - fa*(b-a)/(fb-fa)
		if try(best.with(f, Tidy(straight))) {
			return true
		}
		for range 40 {
			mid := (a + b) / 2
			fm, ok := score(mid)
			if !ok {
				break
			}
			if fa*fm <= 0 {
				b = mid
			} else {
				a, fa = mid, fm
			}
		}
		return try(best.with(f, (a+b)/2))
	}
	return false
}

// reach limits a scale to the scores that can be computed.
func (s *study) reach(sc scale, free bool) scale {
	span := s.high - s.low
	if !s.computed || span <= 0 || math.IsInf(span, 0) {
		return sc
	}
	from := s.low
	if sc.Sense < 0 {
		from = s.high
	}
	if free {
		sc.Goal, sc.Span = from+sc.Sense*0.8*span, 0.8*span
		return sc
	}
	sc.Span = min(sc.Span, max(sc.Sense*(sc.Goal-from), 0))
	return sc
}

// unique removes repeated values.
func unique(all []any) []any {
	var out []any
	for _, v := range all {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
