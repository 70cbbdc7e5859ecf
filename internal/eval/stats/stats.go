// SPDX-License-Identifier: Apache-2.0

// Package stats decides whether one version of something is better than another, from the values that both have on the
// same cases. It is pure: no clock, no I/O and no randomness but that of a fixed seed.
//
//	c := stats.Compare(observations, stats.Options{Margin: 0.02})
//	fmt.Println(c.Verdict, c.Difference, c.Low, c.High) // better 0.13 0.02 0.24
//
// A case is one observation: the mean of its repeats, new minus old. Cases of one group may fail together, so the group
// is then the unit that is counted. The interval is Student's t over the units; it reaches to 0 if signs drawn by chance give such a
// difference too often.
package stats

import "math"

// An Observation is what one case has given. A value that is NaN or infinite is unknown, and is left out; a case
// without any known value on a side that is needed is left out too.
type Observation struct {
	Case   string
	Group  string    // cases of the same group are one unit; "" for a case that is a unit of its own
	Weight float64   // 0 is 1; a case with a negative or infinite weight is left out
	A      []float64 // one value for each repeat of the new version
	B      []float64 // the same of the old version; empty if there is only one version
}

// Options say how values are read. The zero value fits values from 0 to 1, such as passed (1) or failed (0), of which the
// larger ones are better.
type Options struct {
	Unbounded     bool    // values may be larger than 1 or negative: seconds, cost, tokens
	LowerIsBetter bool    // a smaller value is better
	Margin        float64 // a difference up to this one does not matter; 0 if every difference does
	Alpha         float64 // share of false verdicts between equal versions; 0 is 0.05
}

func (o Options) alpha() float64 {
	if o.Alpha > 0 {
		return o.Alpha
	}
	return 0.05
}

// value is one number of a case.
type value struct {
	group     string
	weight, x float64
}

// weightOf returns the weight of a case, and whether the case counts.
func weightOf(o Observation) (float64, bool) {
	if o.Weight == 0 {
		return 1, true
	}
	return o.Weight, o.Weight > 0 && isFinite(o.Weight)
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// average returns the mean of the known values, and whether there is one.
func average(values []float64) (mean float64, ok bool) {
	n := 0.0
	for _, x := range values {
		if isFinite(x) {
			n++
			mean += (x - mean) / n
		}
	}
	return mean, n > 0 && isFinite(mean)
}

// A sample is the weighted mean of values with its standard error.
type sample struct {
	mean      float64
	err       float64   // standard error of the mean; 0 if all units have the same value, or if there is only one unit
	freedom   float64   // degrees of freedom of the standard error; 0 with one unit
	units     int       // groups, and cases without a group
	effective float64   // units of equal weight that would know as much; at most units
	differing int       // units whose sum is not zero
	size      float64   // root mean square of the means of these units
	sums      []float64 // of the values of these units, times their weights
}

// tiny is the relative size below which a number is only an error of rounding.
const tiny = 1e-9

// unit is a group, or a case without one: its share of all weights, and the sums of its values and residuals times theirs.
type unit struct{ share, sum, residual float64 }

// sampleOf adds up the residuals of each group before it squares them. The variance of the mean is that of the jackknife which
// leaves out one unit after the other. With G units of equal weight it is
//
//	G/(G-1) * sum over units of (sum of the unit's weighted residuals)² / (sum of weights)²
//
// with G-1 degrees of freedom. A unit that has half of the weight pulls the mean to its own value, so that its residual is too
// small. There the formula above gives up to 34% false verdicts, the jackknife with [sample.effective]-1 degrees less than 6%.
func sampleOf(values []value) (s sample) {
	var total, size float64
	for _, v := range values {
		total += v.weight
		size = max(size, math.Abs(v.x))
	}
	for _, v := range values {
		s.mean += v.weight / total * v.x
	}
	var units []unit
	groups := make(map[string]int)
	for _, v := range values {
		i, ok := groups[v.group]
		if !ok || v.group == "" {
			i, units = len(units), append(units, unit{})
		}
		if v.group != "" {
			groups[v.group] = i
		}
		share := v.weight / total
		units[i].share += share
		units[i].sum += share * v.x
		units[i].residual += share * (v.x - s.mean)
	}
	s.units = len(units)
	var shares, squares, differing float64
	for _, u := range units {
		shares += u.share * u.share
		if math.Abs(u.sum) > tiny*u.share*size {
			s.differing++
			differing += u.share
			s.size += u.sum * u.sum / u.share
			s.sums = append(s.sums, u.sum)
		}
		if math.Abs(u.residual) > tiny*u.share*size {
			squares += math.Pow(u.residual/(1-u.share), 2)
		}
	}
	if s.differing > 0 {
		s.size = math.Sqrt(s.size / differing)
	}
	s.effective = 1 / shares
	if s.effective > 1+tiny {
		s.err, s.freedom = math.Sqrt(squares*(1-1/float64(s.units))), max(1, s.effective-1)
	}
	return s
}

// unseen returns the largest share of units that may behave in a way that none of n units has shown, with confidence
// 1-tail: 1-tail^(1/n), about 3/n for tail 0.05.
func unseen(tail, n float64) float64 { return -math.Expm1(math.Log(tail) / n) }
