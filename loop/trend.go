// SPDX-License-Identifier: Apache-2.0

package loop

import "math"

// Trend is the direction of the scores.
type Trend string

// The trends. A trend needs three scores.
const (
	Improving   Trend = "improving"
	Plateau     Trend = "plateau"     // no change larger than chance
	Regressing  Trend = "regressing"  // it gets worse
	Oscillating Trend = "oscillating" // up and down without end
)

// trendWindow is how many recent scores a trend is made from.
const trendWindow = 5

// Trend returns the direction of the last five scores; "" if the loop has fewer than three.
// It ignores differences within the judge's noise or below a hundredth of the score;
// small steps in one direction add up.
func (p *Plan) Trend(t *Tally) Trend {
	if p.Score == nil {
		return ""
	}
	return p.Score.trend(t.Scores, t.Judge.floor())
}

func (s *Score) trend(scores []float64, noise float64) Trend {
	var buf [trendWindow]float64
	scores = scores[max(0, len(scores)-trendWindow):]
	for i, x := range scores {
		buf[i] = s.sense() * x
	}
	return trend(buf[:len(scores)], noise)
}

// trend is that of scores of which more is better.
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
	case turns >= 2 && math.Abs(level-scores[0]) <= 0.4*path: // much to and fro, for little
		return Oscillating
	case last == 0 || n-1-moved >= 2: // it has moved, but does so no longer
		return Plateau
	case net < 0 || last < 0 && way(scores[n-3], scores[n-1]) < 0:
		return Regressing
	case net == 0 && last < 0:
		return Plateau // up, and back to where it was
	}
	return Improving
}
