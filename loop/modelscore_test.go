// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/loop"
)

// decode reads a value of the driver's as a score, with dimensions.
func decode(v any, s *loop.Score) (score float64, dims map[string]float64, ok bool) {
	object, _ := v.(map[string]any)
	switch x := v.(type) {
	case float64:
		score, ok = x, x-x == 0 // neither NaN nor infinite
	case string:
		if x == "8.5/10" {
			score, ok = 8.5, true
		}
		_ = json.Unmarshal([]byte(x), &object)
	}
	if object != nil {
		score, ok = object["score"].(float64), true
		dims = map[string]float64{}
		for name, d := range object["dimensions"].(map[string]any) {
			f, _ := strconv.ParseFloat(fmt.Sprint(d), 64)
			dims[name] = f
		}
	}
	if s.DimensionTarget != nil && len(dims) == 0 {
		return 0, nil, false
	}
	return score, dims, ok
}

func joined(prints []string) string {
	if len(prints) == 0 || slices.Contains(prints, "") {
		return ""
	}
	return strings.Join(prints, " ")
}

func squares(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += (x - average(xs)) * (x - average(xs))
	}
	return sum
}

func average(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += x / float64(len(xs))
	}
	return sum
}

// noise is twice the standard error of the difference of two means of n samples.
func (m *model) noise(n int) float64 {
	sum, free := 0.0, 0
	for _, c := range m.candidates {
		sum += squares(c.said)
		free += len(c.said) - 1
	}
	if free == 0 {
		return 0
	}
	return round(2 * math.Sqrt(2*sum/float64(free)/float64(max(1, n))))
}

// score is the agent's own, the judge's mean, or what the state says.
func (m *model) score(it *past, o loop.Outcome) {
	s := m.p.Score
	score, dims, ok := decode(o.State["score"], s)
	switch {
	case m.exit != "" && o.Exit.Score != nil:
		score, dims, ok = *o.Exit.Score, nil, true
		it.noise = m.noise(len(m.said))
	case s.Judge == nil:
		ok = ok && m.wrote
	case m.asked == 0 || len(m.said) == 0:
		ok = false
	default:
		if n := len(m.candidates); m.judged == "" || n == 0 || m.candidates[n-1].text != m.judged {
			m.candidates = append(m.candidates, candidate{text: m.judged, first: m.iteration})
		}
		c := &m.candidates[len(m.candidates)-1]
		c.said = append(c.said, m.said...)
		c.times++
		it.count, it.judged = len(c.said), true
		score, dims, ok = round(average(c.said)), meanOf(m.parts), true
		it.noise = m.noise(len(m.said))
		it.doubted = m.ranges() && m.gain(*s.Target, score) < 1.645*m.targetError()
	}
	if !ok {
		return
	}
	it.score, it.dims = &score, dims
	m.prove(it)
	if m.accepted != nil {
		it.delta = new(m.gain(*m.accepted, score))
		switch {
		case *m.accepted != 0:
			it.percent = *it.delta / max(*m.accepted, -*m.accepted) * 100
		case *it.delta > 0:
			it.percent = 1e300 // over nothing
		}
	}
}

// meanOf are the dimensions that all samples have.
func meanOf(all []map[string]float64) map[string]float64 {
	mean := map[string]float64{}
	for name := range all[0] {
		sum, n := 0.0, 0
		for _, dims := range all {
			if d, ok := dims[name]; ok {
				sum += d
				n++
			}
		}
		if n == len(all) {
			mean[name] = sum / float64(n)
		}
	}
	return mean
}
