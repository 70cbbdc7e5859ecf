// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"sort"
)

// A Verdict says how the new version compares with the old one.
type Verdict string

// The verdicts.
const (
	Better    Verdict = "better"
	Worse     Verdict = "worse"
	Same      Verdict = "same"        // the difference is smaller than the margin
	Undecided Verdict = "not decided" // the cases do not show which
)

// Least is the number of units that must differ for a verdict of better or worse: of equal versions, five that differ in
// one direction are more than 5% of the comparisons in which five differ.
const Least = 6

// A Comparison is how the new version (A) differs from the old one (B).
type Comparison struct {
	Difference float64 // mean of A minus mean of B; of [CompareRatio], the ratio A/B minus 1. NaN without a case
	Low, High  float64 // interval of the difference, of confidence 1-Alpha; infinite or NaN if unknown
	Verdict    Verdict

	Cases     int     // cases with a value on both sides
	Left      int     // cases left out, because a side has no value
	Units     int     // groups, and cases without a group
	Differing int     // units in which the versions differ; better and worse need [Least] of them
	Better    int     // cases in which A is better
	Worse     int     // cases in which A is worse
	Chance    float64 // cases that would be better, and as many that would be worse, if the versions were the same

	options Options
	alpha   float64
	ratio   bool
	values  []value
	sample  sample
}

// Compare compares the values of both versions on the same cases.
func Compare(obs []Observation, o Options) Comparison { return compare(obs, o, false) }

// CompareRatio compares positive quantities, such as cost or seconds, by the ratio of the means of each case. It works
// with logarithms, so that a case that costs much does not hide the others. A case with 0 on one side is left out, and one
// with 0 on both sides has the ratio 1. The margin is a ratio minus 1: 0.05 is 5% more or less.
func CompareRatio(obs []Observation, o Options) Comparison {
	o.Unbounded, o.Margin = true, math.Log1p(o.Margin)
	return compare(obs, o, true)
}

func compare(obs []Observation, o Options, ratio bool) Comparison {
	c := Comparison{options: o, ratio: ratio}
	for i := range obs {
		weight, ok := weightOf(obs[i])
		a, okA := average(obs[i].A)
		b, okB := average(obs[i].B)
		d := a - b
		if math.Abs(d) <= tiny*max(math.Abs(a), math.Abs(b)) {
			d = 0
		} else if ratio {
			d = math.Log(a / b) // not known if one side is zero or negative
		}
		if !ok || !okA || !okB || !isFinite(d) {
			c.Left++
			continue
		}
		c.Cases++
		c.values = append(c.values, value{obs[i].Group, weight, d})
		if o.LowerIsBetter {
			d = -d
		}
		if d > 0 {
			c.Better++
		} else if d < 0 {
			c.Worse++
		}
		c.Chance += chance(obs[i])
	}
	if c.Cases > 0 {
		c.sample = sampleOf(c.values)
	}
	c.decide(o.alpha())
	return c
}

// decide computes the interval and the verdict at a share of false verdicts.
func (c *Comparison) decide(alpha float64) {
	c.Verdict, c.alpha = Undecided, alpha
	c.Difference, c.Low, c.High = math.NaN(), math.NaN(), math.NaN()
	if c.Cases == 0 {
		return
	}
	s := c.sample
	c.Units, c.Differing, c.Difference = s.units, s.differing, s.mean
	c.Low, c.High = c.interval(alpha)
	margin := c.options.Margin
	if margin > 0 {
		if low, high := c.interval(2 * alpha); -margin <= low && high <= margin {
			c.Verdict = Same
		}
	}
	if c.Verdict != Same && s.differing >= Least && isFinite(s.mean) && (c.Low > 0 || c.High < 0) {
		c.Verdict = Worse
		if s.mean > 0 != c.options.LowerIsBetter {
			c.Verdict = Better
		}
	}
	if c.ratio {
		c.Difference, c.Low, c.High = math.Expm1(s.mean), math.Expm1(c.Low), math.Expm1(c.High)
	}
}

// interval returns the interval of the difference; infinite if it is unknown. It reaches to 0 if chance gives such a difference more
// often than in a share alpha of comparisons.
func (c *Comparison) interval(alpha float64) (low, high float64) {
	low, high = c.student(alpha)
	if (low > 0 || high < 0) && c.sample.differing >= Least && c.sample.bySigns() > alpha {
		low, high = min(low, 0), max(high, 0)
	}
	return low, high
}

// student returns Student's interval of the difference, but wider where that knows too little, because few units differ, or all by the
// same: the difference of a unit is at most 1.
func (c *Comparison) student(alpha float64) (low, high float64) {
	s := c.sample
	half := 0.0
	switch {
	case s.freedom > 0:
		half = tQuantile(alpha, s.freedom) * s.err
	case c.options.Unbounded:
		half = math.Inf(1)
	}
	if c.options.Unbounded {
		return s.mean - half, s.mean + half
	}
	outer := max(half, s.rare(alpha/2)) // the side that is farther from 0
	if s.err == 0 || s.differing < Least {
		half = max(half, unseen(alpha/2, s.effective))
		outer = max(half, outer)
	}
	switch low, high = s.mean-half, s.mean+half; {
	case s.mean > 0:
		high = s.mean + outer
	case s.mean < 0:
		low = s.mean - outer
	default:
		low, high = -outer, outer
	}
	return max(low, -1), min(high, 1)
}

// rare returns by how much more the units may differ on average, because more of them differ than here: up to the bound of
// Clopper and Pearson. Differences that are rare and have one direction are skew, so that half the width of Student's interval
// is too little on the side that is farther from 0.
func (s *sample) rare(tail float64) float64 {
	if s.differing == s.units {
		return 0
	}
	size := s.size
	if s.differing < Least { // too few to know the size of others
		size = 1
	}
	k := float64(s.differing) / float64(s.units)
	return size * (betaQuantile(1-tail, k*s.effective+1, (1-k)*s.effective) - k)
}

// err returns the standard error that the interval stands for; 0 if it is unknown.
func (c *Comparison) err() float64 {
	s := c.sample
	switch {
	case s.freedom == 0:
		return 0
	case c.options.Unbounded || s.err > 0 && s.differing >= Least:
		return s.err
	}
	return max(s.err, unseen(c.alpha/2, s.effective)/tQuantile(c.alpha, s.freedom))
}

// power is the share of comparisons that see a difference of the size that [Comparison.Detectable] returns.
const power = 0.8

// reach returns how many standard errors a difference must have to be seen in that share of comparisons: 2.8 with many cases.
func (c *Comparison) reach(freedom float64) float64 {
	return tQuantile(c.alpha, freedom) + tQuantile(2*(1-power), freedom)
}

// Detectable returns the smallest true difference that is seen in 80% of such comparisons; 0 if the cases do not say, and infinite if that
// is more than values from 0 to 1 can differ by. Of [CompareRatio] it is a ratio minus 1.
func (c *Comparison) Detectable() float64 {
	if c.sample.freedom == 0 {
		return 0
	}
	d := c.reach(c.sample.freedom) * c.err()
	if c.ratio {
		return math.Expm1(d)
	}
	if !c.options.Unbounded && d > 1 {
		return math.Inf(1)
	}
	return d
}

// mostCases is the largest answer of [Comparison.Needed].
const mostCases = 1e9

// Needed returns how many cases it takes to see a true difference in 80% of comparisons, with as many repeats, and as many
// cases in a group, as now. It returns 0 if the cases do not say. Of [CompareRatio], difference is a ratio minus 1.
func (c *Comparison) Needed(difference float64) int {
	if c.ratio {
		difference = math.Log1p(difference)
	}
	err, difference := c.err(), math.Abs(difference)
	if err == 0 || difference == 0 || !isFinite(difference) || !isFinite(err) {
		return 0
	}
	enough := func(cases int) bool {
		times := float64(cases) / float64(c.Cases)
		return c.reach(max(1, c.sample.freedom*times))*err/math.Sqrt(times) <= difference
	}
	return Least + sort.Search(mostCases-Least, func(i int) bool { return enough(Least + i) })
}
