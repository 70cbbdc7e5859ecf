// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/loop"
)

// compared runs a loop whose judge compares each version, twice, with answers for the first and for the second place.
func compared(t *testing.T, change func(*loop.Plan), answers ...[]float64) trace {
	t.Helper()
	p := judged(2)
	p.Version, p.MaxIterations, p.Score.Judge.Compare = p.Current(), uint(len(answers)), loop.CompareBest
	change(&p)
	return run(t, p, said(p, "abcdefghijklmnopqrst", answers...))
}

// A place in the chain of comparisons is that of the other version plus the mean of the answers, of which every second one is
// about the swapped versions. A version replaces the other one if it is better by more than 1.5 errors.
func TestScoreIsAPlaceInTheChain(t *testing.T) {
	tr := compared(t, func(*loop.Plan) {}, []float64{2}, []float64{1, -1}, []float64{1, 0}, []float64{2, -1})
	want := []float64{0, 1, 1.5, 2.5}
	for i, rec := range tr.ended {
		if *rec.Score != want[i] {
			t.Errorf("iteration %d has the score %v, want %v", i+1, *rec.Score, want[i])
		}
	}
	if tr.ended[0].Samples != 1 || tr.ended[1].Samples != 2 {
		t.Errorf("%+v", tr.ended)
	}
	if tr.tally.Rival.Iteration != 4 { // better than 2 by 1.5 with an error of 0.53; 3 is better by 0.5
		t.Errorf("compared with %d", tr.tally.Rival.Iteration)
	}
}

// Versions of which none is better than the best converge; versions that are better each time do not.
func TestComparisonsConverge(t *testing.T) {
	delta := func(p *loop.Plan) { p.Score.MinDelta, p.Score.Patience = new(0.1), 2 }
	flat, rising := make([][]float64, 12), make([][]float64, 12)
	for i := range flat {
		flat[i], rising[i] = []float64{1, 1}, []float64{1, -1}
		if i%2 == 0 {
			flat[i], rising[i] = []float64{-1, -1}, []float64{1, 0}
		}
	}
	if tr := compared(t, delta, flat...); tr.stop.Reason != loop.ReasonConverged || tr.stop.Iteration > 9 {
		t.Errorf("flat: %v", tr.stop)
	}
	if tr := compared(t, delta, rising...); tr.stop.Reason != loop.ReasonMaxIterations || tr.stop.BestIteration < 10 {
		t.Errorf("rising: %v", tr.stop)
	}
}

// A rollback after a comparison does not ask the judge about the best: every comparison does that.
func TestRollbackByComparison(t *testing.T) {
	tr := compared(t, func(p *loop.Plan) { p.OnRegression = loop.RollbackOnWorse }, []float64{0}, []float64{-2, 2}, []float64{1, -1})
	if tr.stop.Rollbacks != 1 || tr.stop.BestIteration != 3 || *tr.stop.BestScore != 1 {
		t.Errorf("%v: %+v", tr.stop, tr.ended)
	}
}

// An answer beyond the scale is no score.
func TestAnswerBeyondTheScale(t *testing.T) {
	tr := compared(t, func(*loop.Plan) {}, []float64{7}, []float64{1, 1})
	if want := "the judge judge compares two versions and answers from -2 to 2, not 7"; tr.ended[0].Unscored != want {
		t.Errorf("%q, want %q", tr.ended[0].Unscored, want)
	}
}

// What a comparison cannot mean is refused.
func TestComparisonIsChecked(t *testing.T) {
	for want, change := range map[string]func(*loop.Plan){
		`score.judge.compare is "start"`:                            func(p *loop.Plan) { p.Score.Judge.Compare = "start" },
		"a comparison is made an even number of times":              func(p *loop.Plan) { p.Score.Judge.Samples = 3 },
		"score.dimensions means nothing for a judge that compares":  func(p *loop.Plan) { p.Score.Dimensions = []string{"a"} },
		"on_plateau[0] begins from the start, and score.judge comp": func(p *loop.Plan) { p.Score.MinDelta, p.OnPlateau = new(0.1), []loop.Leg{{Fresh: true}} },
	} {
		p := judged(2)
		p.Score.Judge.Compare = loop.CompareBest
		if change(&p); p.Check() == nil || !strings.Contains(p.Check().Error(), want) {
			t.Errorf("%s: %v", want, p.Check())
		}
	}
}

// A back-test with a judge that compares, or with other versions to compare, has no answers.
func TestBacktestOfAComparison(t *testing.T) {
	p := judged(2)
	p.Version, p.MaxIterations = p.Current(), 3
	tr := run(t, p, said(p, "abc", []float64{1, 1.5}, []float64{2, 1.5}, []float64{1, 1}))
	q := p
	s, j := *p.Score, *p.Score.Judge
	j.Compare, s.Judge = loop.CompareBest, &j
	q.Score = &s
	if got := q.BacktestOf(&p, tr.outcomes); !got.Unknown || !strings.Contains(got.Note, `would ask "judge" about other versions`) {
		t.Errorf("%+v", got)
	}
}
