// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"testing"

	"github.com/refrain-dev/refrain/loop"
)

// M3, M4: where the scores are going.
func TestTrend(t *testing.T) {
	for _, c := range []struct {
		name   string
		scores []float64
		want   loop.Trend
	}{
		{"too few", []float64{1, 2}, ""},
		{"the seed's", []float64{5.2, 6.8, 7.4, 7.6}, loop.Improving},
		{"the seed's, early", []float64{5.2, 6.8, 7.4}, loop.Improving},
		{"a line", []float64{1, 2, 3, 4, 5, 6}, loop.Improving},
		{"small steps add up", []float64{95, 95.5, 96, 96.5, 97}, loop.Improving},
		{"a dip on the way", []float64{5, 7, 6.5, 7.5, 8}, loop.Improving},
		{"a dip at the end", []float64{5, 6, 7, 8, 7.5}, loop.Improving},
		{"all the same", []float64{7, 7, 7}, loop.Plateau},
		{"about the same", []float64{7, 7.02, 6.99, 7.01}, loop.Plateau},
		{"up, and then flat", []float64{5, 6, 7, 7.02, 7.03}, loop.Plateau},
		{"down, and then flat", []float64{8, 5, 5, 5}, loop.Plateau},
		{"up and back", []float64{7, 8, 7}, loop.Plateau},
		{"down", []float64{8, 7, 6}, loop.Regressing},
		{"down all in all", []float64{8, 6, 7}, loop.Regressing},
		{"up, and now down", []float64{5, 6, 8, 7, 6.5}, loop.Regressing},
		{"to and fro", []float64{5, 7, 5, 7, 5}, loop.Oscillating},
		{"to and fro, four", []float64{5, 7, 5, 7}, loop.Oscillating},
		{"forward in jerks", []float64{5, 7, 6, 8}, loop.Improving},
		{"long ago", []float64{1, 2, 3, 7, 7, 7, 7, 7}, loop.Plateau},
		{"around zero", []float64{-1, 0, 1}, loop.Improving},
		{"zero", []float64{0, 0, 0}, loop.Plateau},
	} {
		p := loop.Plan{Score: &loop.Score{Key: "score"}}
		if got := p.Trend(&loop.Tally{Scores: c.scores}); got != c.want {
			t.Errorf("%s: %v are %q, want %q", c.name, c.scores, got, c.want)
		}
		// Turned round, a score is what it was.
		for i := range c.scores {
			c.scores[i] = -c.scores[i]
		}
		p.Score.LowerIsBetter = true
		if got := p.Trend(&loop.Tally{Scores: c.scores}); got != c.want {
			t.Errorf("%s, lower is better: %v are %q, want %q", c.name, c.scores, got, c.want)
		}
	}
}
