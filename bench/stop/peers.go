// SPDX-License-Identifier: Apache-2.0

package main

import "math"

// history is what a rule beside ours sees: the means of the answers, more is better.
type history struct {
	*setting
	*family
	scores    []float64
	squares   float64 // of the answers' distances from their means
	repeated  float64
	flat      uint
	best      float64
	sinceBest uint
}

// rule reports whether a loop stops after the score that came last.
type rule func(h *history) bool

// peers are rules that others have, or that statistics knows.
var peers = []struct {
	name string
	rule func() rule
}{
	{"all iterations", func() rule { return func(*history) bool { return false } }},
	{"fixed 5", func() rule { return func(h *history) bool { return len(h.scores) >= 5 } }},
	{"Keras, patience 5", keras(5)},
	{"plain", func() rule { return plain }},
	{"slope of 5", underNoise(5, slope)},
	{"confidence sequence", underNoise(3, sequence)},
	{"Bayes", underNoise(3, bayes)},
	{"UCB", underNoise(3, ucb)},
}

// follow runs a course by a rule; the largest mean is handed back.
func (c *course) follow(s *setting, r rule) ending {
	h := &history{setting: s, family: c.family}
	n := int(s.samples)
	if c.exact {
		n = 1
	}
	best := 0
	for i := 1; i <= int(s.limit); i++ {
		at, mean := c.make(), 0.0
		answers := make([]float64, n)
		for k := range answers {
			answers[k] = c.ask(at)
			if c.lower {
				answers[k] = -answers[k]
			}
			mean += answers[k] / float64(n)
		}
		for _, x := range answers {
			h.squares += (x - mean) * (x - mean)
		}
		h.repeated += float64(n - 1)
		h.scores = append(h.scores, mean)
		if best == 0 || mean > h.scores[best-1] {
			best = i
		}
		if r(h) {
			return ending{iterations: i, calls: c.calls, early: i < int(s.limit), iteration: best}
		}
	}
	return ending{iterations: int(s.limit), calls: c.calls, iteration: best}
}

func (h *history) last() float64 { return h.scores[len(h.scores)-1] }

func (h *history) least(level float64) float64 {
	if h.percent {
		return math.Abs(level) / 100 * h.percentOf(h.family)
	}
	return h.delta
}

// errorOf is the standard error of a score; 0 if it is unknown.
func (h *history) errorOf() float64 {
	if h.repeated > 0 {
		return math.Sqrt(h.squares / h.repeated * (h.repeated + 2) / h.repeated / float64(h.samples))
	}
	c := h.scores[max(0, len(h.scores)-8):]
	if len(c) < 5 {
		return 0
	}
	sum := 0.0
	for i := 2; i < len(c); i++ {
		sum += math.Pow(c[i]-2*c[i-1]+c[i-2], 2) / 6
	}
	return math.Sqrt(sum / float64(len(c)-2))
}

// line is the slope of the last n scores, and its standard error if that of a score is 1.
func (h *history) line(n int) (slope, off float64) {
	c := h.scores[max(0, len(h.scores)-n):]
	middle, xx := float64(len(c)-1)/2, 0.0
	for i, y := range c {
		d := float64(i) - middle
		slope, xx = slope+d*y, xx+d*d
	}
	return slope / xx, 1 / math.Sqrt(xx)
}

// keras is the rule of Keras's EarlyStopping: it stops after patience iterations without a best that is better by min_delta.
func keras(patience uint) func() rule {
	return func() rule {
		return func(h *history) bool {
			if y := h.last(); len(h.scores) == 1 || y > h.best+h.least(h.best) {
				h.best, h.sinceBest = y, 0
				return false
			}
			h.sinceBest++
			return h.sinceBest >= patience
		}
	}
}

// plain is the rule for exact scores.
func plain(h *history) bool {
	n := len(h.scores)
	switch {
	case n < 2:
	case h.last()-h.scores[n-2] < h.least(h.scores[n-2]):
		h.flat++
	default:
		h.flat = 0
	}
	return h.flat >= max(1, h.patience)
}

// underNoise makes a rule of one that needs a number of scores and the error s of a score; exact scores have the plain rule.
func underNoise(scores int, stops func(h *history, s float64) bool) func() rule {
	return func() rule {
		return func(h *history) bool {
			if h.exact {
				return plain(h)
			}
			s := h.errorOf()
			return len(h.scores) >= scores && s > 0 && stops(h, s)
		}
	}
}

// slope stops if the upper 80 % limit of the slope of the last five scores is below what counts.
func slope(h *history, s float64) bool {
	b, off := h.line(5)
	return b+0.84*s*off < max(h.least(h.last()), 0.26*s)
}

// sequence stops if the upper end of a 90 % normal-mixture confidence sequence for the slope of the last eight scores is below what counts.
func sequence(h *history, s float64) bool {
	b, off := h.line(8)
	info := 1 / off / off
	radius := s / info * math.Sqrt(2*(info+20)*math.Log(math.Sqrt((info+20)/20)/0.1))
	return b+radius < max(h.least(h.last()), s/2)
}

// bayes stops if the expected gain of an iteration is below what counts; the prior of the slope is N(0, s²), and a loss counts as no gain.
func bayes(h *history, s float64) bool {
	b, off := h.line(8)
	share := 1 / (1 + off*off)
	mean, deviation := b*share, s*off*math.Sqrt(share)
	z := mean / deviation
	gain := mean*math.Erfc(-z/math.Sqrt2)/2 + deviation*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
	return gain < max(h.least(h.last()), 0.12*s)
}

// ucb stops if the mean of the last seven gains plus one standard error is below what counts.
func ucb(h *history, s float64) bool {
	c := h.scores[max(0, len(h.scores)-8):]
	n := float64(len(c) - 1)
	return (h.last()-c[0])/n+s*math.Sqrt2/n < max(h.least(c[0]), 0.3*s)
}
