// SPDX-License-Identifier: Apache-2.0

package loop

import "math"

// Trend says where the scores are going.
type Trend string

// The trends. Under three scores there is none.
const (
	Improving   Trend = "improving"
	Plateau     Trend = "plateau"     // no change larger than chance
	Regressing  Trend = "regressing"  // it gets worse
	Oscillating Trend = "oscillating" // up and down without end
)

// trendWindow is how many recent scores a trend is made from.
const trendWindow = 5

// Trend is where the recent scores of a loop are going; "" under three scores.
// A difference within the judge's noise is none, nor is one below a hundredth
// of the score.
func (p *Plan) Trend(t *Tally) Trend {
	if p.Score == nil {
		return ""
	}
	return p.Score.trend(t.Scores, t.Judge.floor())
}

// floor is the noise of single iterations as far as it is known.
func (j *JudgeTally) floor() float64 {
	return j.noise(max(1, len(j.Samples)))
}

func (s *Score) trend(scores []float64, noise float64) Trend {
	if len(scores) < 3 {
		return ""
	}
	scores = scores[max(0, len(scores)-trendWindow):]
	first, last := scores[0], scores[len(scores)-1]
	small := func(a, b float64) bool {
		return math.Abs(b-a) <= max(noise, 0.01*max(math.Abs(a), math.Abs(b)))
	}
	ups, downs, turns, before := 0, 0, 0, 0
	for i := 1; i < len(scores); i++ {
		if small(scores[i-1], scores[i]) {
			continue
		}
		way := 1
		if s.gain(scores[i-1], scores[i]) < 0 {
			way = -1
			downs++
		} else {
			ups++
		}
		if before != 0 && way != before {
			turns++
		}
		before = way
	}
	switch {
	case turns >= 2 && ups > 0 && downs > 0 && math.Abs(last-first) <= spread(scores)/2:
		return Oscillating
	case ups == 0 && downs == 0:
		return Plateau
	case small(first, last):
		if turns >= 2 {
			return Oscillating
		}
		return Plateau
	case s.gain(first, last) < 0:
		return Regressing
	case small(scores[len(scores)-3], scores[len(scores)-2]) && small(scores[len(scores)-2], last):
		return Plateau // it has improved, but does so no longer
	case downs > 0 && s.gain(scores[len(scores)-2], last) < 0 && s.gain(scores[len(scores)-3], last) < 0:
		return Regressing
	}
	return Improving
}

func spread(scores []float64) float64 {
	lo, hi := scores[0], scores[0]
	for _, x := range scores {
		lo, hi = min(lo, x), max(hi, x)
	}
	return hi - lo
}
