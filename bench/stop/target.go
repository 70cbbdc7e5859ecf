// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
)

// measure is what many runs of a family come to, as means or in percent of the runs.
type measure struct {
	early, within8, share, iterations, calls, gain, same, reached float64
}

// target is one number that the rules are held to.
type target struct {
	name   string
	family string
	setting
	of    func(measure) float64
	bound float64
	most  bool // the bound is the largest number, not the smallest
}

func early(m measure) float64      { return m.early }
func within8(m measure) float64    { return m.within8 }
func share(m measure) float64      { return m.share }
func iterations(m measure) float64 { return m.iterations }
func calls(m measure) float64      { return m.calls }
func gain(m measure) float64       { return m.gain }
func same(m measure) float64       { return m.same }
func reached(m measure) float64    { return m.reached }
func luck(m measure) float64       { return m.reached * 2 }
func rest(m measure) float64       { return 100 - m.gain }

// set is the setting of most targets.
func set(samples uint) setting { return setting{samples: samples, delta: 0.1, patience: 2, limit: 12} }

func (s setting) with(change func(*setting)) setting {
	change(&s)
	return s
}

func rolls(s *setting)   { s.rollback = true }
func endless(s *setting) { s.free, s.price = true, 0 }
func forty(s *setting)   { s.rollback, s.free, s.limit = true, true, 40 }

// aimed asks for a target of 9 in some iterations.
func aimed(iterations uint) setting {
	return setting{samples: 3, most: 12, target: 9, free: true, limit: iterations}
}

// paid asks for a gain with not_worth.
func paid(price float64) setting {
	return set(3).with(func(s *setting) { s.free, s.price = true, price })
}

// template is the loop of `refrain init optimize-metric`.
var template = setting{samples: 5, patience: 3, limit: 20, rollback: true}

var targets = []target{
	{"+0.3 sd an iteration, samples 3: stopped early, %", "+0.3", set(3), early, 11, true},
	{"  handed back, % of a full run's gain", "+0.3", set(3), share, 94, false},
	{"+0.3 sd, samples 5: stopped early, %", "+0.3", set(5), early, 3, true},
	{"  handed back, %", "+0.3", set(5), share, 98, false},
	{"+0.5 sd, samples 1: stopped early, %", "+0.5", set(1), early, 15, true},
	{"  handed back, %", "+0.5", set(1), share, 91, false},
	{"+1 sd, samples 3: stopped early, %", "+1", set(3), early, 1, true},
	{"whole numbers 1 to 10, +0.3: stopped early, %", "1 to 10, +0.3", set(3), early, 14, true},
	{"heavy tails, +0.3 sd: stopped early, %", "tails, +0.3", set(3), early, 13, true},
	{"staircase, +1.5 sd every fourth: handed back, %", "staircase", set(3), share, 92, false},
	{"flat, samples 1: iterations", "flat", set(1), iterations, 7.2, true},
	{"  stopped within 8, %", "flat", set(1), within8, 87, false},
	{"flat, samples 3: iterations", "flat", set(3), iterations, 7.2, true},
	{"  stopped within 8, %", "flat", set(3), within8, 87, false},
	{"flat, samples 5: iterations", "flat", set(5), iterations, 7.2, true},
	{"  stopped within 8, %", "flat", set(5), within8, 87, false},
	{"flat, min_delta 0.3 sd: iterations", "flat", set(3).with(func(s *setting) { s.delta = 0.3 }), iterations, 5.7, true},
	{"+1 sd to iteration 4, then flat: iterations", "+1 to 4, then flat", set(3), iterations, 10, true},
	{"  handed back, %", "+1 to 4, then flat", set(3), share, 99, false},
	{"patience 4, +0.3 sd: stopped early, %", "+0.3", set(3).with(func(s *setting) { s.patience = 4 }), early, 3, true},
	{"patience 4, flat: iterations", "flat", set(3).with(func(s *setting) { s.patience = 4 }), iterations, 8.5, true},
	{"no convergence, +0.3 sd: true gain of 3.3 sd", "+0.3", set(3).with(endless), gain, 2.95, false},
	{"no convergence, N(-0.1, 0.6): true gain, sd", "N(-0.1, 0.6)", set(3).with(endless), gain, 0.54, false},
	{"rollback, +0.3 sd: true gain, sd", "+0.3", set(3).with(rolls), gain, 2.5, false},
	{"rollback, hidden ceilings: true gain, sd", "hidden ceilings", set(3).with(rolls), gain, 2.3, false},
	{"rollback, 40 iterations, N(-0.1, 0.6): true gain, sd", "N(-0.1, 0.6)", set(3).with(forty), gain, 3.9, false},
	{"  judge calls an iteration", "N(-0.1, 0.6)", set(3).with(forty), calls, 3.5, true},
	{"rollback, 40 iterations, N(0.2, 0.6): true gain, sd", "N(0.2, 0.6)", set(3).with(forty), gain, 10.2, false},
	{"rollback, 40 iterations, +0.3 sd: true gain of 11.7 sd", "+0.3", set(3).with(forty), gain, 10.2, false},
	{"optimize-metric, -1.5 %, off by 2 %: handed back", "-1.5 %", template, rest, 80, true},
	{"optimize-metric, -3 %, off by 4 %: handed back", "-3 %", template, rest, 58.5, true},
	{"optimize-metric, -5 %, off by 8 %: handed back", "-5 %", template, rest, 40, true},
	{"optimize-metric, flat: iterations", "time, flat", template, iterations, 7, true},
	{"target 9, worth 8.5, off by up to 1, 3..12: luck of 200", "8.5, even", aimed(6), luck, 4, true},
	{"  judge calls an iteration", "8.5, even", aimed(6), calls, 4.8, true},
	{"  the fourth is worth 9.5: reached at once, %", "9.5, even", aimed(4), reached, 89, false},
	{"target 9, worth 8.5, off by N(0, 0.6), 3..12: luck of 200", "8.5, normal", aimed(6), luck, 4, true},
	{"  judge calls an iteration", "8.5, normal", aimed(6), calls, 4.8, true},
	{"  the fourth is worth 9.5: reached at once, %", "9.5, normal", aimed(4), reached, 89, false},
	{"target 9, worth 8.5, heavy tails, 3..12: luck of 200", "8.5, tails", aimed(6), luck, 4, true},
	{"target 9, worth 8.5, whole numbers, 3..12: luck of 200", "8.5, whole", aimed(6), luck, 15, true},
	{"not_worth 0.02, +0.1 sd, samples 3: handed back, %", "+0.1", paid(0.02), share, 94, false},
	{"not_worth 0.1, +0.3 sd: stopped early, %", "+0.3", paid(0.1), early, 8, true},
	{"  handed back, %", "+0.3", paid(0.1), share, 94, false},
	{"not_worth 0.3, +0.5 sd: handed back, %", "+0.5", paid(0.3), share, 73, false},
	{"  +1 sd: handed back, %", "+1", paid(0.3), share, 96, false},
	{"not_worth 0.3, flat: iterations", "flat", paid(0.3), iterations, 4.2, true},
	{"exact, tests of 20: decisions of the plain rule, %", "tests of 20", set(1), same, 100, false},
	{"exact, decaying: decisions of the plain rule, %", "exact, decaying", set(1), same, 100, false},
	{"exact, staircase: decisions of the plain rule, %", "exact, staircase", set(1), same, 100, false},
}

// near is how near to the best of the other rules not_worth has to be at each price, in percent of what that one loses.
const near = 115

// few is how many times fewer runs are played for that than for a target, because 31 families add up.
const few = 5

// checkPrices prints how near not_worth is to the best of the other rules, and returns how many of the targets it misses.
func checkPrices(w io.Writer, given, fresh *bench) (missed int) {
	before, now := shares(losses(families, given.runs/few, given.base))
	_, other := shares(losses(families, fresh.runs/few, fresh.base))
	for j, price := range prices {
		word := ""
		if max(now[j], other[j]) > near {
			missed++
			word = "  MISSED"
		}
		name := fmt.Sprintf("not_worth %g, 31 families: regret, %% of the best rule's", price)
		fmt.Fprintf(w, "%-56s ≤ %7d %8.1f %8.1f %8.1f%s\n", name, near, before[j], now[j], other[j], word)
	}
	return missed
}

// bench measures families with seeds from a base.
type bench struct {
	runs  int
	base  uint64
	known map[string]measure
}

// rare is how many times as often a run for a target is simulated: luck is an event in a hundred, and a thousand runs are too
// few to count it.
const rare = 10

func (b *bench) measure(f *family, s setting, rules uint) (m measure) {
	key := fmt.Sprint(f.name, s, rules)
	if m, ok := b.known[key]; ok {
		return m
	}
	plan, full := s.plan(f, rules), 0.0
	open := s.with(endless)
	whole := open.plan(f, current)
	runs := b.runs
	if s.target != 0 {
		runs *= rare
	}
	for r := range runs {
		seed := b.base + uint64(r) + 1
		c := f.course(seed)
		e := c.play(plan)
		if e.early {
			m.early += 100
		}
		if e.target {
			m.reached += 100
		}
		if e.iterations <= 8 {
			m.within8 += 100
		}
		m.iterations += float64(e.iterations)
		m.calls += float64(e.calls) / float64(e.iterations)
		m.gain += c.gain(e.iteration)
		if s.target != 0 {
			continue // nobody asks for the rest
		}
		d := f.course(seed)
		full += d.gain(d.play(whole).iteration)
		if f.exact {
			d = f.course(seed)
			if p := d.follow(&s, plain); p.iterations == e.iterations && d.gain(p.iteration) == c.gain(e.iteration) {
				m.same += 100
			}
		}
	}
	m.share = m.gain / full * 100
	n := float64(runs)
	for _, x := range []*float64{&m.early, &m.within8, &m.iterations, &m.calls, &m.gain, &m.same, &m.reached} {
		*x /= n
	}
	b.known[key] = m
	return m
}

// check prints the targets, and reports whether all are met on both benches. The rules before are there for comparison, and
// the seeds of the second bench are those that no constant was chosen with.
func check(w io.Writer, given, fresh *bench) bool {
	missed, all := 0, slices.Concat(families, aims)
	fmt.Fprintf(w, "%d runs a row, %d for a target. sd: the standard deviation of one answer of the judge.\n", given.runs, rare*given.runs)
	fmt.Fprintf(w, "%-56s %9s %8s %8s %8s\n", "", "target", "before", "now", "fresh")
	for _, t := range targets {
		f := &all[slices.IndexFunc(all, func(f family) bool { return f.name == t.family })]
		now, other, sign, word := t.of(given.measure(f, t.setting, current)), t.of(fresh.measure(f, t.setting, current)), "≥", ""
		worst := min(now, other)
		if t.most {
			sign, worst = "≤", max(now, other)
		}
		if !(t.most && worst <= t.bound || !t.most && worst >= t.bound) {
			missed++
			word = "  MISSED"
		}
		fmt.Fprintf(w, "%-56s %s %7.4g %8.2f %8.2f %8.2f%s\n", t.name, sign, t.bound, t.of(given.measure(f, t.setting, 0)), now, other, word)
	}
	missed += checkPrices(w, given, fresh)
	fmt.Fprintf(w, "%d of %d targets are missed\n", missed, len(targets)+len(prices))
	return missed == 0
}
