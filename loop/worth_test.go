// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/loop"
)

// priced makes a plan ask for a gain, by the rules for new loops.
func priced(gain float64) func(*loop.Plan) {
	return func(p *loop.Plan) {
		p.NotWorth = &loop.NotWorth{Gain: gain}
		p.Version = p.Current()
	}
}

// T31: a loop with noisy scores stops when the iterations that are left promise too little for their price.
func TestNotWorthWeighsTheRest(t *testing.T) {
	flat := []float64{5, 5.1, 4.9, 5.05, 5, 4.95, 5.1, 5, 5, 5, 5.05, 4.95}
	slow := []float64{5, 5.5, 5.4, 5.8, 5.7, 6.2, 6.4, 6.5, 6.6, 6.9, 6.8, 7.2}
	for name, c := range map[string]struct {
		gain   float64
		scores []float64
		from   int // the iterations in which it may stop; 0: it does not
		to     int
	}{
		"flat, at a high price":   {0.3, flat, 3, 4},
		"flat, at a price":        {0.1, flat, 5, 11},
		"flat, at a low price":    {0.01, flat, 0, 0},
		"slow, at a price":        {0.1, slow, 0, 0},
		"slow, at a higher price": {0.5, slow, 3, 5},
		"it gets worse":           {0.3, []float64{9, 8, 7, 6}, 3, 3},
	} {
		tr := proved(t, priced(c.gain), 0.7, c.scores...)
		stopped := tr.stop.Iteration
		if tr.stop.Reason != loop.ReasonConverged {
			stopped = 0
		}
		if stopped < c.from || stopped > c.to {
			t.Errorf("%s: %v", name, tr.stop)
		}
	}
	tr := proved(t, priced(0.3), 0.7, flat...)
	row, _ := condition(tr.stop, "not_worth")
	if !row.Fired || !strings.HasSuffix(row.Threshold, "0.3, 0.12") || !strings.Contains(row.Value, " an iteration over ") ||
		!strings.HasPrefix(tr.stop.Detail, "the next iteration is expected to gain ") {
		t.Errorf("%v: %+v", tr.stop, row)
	}
	if s := tr.stop.Proof; s == nil || s.Chance < 0.9 || s.Chance > 1 || s.Gain != 0.3 || s.Scores != tr.stop.Iteration || s.Odds != 0 {
		t.Errorf("%+v", s)
	}
}

// A flat loop without a limit stops however low the price is, since less than a twentieth of an error cannot be seen.
func TestNotWorthEndsAFlatLoopWithoutALimit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := judged(3)
	p.MaxIterations = 0
	priced(1e-9)(&p)
	tr := run(t, p, func(d loop.Decision) loop.Outcome {
		if d.Iteration > 200 {
			return loop.Outcome{Canceled: "it does not stop"}
		}
		return loop.Outcome{State: map[string]any{"score": 5 + r.NormFloat64()}, Fingerprint: string(rune('a' + d.Iteration))}
	})
	if tr.stop.Reason != loop.ReasonConverged || tr.stop.Iteration < 8 {
		t.Errorf("%v", tr.stop)
	}
}

// Exact scores that jump about their course are no smooth curve that ends: the jumps may come again.
func TestNotWorthOfExactScoresThatJump(t *testing.T) {
	stairs := []any{5, 6, 6, 6, 7, 7, 7, 8, 8}
	for _, c := range []struct {
		rules uint
		gain  float64
		want  int
	}{{0, 0.02, 3}, {4, 0.02, 9}, {4, 0.9, 3}} {
		p := loop.Plan{Version: c.rules, Steps: steps("a"), MaxIterations: 9, Score: &loop.Score{Key: "score"}, NotWorth: &loop.NotWorth{Gain: c.gain}}
		if tr := run(t, p, scored(stairs...)); tr.stop.Iteration != c.want || tr.stop.Proof != nil {
			t.Errorf("rules %d, %v: %v", c.rules, c.gain, tr.stop)
		}
	}
}

// A plan without not_worth keeps its version of the rules.
func TestCurrentRules(t *testing.T) {
	exact, noisy := loop.Plan{Score: &loop.Score{}}, judged(3)
	if got := []uint{(&loop.Plan{}).Current(), exact.Current(), noisy.Current()}; !slices.Equal(got, []uint{0, 0, 3}) {
		t.Error(got)
	}
	exact.NotWorth, noisy.NotWorth = &loop.NotWorth{Gain: 1}, &loop.NotWorth{Gain: 1}
	if exact.Current() != 4 || noisy.Current() != 4 {
		t.Error(exact.Current(), noisy.Current())
	}
}

// ends returns the iteration in which a loop ends whose judge gives the scores of each version.
func ends(p *loop.Plan, scores [][]float64) int {
	var t loop.Tally
	for {
		d := p.Next(&t)
		o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, RolledBack: d.Action == loop.Rollback}
		switch {
		case d.Action == loop.Stop:
			return d.Stop.Iteration
		case d.Step == 0:
			o.Fingerprint = string(rune('a' + d.Iteration))
		case d.Step > 0:
			o.State = map[string]any{"score": scores[d.Iteration-1][d.Sample-1]}
		}
		p.Add(&t, o)
	}
}

// A course stops in the same iteration whatever the scale, the sense and the level of its scores are, and no later at a higher
// price or with fewer iterations left.
func TestNotWorthDoesNotDependOnTheScale(t *testing.T) {
	const seeds = 150
	stops := 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 7))
		level, off, scores := 5.0, 0.3+r.Float64(), [][]float64(nil)
		for range 12 {
			level += float64(r.IntN(7)-2) / 8
			scores = append(scores, []float64{level + off*r.NormFloat64(), level + off*r.NormFloat64(), level + off*r.NormFloat64()})
		}
		roll := pick(r, loop.KeepBest, loop.RollbackOnWorse)
		under := func(price, scale, shift float64, limit uint) int {
			p := judged(3)
			p.MaxIterations, p.OnRegression, p.Score.LowerIsBetter, p.Score.Judge.Bound = limit, roll, scale < 0, true
			priced(price * math.Abs(scale))(&p)
			own := make([][]float64, len(scores))
			for i, s := range scores {
				own[i] = []float64{scale*s[0] + shift, scale*s[1] + shift, scale*s[2] + shift}
			}
			return ends(&p, own)
		}
		price := pick(r, 0.02, 0.1, 0.3)
		at := under(price, 1, 0, 12)
		for _, as := range [][2]float64{{8, 0}, {-1, 0}, {1, 64}} {
			if got := under(price, as[0], as[1], 12); got != at {
				t.Errorf("seed %d: ends after %d, and after %d with scores times %v plus %v", seed, at, got, as[0], as[1])
			}
		}
		if got := under(3*price, 1, 0, 12); got > at {
			t.Errorf("seed %d: ends after %d, and after %d at three times the price", seed, at, got)
		}
		if got := under(price, 1, 0, 9); got > min(9, at) {
			t.Errorf("seed %d: ends after %d, and after %d with 9 iterations", seed, at, got)
		}
		if at < 12 {
			stops++
		}
	}
	if stops < seeds/6 || stops > seeds*5/6 {
		t.Errorf("%d of %d stop before the limit", stops, seeds)
	}
}
