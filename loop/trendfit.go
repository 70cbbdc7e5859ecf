// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"math"
	"slices"
)

// trendFit is a curve through the last scores, fitted by least squares. It says how the gains are expected to continue,
// and how far a single score may differ from the curve.
type trendFit struct {
	scores  [courseWindow]float64 // the first n are used, as differences from their mean; more is better
	n       int
	mean    float64
	squares float64 // sum of the squares of scores
	noise   float64 // noise of the judge
	fits    [gridSize]curve
	best    curve
	spread  float64 // one standard deviation of a score

	proves   bool    // convergence needs proof; see weigh
	points   []point // the scores that the proof uses
	variance float64 // variance of one answer of the judge
}

// curve is a curve through the scores. Each gain is the one before it times ratio. level is the curve's last score, and
// next the gain after it. squares is the sum of the squared distances between the scores and the curve.
type curve struct{ ratio, level, next, squares float64 }

const (
	courseWindow = 8    // number of recent scores that a course uses
	leastError   = 0.01 // least error of a score, as a share of the range of the scores
	likelyWidth  = 2.5  // standard deviations by which a likely curve may differ from the best
	maxResidual  = 0.4  // a curve is discarded if it leaves more than this share of the variance
	gridSize     = 20   // number of ratios that are tried, up to 1
)

// fitScores fits a curve to the recent scores. ok is false if the scores go up and down, or if no curve comes near them.
// After a rollback the next iteration starts from the best version, so in a plan with rollbacks each score counts as
// the best score up to then.
func (c *trendFit) fitScores(p *Plan, scores []float64, noise float64) (ok bool) {
	c.noise = noise
	c.n = min(len(scores), courseWindow)
	recent := c.scores[:c.n]
	copy(recent, scores[len(scores)-c.n:])
	if p.Score.LowerIsBetter {
		for i := range recent {
			recent[i] = -recent[i]
		}
	}
	if p.OnRegression == RollbackOnWorse {
		best, sign := recent[0], p.Score.sense()
		for _, x := range scores[:len(scores)-c.n] {
			best = max(best, sign*x)
		}
		for i, x := range recent {
			best = max(best, x)
			recent[i] = best
		}
	}
	way := trend(recent, noise)
	if way == Oscillating {
		return false
	}
	lo, hi, sum := slices.Min(recent), slices.Max(recent), 0.0
	for _, x := range recent {
		sum += x
	}
	c.mean, c.squares = sum/float64(c.n), 0
	for i := range recent {
		recent[i] -= c.mean
		c.squares += recent[i] * recent[i]
	}
	if c.best = c.closest(); way != Plateau && c.best.squares > maxResidual*c.squares {
		return false
	}
	sure := leastError * (hi - lo)
	free := float64(c.n - 3)                                                               // three numbers make the curve
	c.spread = max(math.Sqrt((c.best.squares+2*sure*sure)/(free+2)), noise/(2*math.Sqrt2)) // see judgeTally.floor
	return true
}

// setProof stores what a proof of convergence needs, if the scores have noise.
func (c *trendFit) setProof(p *Plan, t *Tally) {
	v, exact := p.spread(t)
	c.proves, c.points, c.variance = !exact && v > 0, t.Course, v
}

// curveOf returns the best fit with the given ratio: the line of least squares over 0, 1, 1+r, 1+r+r², …
func (c *trendFit) curveOf(ratio float64) curve {
	var at [courseWindow]float64
	x, sum, gain := 0.0, 0.0, 1.0
	for i := 1; i < c.n; i++ {
		x += gain
		gain *= ratio
		at[i] = x
		sum += x
	}
	mean, squares, along := sum/float64(c.n), 0.0, 0.0
	for i, score := range c.scores[:c.n] {
		from := at[i] - mean
		squares += from * from
		along += from * score
	}
	slope := along / squares
	return curve{ratio, c.mean + slope*(x-mean), slope * gain, max(0, c.squares-slope*slope*squares)}
}

// closest returns the fit with the smallest squares. It takes the best ratio of the grid, and refines it between its
// two neighbours by successive parabolas.
func (c *trendFit) closest() curve {
	best := 0
	for i := range c.fits {
		if c.fits[i] = c.curveOf(float64(i+1) / gridSize); c.fits[i].squares < c.fits[best].squares {
			best = i
		}
	}
	if best == 0 || best == gridSize-1 {
		return c.fits[best]
	}
	a, b, d := c.fits[best-1], c.fits[best], c.fits[best+1]
	for range 4 {
		u, v := (b.ratio-a.ratio)*(b.squares-d.squares), (b.ratio-d.ratio)*(b.squares-a.squares)
		r := b.ratio - ((b.ratio-a.ratio)*u-(b.ratio-d.ratio)*v)/(2*(u-v))
		if !(r > a.ratio && r < d.ratio) || math.Abs(r-b.ratio) < 1e-6 {
			break
		}
		switch at := c.curveOf(r); {
		case at.squares < b.squares && r < b.ratio:
			b, d = at, b
		case at.squares < b.squares:
			a, b = b, at
		case r < b.ratio:
			a = at
		default:
			d = at
		}
	}
	return b
}

// interval returns the smallest and the largest number of further iterations, over all likely curves.
func (c *trendFit) interval(s *Score, flat uint, left int) (low, high int) {
	low = left
	c.likely(func(f curve) {
		for _, luck := range [3]float64{-1, 0, 1} {
			n, _, _ := c.predict(s, f, luck*likelyWidth/2*c.spread, flat, left)
			low, high = min(low, n), max(high, n)
		}
	})
	return low, high
}

// likely calls try with every curve that fits the scores within chance, the best one first.
func (c *trendFit) likely(try func(curve)) {
	limit := c.best.squares + likelyWidth*likelyWidth*c.spread*c.spread
	try(c.best)
	for _, f := range c.fits {
		if f.squares <= limit {
			try(f)
		}
	}
}

// level returns the score at which the scores level off. It returns nil if a straight line is also likely, or if the
// likely curves differ about the level by more than the range of the scores.
func (c *trendFit) level(sign float64) *float64 {
	if c.n < 4 { // three numbers make the curve
		return nil
	}
	at := func(f curve) float64 { return f.level + f.next/(1-f.ratio) }
	levels, lo, hi := true, math.Inf(1), math.Inf(-1)
	c.likely(func(f curve) {
		levels = levels && f.ratio < 1
		lo, hi = min(lo, at(f)), max(hi, at(f))
	})
	least, most := c.scores[0], c.scores[0]
	for _, x := range c.scores[1:c.n] {
		least, most = min(least, x), max(most, x)
	}
	if !levels || hi-lo > most-least {
		return nil
	}
	return new(roundDecimals(sign * at(c.best)))
}

// band returns the range of the expected scores in the next n iterations, over all likely curves.
func (c *trendFit) band(sign float64, iteration, n int) []BandPoint {
	last := roundDecimals(sign * (c.scores[c.n-1] + c.mean))
	band := make([]BandPoint, n+1)
	band[0] = BandPoint{iteration, last, last, last}
	first := true
	c.likely(func(f curve) {
		at, gain := f.level, f.next
		for i := 1; i <= n; i++ {
			at += gain
			gain *= f.ratio
			b := &band[i]
			if first {
				*b = BandPoint{iteration + i, at, at, at}
			}
			b.Low, b.High = min(b.Low, at), max(b.High, at)
		}
		first = false
	})
	chance := max(c.noise, likelyWidth/2*c.spread)
	for i := 1; i <= n; i++ {
		b := &band[i]
		low, high := b.Low-chance, b.High+chance
		if sign < 0 {
			low, high = -high, -low
		}
		b.Low, b.Mid, b.High = roundDecimals(low), roundDecimals(sign*b.Mid), roundDecimals(high)
	}
	return band
}

// predict follows a curve until a condition ends the loop, and returns the number of iterations, the stop reason and the
// last score. until is "" if no condition ends the loop in the iterations that are left. luck is added to the scores to
// allow for chance.
func (c *trendFit) predict(s *Score, f curve, luck float64, flat uint, left int) (n int, until StopReason, final float64) {
	sign := s.sense()
	at, gain := f.level, f.next
	points, last := slices.Clip(c.points), point{N: 1}
	if n := len(points); n > 0 {
		last = points[n-1]
	}
	for n = 1; n <= left; n++ {
		before := at
		at += gain
		if s.Target != nil && s.DimensionTarget == nil && roundDecimals(at+luck) >= sign**s.Target {
			return n, ReasonTarget, roundDecimals(sign * at)
		}
		if s.isSmallGain(before, roundDecimals(gain-luck*math.Sqrt2), c.noise) {
			flat++
		} else {
			flat = 0
		}
		if c.proves {
			if last.Y = roundDecimals(at + luck); last.Gap > 0 {
				last.Gap++
			}
			points = append(points[max(0, len(points)-window+1):], last)
		}
		if flat >= s.patience() && (s.MinDelta != nil || s.MinDeltaPercent != nil) &&
			(!c.proves || s.weigh(points, c.variance, s.patience(), s.threshold).holds()) {
			return n, ReasonConverged, roundDecimals(sign * at)
		}
		gain *= f.ratio
	}
	return left, "", roundDecimals(sign * at)
}

// isSmallGain reports whether a gain over the score before is too small to count as an improvement.
func (s *Score) isSmallGain(before, gain, noise float64) bool {
	return s.MinDelta != nil && gain < *s.MinDelta ||
		s.MinDeltaPercent != nil && before != 0 && gain/math.Abs(before)*100 < *s.MinDeltaPercent ||
		s.MinDeltaPercent != nil && before == 0 && gain <= 0 ||
		noise > 0 && gain <= noise
}

// flatFor returns the number of consecutive iterations, up to the last one, without an improvement.
func (s *Score) flatFor(scores []float64, noise float64) (n uint) {
	for i := len(scores) - 1; i > 0 && s.isSmallGain(scores[i-1], s.gain(scores[i-1], scores[i]), noise); i-- {
		n++
	}
	return n
}
