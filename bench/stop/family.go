// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"
)

// version is the truth about what an iteration has made: its quality, and for some families what it can become.
type version struct{ quality, ceiling, maturity float64 }

// family is a kind of course: how a version follows from another, and how the judge errs. The unit of quality is the
// standard deviation of one answer, if nothing else is written.
type family struct {
	name     string
	start    version
	next     func(v version, iteration int, r *rand.Rand) version
	answer   func(quality float64, iteration int, r *rand.Rand) float64 // nil: normal, with a deviation of 1
	lower    bool                                                       // lower is better
	percent  bool                                                       // min_delta_percent: 1 in place of min_delta
	exact    bool                                                       // there is no judge
	improves bool                                                       // every stop by convergence is early
	unit     float64                                                    // the deviation at the start; 0: 1
}

func (f *family) deviation() float64 {
	if f.unit == 0 {
		return 1
	}
	return f.unit
}

func gains(by func(iteration int) float64) func(version, int, *rand.Rand) version {
	return func(v version, i int, _ *rand.Rand) version {
		v.quality += by(i)
		return v
	}
}

func steady(by float64) func(version, int, *rand.Rand) version {
	return gains(func(int) float64 { return by })
}

func until(by float64, last int) func(version, int, *rand.Rand) version {
	return gains(func(i int) float64 {
		if i > last {
			return 0
		}
		return by
	})
}

func stairs(by float64, every int) func(version, int, *rand.Rand) version {
	return gains(func(i int) float64 {
		if i%every != 2 {
			return 0
		}
		return by
	})
}

func changes(mean, deviation float64) func(version, int, *rand.Rand) version {
	return func(v version, _ int, r *rand.Rand) version {
		v.quality += mean + deviation*r.NormFloat64()
		return v
	}
}

func shrinks(share float64) func(version, int, *rand.Rand) version {
	return func(v version, _ int, _ *rand.Rand) version {
		v.quality *= 1 - share
		return v
	}
}

func relative(deviation float64) func(float64, int, *rand.Rand) float64 {
	return func(q float64, _ int, r *rand.Rand) float64 { return q * (1 + deviation*r.NormFloat64()) }
}

// whole is a judge who gives whole numbers from 1 to 10.
func whole(q float64, _ int, r *rand.Rand) float64 {
	return min(10, max(1, math.Round(q+r.NormFloat64())))
}

// tails is a judge whose errors have Student's t distribution with 3 degrees of freedom, of deviation 1.
func tails(q float64, _ int, r *rand.Rand) float64 {
	sum := 0.0
	for range 3 {
		x := r.NormFloat64()
		sum += x * x
	}
	return q + r.NormFloat64()/math.Sqrt(sum)
}

// skewed is a measurement that is seldom much too small and sometimes much too large.
func skewed(deviation float64) func(float64, int, *rand.Rand) float64 {
	return func(q float64, _ int, r *rand.Rand) float64 { return q * (1 + deviation*(r.ExpFloat64()-1)) }
}

// ceilings is a course of approaches, each with a best that it can reach. One in ten changes begins another.
func ceilings(v version, _ int, r *rand.Rand) version {
	switch u := r.Float64(); {
	case u < 0.1:
		v.ceiling, v.maturity = 10*math.Pow(r.Float64(), 0.8), 0.5
	case u < 0.55:
		v.maturity += r.ExpFloat64() / 2
	default:
		v.maturity = max(0, v.maturity-0.3*r.ExpFloat64())
	}
	v.quality = v.ceiling * (1 - math.Exp(-v.maturity))
	return v
}

// passing is the number of 20 tests that pass.
func passing(v version, _ int, r *rand.Rand) version {
	for range 2 {
		if r.Float64() < (20-v.quality)/20*1.1 {
			v.quality++
		}
	}
	if r.Float64() < 0.2 {
		v.quality--
	}
	v.quality = min(20, max(0, v.quality))
	return v
}

// even is a judge who is off by up to most, each amount alike; normal one of a deviation.
func even(most float64) func(float64, int, *rand.Rand) float64 {
	return func(q float64, _ int, r *rand.Rand) float64 { return q + most*(2*r.Float64()-1) }
}

func normal(deviation float64) func(float64, int, *rand.Rand) float64 {
	return func(q float64, _ int, r *rand.Rand) float64 { return q + deviation*r.NormFloat64() }
}

var (
	five    = version{quality: 5}
	hundred = version{quality: 100}
)

// families are those of the targets and of the comparison.
var families = []family{
	{name: "flat", start: five, next: steady(0)},
	{name: "+0.1", start: five, next: steady(0.1), improves: true},
	{name: "+0.2", start: five, next: steady(0.2), improves: true},
	{name: "+0.3", start: five, next: steady(0.3), improves: true},
	{name: "+0.5", start: five, next: steady(0.5), improves: true},
	{name: "+1", start: five, next: steady(1), improves: true},
	{name: "+2", start: five, next: steady(2), improves: true},
	{name: "decaying 1.5·0.7^i", start: five, next: gains(func(i int) float64 { return 1.5 * math.Pow(0.7, float64(i-2)) })},
	{name: "+1 to 4, then flat", start: five, next: until(1, 4)},
	{name: "+0.5 to 8, then flat", start: five, next: until(0.5, 8)},
	{name: "staircase", start: five, next: stairs(1.5, 4), improves: true},
	{name: "N(-0.1, 0.6)", start: five, next: changes(-0.1, 0.6)},
	{name: "N(0.2, 0.6)", start: five, next: changes(0.2, 0.6)},
	{name: "saw-tooth", start: five, next: gains(func(i int) float64 { return []float64{1, -0.7}[i%2] })},
	{name: "declining", start: five, next: steady(-0.3)},
	{name: "cliff at 7", start: five, next: gains(func(i int) float64 {
		switch {
		case i < 7:
			return 0.5
		case i == 7:
			return -4
		}
		return 0
	})},
	{name: "hidden ceilings", start: version{10 * 0.57 * 0.3935, 5.7, 0.5}, next: ceilings},
	{name: "1 to 10, flat", start: version{quality: 6.4}, next: steady(0), answer: whole},
	{name: "1 to 10, +0.3", start: version{quality: 4}, next: steady(0.3), answer: whole, improves: true},
	{name: "tails, flat", start: five, next: steady(0), answer: tails},
	{name: "tails, +0.3", start: five, next: steady(0.3), answer: tails, improves: true},
	{name: "milder, flat", start: five, next: steady(0), answer: func(q float64, i int, r *rand.Rand) float64 { return q + 0.1*float64(i) + r.NormFloat64() }},
	{name: "stricter, +0.3", start: five, next: steady(0.3), answer: func(q float64, i int, r *rand.Rand) float64 { return q - 0.1*float64(i) + r.NormFloat64() }, improves: true},
	{name: "-1.5 %", unit: 2, start: hundred, next: shrinks(0.015), answer: relative(0.02), lower: true, percent: true, improves: true},
	{name: "-3 %", unit: 4, start: hundred, next: shrinks(0.03), answer: relative(0.04), lower: true, percent: true, improves: true},
	{name: "-5 %", unit: 8, start: hundred, next: shrinks(0.05), answer: relative(0.08), lower: true, percent: true, improves: true},
	{name: "time, flat", unit: 4, start: hundred, next: shrinks(0), answer: relative(0.04), lower: true, percent: true},
	{name: "time, skewed", unit: 4, start: hundred, next: shrinks(0.03), answer: skewed(0.04), lower: true, percent: true, improves: true},
	{name: "tests of 20", start: version{quality: 6}, next: passing, exact: true},
	{name: "exact, decaying", start: five, next: gains(func(i int) float64 { return 1.6 * math.Pow(0.6, float64(i-2)) }), exact: true},
	{name: "exact, staircase", start: five, next: stairs(1, 3), exact: true, improves: true},
}

// aims are families for a target of 9: all versions are a little below it, or the fourth is above it.
var aims = []family{
	{name: "8.5, even", start: version{quality: 8.5}, next: steady(0), answer: even(1)},
	{name: "8.5, normal", start: version{quality: 8.5}, next: steady(0), answer: normal(0.6)},
	{name: "8.5, tails", start: version{quality: 8.5}, next: steady(0), answer: func(q float64, i int, r *rand.Rand) float64 { return q + 0.6*(tails(q, i, r)-q) }},
	{name: "8.5, whole", start: version{quality: 8.5}, next: steady(0), answer: func(q float64, _ int, r *rand.Rand) float64 { return math.Round(q + 0.6*r.NormFloat64()) }},
	{name: "9.5, even", start: version{quality: 8}, next: gains(fourth), answer: even(1)},
	{name: "9.5, normal", start: version{quality: 8}, next: gains(fourth), answer: normal(0.6)},
}

func fourth(i int) float64 {
	if i == 4 {
		return 1.5
	}
	return 0
}

// others are families that no constant was chosen with. They are reported, and no target.
var others = []family{
	{name: "+0.4", start: five, next: steady(0.4), improves: true},
	{name: "two climbs", start: five, next: gains(func(i int) float64 { return []float64{0.6, 0.6, 0.6, 0, 0, 0, 0.6, 0.6, 0.6, 0, 0, 0}[(i-1)%12] })},
	{name: "growing gains", start: five, next: gains(func(i int) float64 { return 0.08 * float64(i) }), improves: true},
	{name: "rare leaps", start: five, next: func(v version, _ int, r *rand.Rand) version {
		if r.Float64() < 0.2 {
			v.quality += 2
		}
		return v
	}, improves: true},
	{name: "half points, +0.3", start: five, next: steady(0.3), answer: func(q float64, _ int, r *rand.Rand) float64 {
		return math.Round(2*(q+r.NormFloat64())) / 2
	}, improves: true},
	{name: "uniform errors, flat", start: five, next: steady(0), answer: func(q float64, _ int, r *rand.Rand) float64 {
		return q + math.Sqrt(12)*(r.Float64()-0.5)
	}},
	{name: "noise grows, +0.3", start: five, next: steady(0.3), answer: func(q float64, i int, r *rand.Rand) float64 {
		return q + (0.6+0.07*float64(i))*r.NormFloat64()
	}, improves: true},
	{name: "late start", start: five, next: gains(func(i int) float64 {
		if i <= 6 {
			return 0
		}
		return 0.6
	}), improves: true},
	{name: "one leap at 5", start: five, next: gains(func(i int) float64 {
		if i == 5 {
			return 2
		}
		return 0
	})},
	{name: "wave", start: five, next: gains(func(i int) float64 { return 0.8 * math.Cos(float64(i)) })},
	{name: "decaying 0.5·0.9^i", start: five, next: gains(func(i int) float64 { return 0.5 * math.Pow(0.9, float64(i-2)) })},
	{name: "decaying 2·0.5^i", start: five, next: gains(func(i int) float64 { return 2 * math.Pow(0.5, float64(i-2)) })},
	{name: "N(0, 0.3)", start: five, next: changes(0, 0.3)},
	{name: "N(0, 1)", start: five, next: changes(0, 1)},
	{name: "-0.1", start: five, next: steady(-0.1)},
	{name: "random slope", start: five, next: func(v version, _ int, r *rand.Rand) version {
		if v.ceiling == 0 {
			v.ceiling = r.NormFloat64() / 2
		}
		v.quality += v.ceiling
		return v
	}},
	{name: "random gain and decay", start: five, next: func(v version, _ int, r *rand.Rand) version {
		if v.ceiling == 0 {
			v.ceiling, v.maturity = r.ExpFloat64()/2, 0.6+0.4*r.Float64()
		}
		v.quality += v.ceiling
		v.ceiling *= v.maturity
		return v
	}},
	{name: "exact, N(0.2, 0.6)", start: five, next: changes(0.2, 0.6), exact: true},
	{name: "exact, +1 to 4", start: five, next: until(1, 4), exact: true},
}
