// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/refrain-dev/refrain/loop"
)

// comparison is a judge who sees two versions, and says on a scale of five by how much the first is better.
type comparison struct {
	off   float64 // standard deviation of a comparison; √2: each version is judged apart
	unit  float64 // what a step on the scale is worth
	first float64 // what the judge adds to the version in the first place
}

// compare is one answer about the version of an iteration and its rival, which is in the first place if they are swapped.
func (c *course) compare(i int, t *loop.Tally, swapped bool) float64 {
	c.calls++
	other, sign := cmp.Or(t.Rival.Iteration, i), 1.0
	if swapped {
		sign = -1
	}
	d := sign*(c.versions[i].quality-c.versions[other].quality) + c.pairs.first + c.pairs.off*c.answers.NormFloat64()
	return min(2, max(-2, math.Round(d/c.pairs.unit)))
}

// drifting are families whose judge changes its scale from call to call, or uses little of it. Comparisons have neither fault.
var drifting = []family{
	{name: "milder by 0.3, flat", start: five, next: steady(0), answer: drift(0.3)},
	{name: "milder by 0.3, staircase", start: five, next: stairs(1.5, 4), answer: drift(0.3), improves: true},
	{name: "stricter by 0.3, +0.3", start: five, next: steady(0.3), answer: drift(-0.3), improves: true},
	{name: "7 to 9, flat", start: five, next: steady(0), answer: narrow},
	{name: "7 to 9, +0.3", start: five, next: steady(0.3), answer: narrow, improves: true},
	{name: "7 to 9, staircase", start: five, next: stairs(1.5, 4), answer: narrow, improves: true},
}

func drift(by float64) func(float64, int, *rand.Rand) float64 {
	return func(q float64, i int, r *rand.Rand) float64 { return q + by*float64(i) + r.NormFloat64() }
}

// narrow is a judge who says 7, 8 or 9 to everything between 4 and 10.
func narrow(q float64, _ int, r *rand.Rand) float64 {
	return min(9, max(7, math.Round(7.5+(q+r.NormFloat64()-5)/3)))
}

// judge is a way to judge with a number of calls an iteration.
type judge struct {
	name  string
	pairs *comparison // nil: marks
	calls uint
}

func (j *judge) plan(f *family, s setting) *loop.Plan {
	p := s.plan(f, current)
	if j.pairs != nil {
		p.Score.Judge.Compare = loop.CompareBest
	}
	return p
}

// comparePairs prints what comparisons and absolute marks come to at equal numbers of calls.
func comparePairs(w io.Writer, runs int, base uint64) {
	var judges []judge
	for _, calls := range []uint{2, 3, 4} {
		judges = append(judges, judge{fmt.Sprintf("%d marks", calls), nil, calls})
	}
	for _, calls := range []uint{2, 4} {
		for _, off := range []float64{math.Sqrt2, 1, 0.7} {
			judges = append(judges, judge{fmt.Sprintf("%d comparisons, off by %.1f", calls, off), &comparison{off, 1, 0}, calls})
		}
	}
	judges = append(judges, judge{"4, off by 1.4, first +0.5", &comparison{math.Sqrt2, 1, 0.5}, 4},
		judge{"4, off by 1.4, steps of 0.5", &comparison{math.Sqrt2, 0.5, 0}, 4},
		judge{"4, off by 1.4, steps of 2", &comparison{math.Sqrt2, 2, 0}, 4})
	judged := slices.DeleteFunc(slices.Clone(families), func(f family) bool { return f.exact || f.percent })
	for _, fs := range [][]family{judged, drifting} {
		fmt.Fprintf(w, "Mean regret over %d families by the price of an iteration, and the gain without convergence, without and with rollback\n%-28s", len(fs), "")
		for _, price := range prices {
			fmt.Fprintf(w, "%8.2f", price)
		}
		for _, j := range judges {
			fmt.Fprintf(w, "\n%-28s", j.name)
			for _, price := range prices {
				s, sum := set(j.calls), 0.0
				s.delta = price
				for k := range fs {
					f := &fs[k]
					plan := j.plan(f, s)
					for r := range runs {
						seed := base + uint64(r) + 1
						c := f.course(seed)
						c.pairs = j.pairs
						e := c.play(plan)
						sum += f.course(seed).oracle(int(s.limit), each(f, &s, price)) - c.gain(e.iteration) +
							price*float64(e.iterations) + price/10*float64(e.calls)
					}
				}
				fmt.Fprintf(w, "%8.2f", sum/float64(runs*len(fs)))
			}
			for _, roll := range []bool{false, true} {
				s, sum := set(j.calls).with(endless), 0.0
				s.rollback = roll
				for k := range fs {
					plan := j.plan(&fs[k], s)
					for r := range runs {
						c := fs[k].course(base + uint64(r) + 1)
						c.pairs = j.pairs
						e := c.play(plan)
						sum += c.gain(e.iteration)
					}
				}
				fmt.Fprintf(w, "%8.2f", sum/float64(runs*len(fs)))
			}
		}
		fmt.Fprintln(w)
	}
}
