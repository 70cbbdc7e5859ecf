// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"math"
	"time"
)

// Forecast describes what to expect of the next iterations. It assumes that gains shrink by the
// same factor each time, as in most refinements, or stay the same.
type Forecast struct {
	Trend Trend `json:"trend,omitzero"`
	// Predictable is false if there are fewer than three scores, or if the scores follow no
	// curve; Note says which.
	Predictable bool   `json:"predictable"`
	Note        string `json:"note,omitzero"`
	// Gain is the expected improvement of the next iteration; it is negative if
	// the scores get worse.
	Gain float64 `json:"gain"`
	// Iterations is the expected number of further iterations until the loop reaches the target, converges or reaches
	// its limit of iterations. Low and High are an interval for it. None of them exceeds the limit of iterations or,
	// without a limit, 100. All are 0 if the forecast expects nothing to end the loop within 100 iterations.
	Iterations int `json:"iterations,omitzero"`
	Low        int `json:"low,omitzero"`
	High       int `json:"high,omitzero"`
	// Until is the stop reason that is expected to end the loop.
	Until StopReason `json:"until,omitzero"`
	// Final is the score expected when the loop ends.
	Final float64 `json:"final,omitzero"`
	// Level is the score at which the curve levels off. It is nil unless there are four or more scores, a
	// straight line does not fit them, and the likely curves agree about the level.
	Level *float64 `json:"level,omitzero"`
	// Band is the range in which the scores are expected, from the last score to the iteration
	// that is High iterations ahead. It is nil if nothing is expected to end the loop.
	Band []BandPoint `json:"band,omitzero"`
	// Time, Tokens and Cost are what an iteration has used on average; a nil
	// Cost is unknown.
	Time   time.Duration `json:"time_ns,omitzero"`
	Tokens int64         `json:"tokens,omitzero"`
	Cost   *float64      `json:"cost,omitzero"`
}

// BandPoint is the range in which a [Forecast] expects the score of one iteration. The first
// point of a band is the last score, which is known, so its three scores are the same. In the
// other points, Low and High differ from Mid by the variation of the scores, and at least by
// the judge's noise.
type BandPoint struct {
	Iteration int     `json:"iteration"`
	Low       float64 `json:"low"`
	Mid       float64 `json:"mid"`
	High      float64 `json:"high"`
}

// farAhead is the largest number of iterations that a forecast looks ahead.
const farAhead = 100

// Forecast returns the forecast for a loop in the state t.
func (p *Plan) Forecast(t *Tally) Forecast { return p.ForecastAt(t, Moment{}) }

// forecastAt returns the forecast at a moment. u is t at that moment, and provisional says that u has a score of the
// running iteration.
func (p *Plan) forecastAt(t, u *Tally, m *Moment, provisional bool) Forecast {
	whole, iteration := t, t.Iteration
	if m.Began != nil && m.Iteration > 0 {
		whole = m.Began
	}
	f := averages(whole)
	switch {
	case provisional:
		iteration = m.Iteration
	case m.Iteration > 0:
		iteration = m.Iteration - 1
	}
	if p.Score != nil {
		p.forecast(&f, u, iteration)
	}
	return f
}

// averages returns a forecast that contains only the average usage of an iteration.
func averages(t *Tally) Forecast {
	f := Forecast{Note: "not predictable yet: the loop is not scored"}
	if n := t.Complete; n > 0 {
		f.Time = (t.Active - t.FinalActive) / time.Duration(n)
		f.Tokens = (t.Usage.tokens() - t.FinalUsage.tokens()) / int64(n)
		if t.Usage.Cost != nil {
			f.Cost = new((*t.Usage.Cost - t.FinalUsage.cost()) / float64(n))
		}
	}
	return f
}

// forecast fills in the parts of f that depend on the scores. iteration is the number of iterations that have ended.
func (p *Plan) forecast(f *Forecast, t *Tally, iteration int) {
	s, scores, noise := p.Score, t.recent(), t.Judge.floor()
	f.Trend = p.Trend(t)
	if n := len(scores); n < 3 {
		f.Note = fmt.Sprintf("not predictable yet: %s, three are needed", count(n, "score"))
		return
	}
	var c trendFit
	c.setProof(p, t)
	if !c.fitScores(p, scores, noise) {
		f.Note = "not predictable: the scores follow no course"
		return
	}
	f.Predictable, f.Note, f.Gain = true, "", roundDecimals(c.best.next)
	left := farAhead
	if p.MaxIterations > 0 {
		left = int(max(0, min(p.MaxIterations, 1<<40)))
		left = max(0, min(left-iteration, farAhead))
	}
	flat := t.Flat
	if t.Scored == 0 { // the tally has the scores but no counts
		flat = s.flatFor(scores, noise)
	}
	f.Level = c.level(s.sense())
	f.Iterations, f.Until, f.Final = c.predict(s, c.best, 0, flat, left)
	if f.Until == "" && p.MaxIterations > 0 && iteration+left >= int(p.MaxIterations) {
		f.Until = ReasonMaxIterations
	}
	if f.Until == "" {
		f.Iterations, f.Note = 0, fmt.Sprintf("nothing is expected to end the loop within %d iterations", farAhead)
		return
	}
	f.Low, f.High = c.interval(s, flat, left)
	f.Low, f.High = min(f.Low, f.Iterations), max(f.High, f.Iterations)
	f.Band = c.band(s.sense(), iteration, f.High)
}

// Trend is the direction of the scores.
type Trend string

// The trends. A trend needs three scores.
const (
	Improving   Trend = "improving"
	Plateau     Trend = "plateau"     // no change larger than chance
	Regressing  Trend = "regressing"  // the scores get worse
	Oscillating Trend = "oscillating" // up and down without end
)

// trendWindow is the number of recent scores that a trend uses.
const trendWindow = 5

// Trend returns the direction of the last five scores; "" if the loop has fewer than three. It
// ignores differences below a hundredth of the score, unless the scores rise or fall steadily. Small changes
// in one direction add up. Of scores with noise it looks at the last eight, and ignores what chance explains.
func (p *Plan) Trend(t *Tally) Trend {
	if p.Score == nil {
		return ""
	}
	if v, exact := p.spread(t); !exact && v > 0 && len(t.Course) >= 3 {
		return direction(t.Course, v)
	}
	return p.Score.trend(t.recent(), t.Judge.floor())
}

func (s *Score) trend(scores []float64, noise float64) Trend {
	var buf [trendWindow]float64
	scores = scores[max(0, len(scores)-trendWindow):]
	for i, x := range scores {
		buf[i] = s.sense() * x
	}
	return trend(buf[:len(scores)], noise)
}

// trend returns the direction of scores of which more is better. Differences up to noise, or below a hundredth of a
// score, count as none.
func trend(scores []float64, noise float64) Trend {
	if len(scores) < 3 {
		return ""
	}
	scores = scores[max(0, len(scores)-trendWindow):]
	n := len(scores)
	// way is 1 for better, -1 for worse, 0 for about the same.
	way := func(from, to float64) int {
		gain := to - from
		switch size := math.Abs(gain); {
		case size <= noise || size <= 0.01*math.Abs(from) || size <= 0.01*math.Abs(to):
			return 0
		case gain > 0:
			return 1
		}
		return -1
	}
	turns, last, moved, level, path := 0, 0, 0, scores[0], 0.0
	for i, x := range scores {
		w := way(level, x)
		if w == 0 {
			continue
		}
		if last != 0 && w != last {
			turns++
		}
		path += math.Abs(x - level)
		last, moved, level = w, i, x
	}
	net := way(scores[0], scores[n-1])
	switch {
	case steady(scores) && math.Abs(scores[n-1]-scores[0]) > noise:
		if scores[n-1] > scores[0] {
			return Improving
		}
		return Regressing
	case turns >= 2 && math.Abs(level-scores[0]) <= 0.4*path: // the scores changed direction and moved little in all
		return Oscillating
	case last == 0 || n-1-moved >= 2: // no movement at all, or none in the last two scores
		return Plateau
	case net < 0 || last < 0 && way(scores[n-3], scores[n-1]) < 0:
		return Regressing
	case net == 0 && last < 0:
		return Plateau // up, and down again to the first score
	}
	return Improving
}

// steady reports whether all differences between successive scores have the same sign, and the smallest is at least
// half as large as the largest.
func steady(scores []float64) bool {
	least, most := math.Inf(1), math.Inf(-1)
	for i := 1; i < len(scores); i++ {
		d := scores[i] - scores[i-1]
		least, most = min(least, d), max(most, d)
	}
	return least > 0 && least >= most/2 || most < 0 && most <= least/2
}
