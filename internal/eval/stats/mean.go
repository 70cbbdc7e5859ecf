// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// An Estimate is the mean of one version over cases.
type Estimate struct {
	Mean      float64 // NaN without a case
	Low, High float64 // interval of the mean, of confidence 1-Alpha
	Cases     int     // cases with a value
	Left      int     // cases left out, because they have none
	Units     int     // groups, and cases without a group
}

// Mean estimates the mean of the values A over all cases like these.
//
// For values from 0 to 1 the interval is Clopper's and Pearson's, for as many independent answers as would give the same
// standard error (Korn and Graubard). So 30 of 30 passed is 0.88 to 1.00, and no interval leaves 0 to 1. Other values have
// Student's t interval.
func Mean(obs []Observation, o Options) Estimate {
	e := Estimate{Mean: math.NaN(), Low: math.NaN(), High: math.NaN()}
	var values []value
	for i := range obs {
		weight, ok := weightOf(obs[i])
		a, okA := average(obs[i].A)
		if !ok || !okA {
			e.Left++
			continue
		}
		values = append(values, value{obs[i].Group, weight, a})
	}
	if e.Cases = len(values); e.Cases == 0 {
		return e
	}
	s := sampleOf(values)
	e.Mean, e.Units = s.mean, s.units
	if o.Unbounded {
		half := math.Inf(1)
		if s.freedom > 0 {
			half = tQuantile(o.alpha(), s.freedom) * s.err
		}
		e.Low, e.High = s.mean-half, s.mean+half
		return e
	}
	e.Low, e.High = s.proportion(o.alpha())
	return e
}

// proportion returns the interval of a mean of values from 0 to 1.
func (s sample) proportion(alpha float64) (low, high float64) {
	p := min(max(s.mean, 0), 1)
	n := s.effective
	if s.err > 0 && p > 0 && p < 1 {
		n = p * (1 - p) / (s.err * s.err)
		t := tQuantile(alpha, max(1, n-1)) / tQuantile(alpha, s.freedom) // the error is itself an estimate
		n *= min(1, t*t)
	}
	high = 1
	if p > tiny {
		low = betaQuantile(alpha/2, p*n, (1-p)*n+1)
	}
	if p < 1-tiny {
		high = betaQuantile(1-alpha/2, p*n+1, (1-p)*n)
	}
	return low, high
}
