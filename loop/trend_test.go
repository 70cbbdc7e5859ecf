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
		{"steadily, in small steps", []float64{39.6, 39.7, 39.8, 39.9, 40}, loop.Improving},
		{"steadily down", []float64{40, 39.9, 39.8, 39.7, 39.6}, loop.Regressing},
		{"ever less", []float64{39.6, 39.7, 39.72, 39.73, 39.731}, loop.Plateau},
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

// 37 l: a score that rises by the same amount in each iteration improves, however long the loop has run. So does one with
// noise whose gains add up, though no two of its scores differ by more than chance.
func TestTrendOfASteadyRise(t *testing.T) {
	p := loop.Plan{Steps: []loop.Step{{Name: "judge"}}, MaxIterations: 1000, Score: &loop.Score{Key: "score", MinDelta: new(0.01), Patience: 2}}
	var tally loop.Tally
	for n := 1; n <= 500; n++ {
		p.Add(&tally, loop.Outcome{Iteration: n, State: map[string]any{"score": 5 + 0.1*float64(n)}, Wrote: []string{"score"}})
		if got := p.Trend(&tally); n >= 3 && got != loop.Improving {
			t.Fatalf("iteration %d: %q", n, got)
		}
	}
	if d := p.Next(&tally); d.Action != loop.RunStep {
		t.Errorf("it stops: %+v", d.Stop)
	}
	for _, c := range []struct {
		gain, until float64
		want        loop.Trend
	}{{0.2, 20, loop.Improving}, {-0.2, 20, loop.Regressing}, {0, 20, loop.Plateau}, {0.2, 2, loop.Plateau}} {
		p := loop.Plan{Steps: []loop.Step{{Name: "judge"}}, Score: &loop.Score{Key: "score", Judge: &loop.Judge{Step: "judge", Samples: 3}}}
		p.Version = p.Current()
		var tally loop.Tally
		for n := 1; n <= 9; n++ {
			for _, off := range []float64{-0.5, 0, 0.5} {
				p.Add(&tally, loop.Outcome{Iteration: n, State: map[string]any{"score": 7 + c.gain*min(float64(n), c.until) + off}, Wrote: []string{"score"}})
			}
		}
		if got := p.Trend(&tally); got != c.want {
			t.Errorf("a gain of %g until iteration %g: %q, want %q", c.gain, c.until, got, c.want)
		}
	}
}
