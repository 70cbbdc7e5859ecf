// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"math"
	"time"
)

// Forecast says what the next iterations may bring. It supposes that gains
// shrink by the same factor each time, as those of most refinements do, or stay
// as they are; its own record ([Hits]) says how far to trust it.
type Forecast struct {
	Trend Trend `json:"trend,omitzero"`
	// Predictable is false under three scores, and where the scores follow no
	// course; Note says why.
	Predictable bool   `json:"predictable"`
	Note        string `json:"note,omitzero"`
	// Gain is the expected improvement of the next iteration.
	Gain float64 `json:"gain"`
	// Iterations is how many more it takes until the target is reached or the
	// loop has converged, Low and High an interval for it. The limit of
	// iterations bounds them. 0 if there is nothing to reach.
	Iterations int `json:"iterations,omitzero"`
	Low        int `json:"low,omitzero"`
	High       int `json:"high,omitzero"`
	// Until is what is expected to end the loop.
	Until StopReason `json:"until,omitzero"`
	// Final is the score expected there.
	Final float64 `json:"final,omitzero"`
	// Time, Tokens and Cost are what an iteration has used on average; a nil
	// Cost is unknown.
	Time   time.Duration `json:"time_ns,omitzero"`
	Tokens int64         `json:"tokens,omitzero"`
	Cost   *float64      `json:"cost,omitzero"`
}

// farAhead is as many iterations as a forecast looks ahead.
const farAhead = 1000

// Forecast says what to expect after what t has counted.
func (p *Plan) Forecast(t *Tally) Forecast {
	f := Forecast{Note: "not predictable yet: the loop is not scored"}
	if n := t.Complete; n > 0 {
		f.Time = t.Active / time.Duration(n)
		f.Tokens = (t.Usage.InputTokens + t.Usage.OutputTokens) / int64(n)
		if t.Usage.Cost != nil {
			f.Cost = new(*t.Usage.Cost / float64(n))
		}
	}
	if p.Score == nil {
		return f
	}
	p.forecast(&f, t.Scores, t.Judge.floor(), t.Iteration)
	return f
}

func (p *Plan) forecast(f *Forecast, scores []float64, noise float64, iteration int) {
	s := p.Score
	f.Trend = s.trend(scores, noise)
	if n := len(scores); n < 3 {
		f.Note = fmt.Sprintf("not predictable yet: %s, three are needed", plural(n, "score"))
		return
	}
	c, ok := s.course(scores)
	if f.Gain = tidy(c.next); !ok || f.Trend == Oscillating {
		f.Note = "not predictable: the scores follow no course"
		return
	}
	f.Predictable, f.Note = true, ""
	left := farAhead
	if p.MaxIterations > 0 {
		left = max(0, int(p.MaxIterations)-iteration)
	}
	last := scores[len(scores)-1]
	f.Iterations, f.Until, f.Final = p.ahead(last, c.next, c.ratio, left)
	low, _, _ := p.ahead(last, c.next*(1+c.doubt), min(1, c.ratio*(1+c.doubt)), left)
	high, _, _ := p.ahead(last, c.next*(1-c.doubt), c.ratio*(1-c.doubt), left)
	f.Low, f.High = min(low, high, f.Iterations), max(low, high, f.Iterations)
	if f.Until == "" {
		f.Iterations, f.Low, f.High = 0, 0, 0
		f.Note = "nothing is expected to end the loop"
	}
}

// course is how gains go on: the next one, and the factor from one to the next.
// doubt is how far off they may be, as a share.
type course struct{ next, ratio, doubt float64 }

// course fits the recent gains; ok is false if they do not hang together.
func (s *Score) course(scores []float64) (c course, ok bool) {
	scores = scores[max(0, len(scores)-trendWindow-1):]
	gains := make([]float64, len(scores)-1)
	sum := 0.0
	for i := range gains {
		gains[i] = s.gain(scores[i], scores[i+1])
		sum += gains[i]
	}
	last, n := gains[len(gains)-1], float64(len(gains))
	var ratios []float64
	for i := 1; i < len(gains); i++ {
		if gains[i-1] > 0 && gains[i] > 0 {
			ratios = append(ratios, min(1, gains[i]/gains[i-1]))
		}
	}
	if len(ratios) < len(gains)-1 || len(ratios) == 0 { // some gain is none
		average := sum / n
		c = course{next: max(0, average), ratio: 1, doubt: 0.5}
		return c, last <= 0 && average <= 0
	}
	logs := 0.0
	for _, r := range ratios {
		logs += math.Log(r)
	}
	c.ratio = math.Exp(logs / float64(len(ratios)))
	for _, r := range ratios {
		c.doubt = max(c.doubt, math.Abs(r-c.ratio)/c.ratio)
	}
	c.doubt = min(0.9, max(0.1, c.doubt))
	c.next = last * c.ratio
	return c, true
}

// ahead walks the course until something ends the loop.
func (p *Plan) ahead(score, gain, ratio float64, left int) (n int, until StopReason, final float64) {
	s, flat := p.Score, uint(0)
	for n = 1; n <= left; n++ {
		before := score
		if s.LowerIsBetter {
			score -= gain
		} else {
			score += gain
		}
		at := Tally{Score: &score}
		if s.Target != nil && s.DimensionTarget == nil && s.reached(&at) {
			return n, ReasonTarget, tidy(score)
		}
		small := s.MinDelta != nil && gain < *s.MinDelta ||
			s.MinDeltaPercent != nil && before != 0 && gain/math.Abs(before)*100 < *s.MinDeltaPercent
		if flat++; !small {
			flat = 0
		} else if flat >= s.patience() {
			return n, ReasonConverged, tidy(score)
		}
		gain *= ratio
	}
	if p.MaxIterations > 0 {
		return left, ReasonMaxIterations, tidy(score)
	}
	return 0, "", tidy(score)
}

// Hits makes the forecasts of a past run again, one after each score from the
// third on, and counts those whose interval held the iterations that it really
// took. scores are all of the run's, until is why it stopped: a run that was
// ended from outside says nothing, and made is 0.
func (p *Plan) Hits(scores []float64, until StopReason) (hits, made int) {
	if p.Score == nil || until != ReasonTarget && until != ReasonConverged && until != ReasonMaxIterations {
		return 0, 0
	}
	for n := 3; n < len(scores); n++ {
		var f Forecast
		p.forecast(&f, scores[:n], 0, n)
		if !f.Predictable || f.Until == "" {
			continue
		}
		made++
		if took := len(scores) - n; took >= f.Low && took <= f.High {
			hits++
		}
	}
	return hits, made
}
