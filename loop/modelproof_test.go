// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"math"
	"slices"

	"github.com/refrain-dev/refrain/loop"
)

// proves reports whether the loop decides by proof, as plans of version 2 do under a judge.
func (m *model) proves() bool { return m.p.Version >= 2 && m.p.Score.Judge != nil }

func (m *model) sense() float64 { return m.gain(0, 1) }

// prove takes a score into the course.
func (m *model) prove(it *past) {
	it.count = max(1, it.count)
	if !m.proves() {
		return
	}
	if it.failures == 0 {
		m.course = append(m.course, mean{m.sense() * *it.score, it.count})
	}
	if m.repeated() == 0 {
		it.noise = round(math.Sqrt(8) * round(math.Sqrt(m.variance()/float64(it.count))))
	}
}

func (m *model) ranges() bool {
	j := m.p.Score.Judge
	return j != nil && j.Max > max(1, j.Samples) && m.p.Score.Target != nil
}

// targetError is the error of the mean of the version judged last, once three answers are repeated.
func (m *model) targetError() float64 {
	if m.repeated() < 3 {
		return 0
	}
	return math.Sqrt(m.variance() / float64(len(m.candidates[len(m.candidates)-1].said)))
}

// unclear reports whether the answers so far leave open whether the target is reached.
func (m *model) unclear() bool {
	if !m.ranges() || len(m.said) == 0 {
		return false
	}
	then := *m
	then.candidates = slices.Clone(m.candidates)
	if n := len(then.candidates); m.judged == "" || n == 0 || then.candidates[n-1].text != m.judged {
		then.candidates = append(then.candidates, candidate{text: m.judged})
	}
	c := &then.candidates[len(then.candidates)-1]
	c.said = slices.Concat(c.said, m.said)
	if then.repeated() < 3 {
		return true
	}
	over, e := m.gain(*m.p.Score.Target, round(average(c.said))), then.targetError()
	return over < 1.645*e && over >= -e
}

// repeated is how many answers are not the first about their version.
func (m *model) repeated() (n int) {
	for _, c := range m.candidates {
		n += len(c.said) - 1
	}
	return n
}

// variance is that of one answer, with the factor for few of them; or by the second differences of the scores.
func (m *model) variance() float64 {
	if f := float64(m.repeated()); f > 0 {
		sum := 0.0
		for _, c := range m.candidates {
			sum += squares(c.said)
		}
		return sum * (f + 2) / (f * f)
	}
	scores := m.lastScores(8)
	if len(scores) < 5 {
		return 0
	}
	sum := 0.0
	for i := range scores[2:] {
		sum += math.Pow(scores[i]-2*scores[i+1]+scores[i+2], 2)
	}
	return sum / 6 / float64(len(scores)-2)
}

func (m *model) lastScores(n int) (scores []float64) {
	from := 0
	if m.fresh() {
		from = m.legFrom
	}
	for _, it := range m.past[from:] {
		if it.score != nil {
			scores = append(scores, *it.score)
		}
	}
	return scores[max(0, len(scores)-n):]
}

// judgesBest reports whether the judged version is the best one.
func (m *model) judgesBest(it, best *past) bool {
	if !m.proves() || best == nil || it.score == nil || !it.judged {
		return false
	}
	c := m.candidates[len(m.candidates)-1]
	return c.times > 1 && c.first == best.number
}

func (m *model) margin(it *past) float64 {
	if !m.proves() {
		return it.noise
	}
	v := m.variance()
	_, _, count := m.ground()
	return round(1.5 * math.Sqrt(v/float64(it.count)+v/float64(max(1, count))))
}

// still compares the likelihood of no slope with that of twice the gain, over each stretch that ends now.
func (m *model) findStandstill(patience uint, gain func(level float64) float64, same bool) bool {
	v := m.variance()
	if m.repeated() > 0 && v == 0 {
		return true
	}
	if n := len(m.candidates); same && n > 0 && m.candidates[n-1].times > int(patience) {
		return true
	}
	if v == 0 {
		return same && len(m.lastScores(8)) >= 5
	}
	need := math.Log(math.Pow(10, 1+float64(min(patience, 6))/2))
	for from := range m.course {
		c := m.course[from:]
		if len(c) > 8 || len(c) < int(min(patience+1, 8)) {
			continue
		}
		var n, x, y float64
		for i, p := range c {
			n, x, y = n+float64(p.n), x+float64(p.n)*float64(i), y+float64(p.n)*p.y
		}
		x, y = x/n, y/n
		least := max(gain(y), math.Sqrt(v/(n/float64(len(c))))/3)
		// Twice the logarithm of the ratio is the difference of the squared distances from the two lines.
		ratio := 0.0
		for i, p := range c {
			d := p.y - y
			ratio += float64(p.n) * (math.Pow(d-2*least*(float64(i)-x), 2) - d*d) / (2 * v)
		}
		if ratio >= need {
			return true
		}
	}
	return false
}

// expects works out what an iteration is expected to gain beyond its price, and reports whether it is expected to gain less.
func (m *model) expects(f loop.Forecast, scores []float64, use float64) bool {
	v := m.variance()
	exact := !m.proves() || m.repeated() > 0 && v == 0
	c := m.course[max(0, len(m.course)-8):]
	if exact {
		scores, c, v = scores[max(0, len(scores)-8):], nil, 0
		for i, y := range scores {
			c = append(c, mean{y, 1})
			if i >= 2 {
				v += math.Pow(y-2*scores[i-1]+scores[i-2], 2) / 6 / float64(len(scores)-2)
			}
		}
	}
	if len(c) < 3 || exact && !f.Predictable || !exact && v == 0 && len(m.lastScores(8)) < 5 {
		return false
	}
	var n, x, xx, xy float64
	for i, p := range c {
		n, x = n+float64(p.n), x+float64(p.n*i)
	}
	for i, p := range c {
		d := float64(i) - x/n
		xx, xy = xx+float64(p.n)*d*d, xy+float64(p.n)*d*p.y
	}
	// Bayes: half of a score's error before, the slope with its error after.
	gain, off, e := xy/xx, 0.0, math.Sqrt(v/(n/float64(len(c))))
	if v > 0 {
		precision := 4/(e*e) + xx/v
		gain, off = xy/v/precision, math.Sqrt(1/precision)
	}
	if exact {
		gain = f.Gain
	}
	price := max(m.price, e/20)
	if m.ahead, m.enough = max(0, gain-price), 0.4*price; off > 0 {
		z := (gain - price) / off
		m.ahead = off*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi) + (gain-price)*(1+math.Erf(z/math.Sqrt2))/2
	}
	return round(gain/use) < m.p.NotWorth.Gain
}

// left is how many of the next iterations count.
func (m *model) left() float64 {
	if limit := int(m.p.MaxIterations); limit > 0 {
		return float64(max(1, min(8, limit-m.iteration)))
	}
	return 8
}
