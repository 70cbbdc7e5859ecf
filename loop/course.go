// SPDX-License-Identifier: Apache-2.0

package loop

import "math"

// course is how gains go on after the last score, as least squares have it, and
// how far off a single score may be.
type course struct {
	scores  [courseWindow]float64 // the first n of them, from their mean; more is better
	n       int
	mean    float64
	squares float64 // sum of those of the scores
	noise   float64 // of the judge
	best    fit
	spread  float64 // one standard deviation of a score
}

// fit is a curve through the scores: the gains shrink by ratio each time. level
// is the curve's last score, next the gain that comes after it.
type fit struct{ ratio, level, next, squares float64 }

const (
	courseWindow = 8    // recent scores that a course is made of
	surest       = 0.01 // of their range: no score is surer than that
	doubt        = 2.5  // standard deviations that an interval allows for
	vague        = 0.4  // share of their variance: a curve that leaves more is none
	gridSize     = 20   // ratios that are tried, up to 1
)

// curve is what does not depend on the scores when a line is put over 0, 1,
// 1+r, 1+r+r², …: where these stand from their mean, and 0 beyond them.
type curve struct {
	from    [courseWindow]float64
	squares float64
	gain    float64 // after the last
}

func curveOf(ratio float64, n int) (c curve) {
	x, sum := 0.0, 0.0
	c.gain = 1
	for i := range n {
		if i > 0 {
			x += c.gain
			c.gain *= ratio
		}
		c.from[i] = x
		sum += x
	}
	for i := range n {
		c.from[i] -= sum / float64(n)
		c.squares += c.from[i] * c.from[i]
	}
	return c
}

// grid has the curves of the ratios that are tried, for each number of scores.
var grid = func() (g [courseWindow + 1][gridSize]curve) {
	for n := 3; n <= courseWindow; n++ {
		for i := range gridSize {
			g[n][i] = curveOf(gridRatio(i), n)
		}
	}
	return g
}()

func gridRatio(i int) float64 { return float64(i+1) / gridSize }

// course fits the recent scores; ok is false if they go up and down, or no curve
// comes near them. After a
// rollback the next iteration starts from the best, so there each score counts
// as the best until then.
func (p *Plan) course(scores []float64, noise float64) (c course, ok bool) {
	sign := p.Score.sense()
	c.noise = noise
	first := max(0, len(scores)-courseWindow)
	best := math.Inf(-1)
	if p.OnRegression == RollbackOnWorse {
		for _, x := range scores[:first] {
			best = max(best, sign*x)
		}
	}
	for _, x := range scores[first:] {
		x *= sign
		if best = max(best, x); p.OnRegression == RollbackOnWorse {
			x = best
		}
		c.scores[c.n] = x
		c.n++
	}
	way := trend(c.scores[:c.n], noise)
	if way == Oscillating {
		return c, false
	}
	lo, hi := c.scores[0], c.scores[0]
	for _, x := range c.scores[:c.n] {
		lo, hi = min(lo, x), max(hi, x)
		c.mean += x
	}
	c.mean /= float64(c.n)
	for i := range c.scores[:c.n] {
		c.scores[i] -= c.mean
		c.squares += c.scores[i] * c.scores[i]
	}
	if c.best = c.closest(); way != Plateau && c.best.squares > vague*c.squares {
		return c, false
	}
	sure := surest * (hi - lo)
	free := float64(c.n - 3) // three numbers make the curve
	c.spread = math.Sqrt((c.best.squares + 2*sure*sure) / (free + 2))
	c.spread = max(c.spread, noise/(2*math.Sqrt2)) // see JudgeTally.noise
	return c, true
}

// fit is the best line over a curve.
func (c *course) fit(ratio float64, x *curve) fit {
	slope := c.along(x) / x.squares
	return fit{ratio, c.mean + slope*x.from[c.n-1], slope * x.gain, max(0, c.squares-slope*slope*x.squares)}
}

// along is how far the scores go along a curve: the sum of their products.
func (c *course) along(x *curve) float64 {
	a, b := &x.from, &c.scores // written out, since it is done so often
	return a[0]*b[0] + a[1]*b[1] + (a[2]*b[2] + a[3]*b[3]) + (a[4]*b[4] + a[5]*b[5] + (a[6]*b[6] + a[7]*b[7]))
}

// closest is the best fit of all: that of the best ratio of the grid, and then
// of what parabolas find between its neighbours.
func (c *course) closest() fit {
	best, most := 0, -1.0
	for i := range gridSize {
		x := &grid[c.n][i]
		sum := c.along(x)
		if explained := sum * sum / x.squares; explained > most {
			best, most = i, explained
		}
	}
	at := func(i int) fit { return c.fit(gridRatio(i), &grid[c.n][i]) }
	if best == 0 || best == gridSize-1 {
		return at(best)
	}
	a, b, d := at(best-1), at(best), at(best+1)
	for range 4 {
		u, v := (b.ratio-a.ratio)*(b.squares-d.squares), (b.ratio-d.ratio)*(b.squares-a.squares)
		r := b.ratio - ((b.ratio-a.ratio)*u-(b.ratio-d.ratio)*v)/(2*(u-v))
		if !(r > a.ratio && r < d.ratio) || math.Abs(r-b.ratio) < 1e-6 {
			break
		}
		x := curveOf(r, c.n)
		switch at := c.fit(r, &x); {
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

// interval is how few and how many more iterations it may take, over every
// curve that the scores do not speak against.
func (c *course) interval(s *Score, flat uint, left int) (low, high int) {
	low = left
	limit := c.best.squares + doubt*doubt*c.spread*c.spread
	try := func(f fit) {
		for _, luck := range [3]float64{-1, 0, 1} {
			n, _, _ := c.ahead(s, f, luck*doubt/2*c.spread, flat, left)
			low, high = min(low, n), max(high, n)
		}
	}
	try(c.best)
	for i := range gridSize {
		if f := c.fit(gridRatio(i), &grid[c.n][i]); f.squares <= limit {
			try(f)
		}
	}
	return low, high
}

// ahead follows a curve until something ends the loop; until is "" if nothing
// does in the iterations that are left. luck is what to allow for chance.
func (c *course) ahead(s *Score, f fit, luck float64, flat uint, left int) (n int, until StopReason, final float64) {
	sign := s.sense()
	at, gain := f.level, f.next
	for n = 1; n <= left; n++ {
		before := at
		at += gain
		if s.Target != nil && s.DimensionTarget == nil && tidy(at+luck) >= sign**s.Target {
			return n, ReasonTarget, tidy(sign * at)
		}
		if s.small(before, tidy(gain-luck*math.Sqrt2), c.noise) {
			flat++
		} else {
			flat = 0
		}
		if flat >= s.patience() && (s.MinDelta != nil || s.MinDeltaPercent != nil) {
			return n, ReasonConverged, tidy(sign * at)
		}
		gain *= f.ratio
	}
	return left, "", tidy(sign * at)
}

// small reports whether a gain over a score is no improvement to speak of.
func (s *Score) small(before, gain, noise float64) bool {
	return s.MinDelta != nil && gain < *s.MinDelta ||
		s.MinDeltaPercent != nil && before != 0 && gain/math.Abs(before)*100 < *s.MinDeltaPercent ||
		s.MinDeltaPercent != nil && before == 0 && gain <= 0 ||
		noise > 0 && gain <= noise
}

// flatFor is for how many iterations running there was none.
func (s *Score) flatFor(scores []float64, noise float64) (n uint) {
	for i := len(scores) - 1; i > 0 && s.small(scores[i-1], s.gain(scores[i-1], scores[i]), noise); i-- {
		n++
	}
	return n
}
