// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// beta returns the regularised incomplete beta function I_x(a, b): the share of a beta distribution below x. a and b are
// positive.
func beta(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // the fraction converges fast below this point
		return 1 - beta(1-x, b, a)
	}
	return math.Exp(logGamma(a+b)-logGamma(a)-logGamma(b)+a*math.Log(x)+b*math.Log1p(-x)) / a / fraction(x, a, b)
}

// fraction returns the continued fraction 1 + d1/(1 + d2/(1 + …)) of the incomplete beta function by Lentz's method.
func fraction(x, a, b float64) float64 {
	const least = 1e-300 // in place of a zero that would be divided by
	nonzero := func(f float64) float64 {
		if math.Abs(f) < least {
			return least
		}
		return f
	}
	f, c, d := 1.0, 1.0, 0.0
	for m := 1.0; m < 1e5; m++ {
		i := math.Floor(m / 2)
		term := i * (b - i) * x / ((a + 2*i - 1) * (a + 2*i)) // of an even m
		if int(m)%2 == 1 {
			term = -(a + i) * (a + b + i) * x / ((a + 2*i) * (a + 2*i + 1))
		}
		d = 1 / nonzero(1+term*d)
		c = nonzero(1 + term/c)
		f *= c * d
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return f
}

// betaQuantile returns the x below which a beta distribution has the share p; 0 for one that is below 1e-15, and NaN
// if a or b is infinite or unknown. It takes Newton's steps, and halves the interval where such a step would leave it.
func betaQuantile(p, a, b float64) float64 {
	scale := logGamma(a+b) - logGamma(a) - logGamma(b)
	low, high := 0.0, 1.0
	for x := a / (a + b); ; {
		off := beta(x, a, b) - p
		if math.IsNaN(off) { // no halving would end
			return math.NaN()
		}
		if off < 0 {
			low = x
		} else {
			high = x
		}
		if high < 1e-15 { // with a small a, the quantile may be below every float
			return 0
		}
		next := x - off/math.Exp(scale+(a-1)*math.Log(x)+(b-1)*math.Log1p(-x))
		if !(low < next && next < high) {
			next = (low + high) / 2
		}
		if math.Abs(next-x) <= 1e-12*x || high-low <= 1e-12*high {
			return next
		}
		x = next
	}
}

func logGamma(x float64) float64 {
	y, _ := math.Lgamma(x)
	return y
}

// manyDegrees is from where on t is the normal distribution but for one small term.
const manyDegrees = 1e7

// tails returns the share of Student's t distribution that is farther from 0 than t, on both sides.
func tails(t, freedom float64) float64 {
	switch t = math.Abs(t); {
	case math.IsInf(t, 0):
		return 0
	case freedom > manyDegrees:
		return math.Erfc(t / math.Sqrt2)
	}
	return beta(freedom/(freedom+t*t), freedom/2, 0.5)
}

// tQuantile returns the t that leaves the share alpha outside of -t to t: 2.045 for 0.05 and 29 degrees of freedom.
// alpha is between 0 and 1.
func tQuantile(alpha, freedom float64) float64 {
	z := math.Sqrt2 * math.Erfinv(1-alpha)
	if freedom > manyDegrees {
		return z + (z*z*z+z)/(4*freedom)
	}
	scale := logGamma((freedom+1)/2) - logGamma(freedom/2) - math.Log(freedom*math.Pi)/2
	// Newton's method from z, which is always below: the tail is convex there, so no step goes too far.
	t := z
	for range 200 {
		density := math.Exp(scale - (freedom+1)/2*math.Log1p(t*t/freedom))
		step := (tails(t, freedom) - alpha) / (2 * density)
		t += step
		if math.Abs(step) <= 1e-12*t {
			break
		}
	}
	return t
}
