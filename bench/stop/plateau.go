// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/refrain-dev/refrain/loop"
)

// approaches are worlds in which a change makes a version of the same approach better or worse, or, one time in ten, tries
// another one. Each approach has a best that it can reach, of 10. An approach is drawn by its number, from 0.
var approaches = []struct {
	name string
	draw func(number int, r *rand.Rand) float64
}{
	{"differ a lot", func(_ int, r *rand.Rand) float64 { return 10 * math.Pow(r.Float64(), 0.8) }},
	{"differ", func(_ int, r *rand.Rand) float64 { return 5 + 4*r.Float64() }},
	{"are alike", func(int, *rand.Rand) float64 { return 7 }},
	{"first is best", func(n int, r *rand.Rand) float64 {
		if n == 0 {
			return 8
		}
		return 2 + 4*r.Float64()
	}},
}

// legs are what a loop does on a plateau. Another model tries another approach four times in ten.
var legs = []struct {
	name string
	legs []loop.Leg
}{
	{"stop", nil},
	{"another model", []loop.Leg{{Model: "other"}}},
	{"afresh", []loop.Leg{{Fresh: true}}},
	{"another model, then afresh", []loop.Leg{{Model: "other"}, {Fresh: true}}},
}

// legCourse returns a course of a world, whose loop heeds its legs.
func legCourse(draw func(int, *rand.Rand) float64, seed uint64) *course {
	world, number, jump := rand.New(rand.NewPCG(seed, 3)), 0, 0.1
	fresh := func() version {
		number++
		top := draw(number-1, world)
		return version{top * (1 - math.Exp(-0.5)), top, 0.5}
	}
	f := &family{start: fresh(), answer: normal(0.5), next: func(v version, _ int, r *rand.Rand) version {
		switch u := r.Float64(); {
		case u < jump:
			return fresh()
		case u < jump+(1-jump)/2:
			v.maturity += r.ExpFloat64() / 2
		default:
			v.maturity = max(0, v.maturity-0.3*r.ExpFloat64())
		}
		v.quality = v.ceiling * (1 - math.Exp(-v.maturity))
		return v
	}}
	c := f.course(seed)
	c.begin = func(l *loop.Leg) {
		if l.Model != "" {
			jump = 0.4
		}
		if l.Fresh {
			c.now, c.made = fresh(), true
		}
	}
	return c
}

// plateaus prints what legs come to: the quality that is handed back, iterations, calls of the judge, and the mean regret against an oracle
// that knows which of the legs are the best for each course, and when to stop.
func plateaus(w io.Writer, runs int, base uint64) {
	worths := []float64{0.02, 0.05, 0.1}
	s := set(3).with(rolls)
	s.limit = 40
	fmt.Fprintf(w, "Legs, with at most %d iterations, judge off by 0.5; regret by the price of an iteration\n%-16s%-28s%8s%11s%8s%8.2f%8.2f%8.2f\n",
		s.limit, "Approaches", "On a plateau", "quality", "iterations", "calls", worths[0], worths[1], worths[2])
	for _, a := range approaches {
		quality, iterations, calls := make([]float64, len(legs)), make([]float64, len(legs)), make([]float64, len(legs))
		regrets := make([][3]float64, len(legs))
		n := float64(runs)
		for r := range runs {
			most, got := [3]float64{math.Inf(-1), math.Inf(-1), math.Inf(-1)}, make([][3]float64, len(legs))
			for i, l := range legs {
				c := legCourse(a.draw, base+uint64(r)+1)
				p := s.plan(c.family, current)
				p.OnPlateau = l.legs
				e := c.play(p)
				q := c.versions[e.iteration].quality
				quality[i], iterations[i], calls[i] = quality[i]+q/n, iterations[i]+float64(e.iterations)/n, calls[i]+float64(e.calls)/n
				for k, price := range worths {
					got[i][k] = q - price*float64(e.iterations) - price/10*float64(e.calls)
					best := math.Inf(-1)
					for j, v := range c.versions[1:] {
						best = max(best, v.quality)
						most[k] = max(most[k], best-1.3*price*float64(j+1))
					}
				}
			}
			for i := range legs {
				for k := range worths {
					regrets[i][k] += (most[k] - got[i][k]) / n
				}
			}
		}
		for i, l := range legs {
			fmt.Fprintf(w, "%-16s%-28s%8.2f%11.1f%8.1f%8.2f%8.2f%8.2f\n", a.name, l.name, quality[i], iterations[i], calls[i], regrets[i][0], regrets[i][1], regrets[i][2])
		}
	}
}
