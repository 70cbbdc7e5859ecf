// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/loop"
)

// proved is a loop of a writer and a judge who is asked three times, by the rules for new loops. Each version is
// a new one, and the answers about it are its mean and the same more and less.
func proved(t *testing.T, change func(*loop.Plan), off float64, means ...float64) trace {
	t.Helper()
	p := judged(3)
	p.Version, p.MaxIterations = p.Current(), uint(len(means))
	change(&p)
	var answers [][]float64
	for _, m := range means {
		answers = append(answers, []float64{m - off, m, m + off})
	}
	return run(t, p, said(p, "abcdefghijklmnopqrst", answers...))
}

// LOOP 14: the best is the version with the largest mean; it need not beat the others by the noise.
func TestLaw14BestIsTheLargestMean(t *testing.T) {
	tr := proved(t, func(*loop.Plan) {}, 1, 5, 5.1, 5.05, 5.2)
	if got := bests(tr); got != "1 2 4" || tr.stop.BestIteration != 4 {
		t.Errorf("best in %s: %v", got, tr.stop)
	}
	if e := tr.ended[3].Error; e < 0.5 || e > 0.7 { // 1/√3, and a little for few answers
		t.Errorf("the error is %v", e)
	}
	lower := proved(t, func(p *loop.Plan) { p.Score.LowerIsBetter = true }, 1, 5, 5.1, 4.9)
	if got := bests(lower); got != "1 3" {
		t.Errorf("lower is better: best in %s", got)
	}
}

// LOOP 14: a version that is judged again has one mean of all its answers, and stays the best it was.
func TestLaw14AnswersAboutTheBestArePooled(t *testing.T) {
	p := judged(2)
	p.Version, p.MaxIterations, p.OnRegression = p.Current(), 3, loop.RollbackOnWorse
	tr := run(t, p, said(p, "aab", []float64{8, 8.2}, []float64{6, 6.2}, []float64{7.5, 7.7}))
	if tr.ended[1].Rejected != "" || tr.stop.BestIteration != 3 || *tr.tally.Best != 7.6 {
		t.Errorf("%v: %+v", tr.stop, tr.ended)
	}
	p.MaxIterations = 2
	tr = run(t, p, said(p, "aa", []float64{8, 8.2}, []float64{6, 6.2}))
	if tr.stop.BestIteration != 1 || *tr.stop.BestScore != 7.1 {
		t.Errorf("%v", tr.stop)
	}
}

// LOOP 14: a stand-still is proved over the last scores, not asked of each step.
func TestLaw14ConvergedByProof(t *testing.T) {
	wants := func(delta float64, patience uint) func(*loop.Plan) {
		return func(p *loop.Plan) { p.Score.MinDelta, p.Score.Patience = &delta, patience }
	}
	const off = 0.504 // three answers with a variance of 0.29
	flat := []float64{7.0, 7.3, 6.9, 7.2, 7.0, 7.1, 6.9, 7, 7, 7}
	tr := proved(t, wants(0.1, 2), off, flat...)
	if tr.stop.Reason != loop.ReasonConverged || tr.stop.Iteration != 7 || !strings.HasPrefix(tr.stop.Detail,
		"Convergence detected: Improvement < 0.104 an iteration (a third of a score's error), over the last ") {
		t.Errorf("flat: %v", tr.stop)
	}
	c, _ := condition(tr.stop, "converged")
	if !c.Fired || !strings.Contains(c.Value, " an iteration over ") || c.Threshold != "0.104, 100:1" {
		t.Errorf("flat: %+v", c)
	}
	if tr = proved(t, wants(0.3, 2), off, flat...); tr.stop.Iteration >= 7 || !strings.Contains(tr.stop.Detail, "Improvement < 0.3 an iteration, over") {
		t.Errorf("a gain of 0.3 is asked for: %v", tr.stop)
	}
	tr = proved(t, wants(0.1, 6), off, flat...)
	if c, _ = condition(tr.stop, "converged"); tr.stop.Iteration <= 7 || c.Threshold != "0.103, 10000:1" {
		t.Errorf("patience 6: %v: %+v", tr.stop, c)
	}
	// Each step is within the noise, and together they are a gain.
	if tr = proved(t, wants(0.1, 2), off, 7.0, 7.1, 7.5, 7.3, 7.7, 7.6); tr.stop.Reason != loop.ReasonMaxIterations {
		t.Errorf("slow: %v", tr.stop)
	}
	// The rules before compared the steps. A run that was made by them is replayed by them.
	old := func(p *loop.Plan) { wants(0.1, 2)(p); p.Version = 0 }
	if tr = proved(t, old, off, 7.0, 7.1, 7.5, 7.3, 7.7, 7.6); tr.stop.Reason != loop.ReasonConverged || tr.stop.Iteration != 3 {
		t.Errorf("old rules: %v", tr.stop)
	}
}

// LOOP 14: the same version again needs no proof, nor does a judge who always agrees: 13 holds as it stands.
func TestLaw14NoProofIsNeeded(t *testing.T) {
	p := judged(2)
	p.Version, p.Score.MinDelta, p.Score.Patience = p.Current(), new(0.1), 2
	tr := run(t, p, said(p, "aaaaaaaaa", []float64{7, 8}, []float64{7, 9}, []float64{7, 8}))
	const detail = "Convergence detected: the version has been the same for 2 iterations more"
	if tr.stop.Reason != loop.ReasonConverged || tr.stop.Iteration != 3 || tr.stop.Detail != detail {
		t.Errorf("the same version: %v", tr.stop)
	}
	exact := proved(t, func(p *loop.Plan) { p.Score.MinDeltaPercent = new(5.0) }, 0, 5.2, 6.8, 7.4, 7.6, 9)
	if exact.stop.Iteration != 4 || exact.stop.Detail != "Convergence detected: Improvement < 5%" {
		t.Errorf("all agree: %v", exact.stop)
	}
}

// LOOP 14: with one answer each the noise is that of the course; before five scores it is unknown, and nothing converges.
func TestLaw14NoiseOfTheCourse(t *testing.T) {
	p := judged(1)
	p.Version, p.MaxIterations, p.Score.MinDelta = p.Current(), 12, new(0.1)
	var all [][]float64
	for i := range 12 {
		all = append(all, []float64{5 + []float64{0.3, -0.4, 0.1}[i%3]})
	}
	tr := run(t, p, said(p, "abcdefghijkl", all...))
	if tr.stop.Reason != loop.ReasonConverged || tr.stop.Iteration < 5 || tr.stop.Iteration > 9 {
		t.Errorf("%v", tr.stop)
	}
	if tr.ended[3].Error != 0 || tr.ended[4].Error == 0 {
		t.Errorf("errors %v, %v", tr.ended[3].Error, tr.ended[4].Error)
	}
}

// LOOP 14, 18: a version is undone if it is worse than the best by more than 1.5 standard errors of the difference.
func TestLaw14UndoneByAMargin(t *testing.T) {
	tr := proved(t, func(p *loop.Plan) { p.OnRegression, p.Score.Judge.Bound = loop.RollbackOnWorse, true }, 0.4, 8.2, 7.9, 7.4, 8.1)
	if tr.ended[1].Rejected != "" || tr.stop.Rollbacks != 1 || tr.stop.BestIteration != 1 {
		t.Errorf("%v: %+v", tr.stop, tr.ended)
	}
	margin := 1.5 * 0.4 * 1.1547 * 0.81650 // f is 6: √(8/6), √(2/3)
	if got := tr.ended[2].Rejected; got != fmt.Sprintf("score 7.4 is worse than 8.2, the best so far (iteration 1), by more than %.3g", margin) {
		t.Error(got)
	}
	if *tr.ended[3].Delta < -0.1001 || *tr.ended[3].Delta > -0.0999 {
		t.Errorf("after a rollback gains count from the best: %+v", tr.ended[3])
	}
}

// LOOP 14, 18: after a rollback the judge is asked once more about the best, and its answer joins the mean.
func TestLaw14TheRestoredBestIsJudgedAgain(t *testing.T) {
	p := judged(3)
	p.Version, p.MaxIterations, p.OnRegression = p.Current(), 4, loop.RollbackOnWorse
	as := func(again func() loop.Outcome) script {
		even := said(p, "abcd", []float64{7.8, 8.2, 8.6}, []float64{7, 7.4, 7.8}, []float64{7.8, 8.1, 8.4}, []float64{5, 5.4, 5.8})
		return func(d loop.Decision) loop.Outcome {
			if d.Step == 1 && d.Sample > 3 {
				return again()
			}
			return even(d)
		}
	}
	tr := run(t, p, as(func() loop.Outcome { return loop.Outcome{State: map[string]any{"score": 7.6}} }))
	// The last iteration is undone too, and nothing follows it.
	const ran = "writer@1 judge@1 judge@1 judge@1 writer@2 judge@2 judge@2 judge@2 back to 1 judge@2 " +
		"writer@3 judge@3 judge@3 judge@3 writer@4 judge@4 judge@4 judge@4 back to 3"
	if got := strings.Join(tr.ran, " "); got != ran {
		t.Errorf("ran %s", got)
	}
	it := tr.ended[2]
	if it.Rejudged == nil || *it.Rejudged != (loop.Rejudged{Iteration: 1, Score: 7.6, Mean: 8.05, Answers: 4}) || *it.Delta != 0.05 || !it.Best ||
		tr.stop.BestIteration != 3 || tr.stop.Rollbacks != 2 || tr.ended[3].Rejudged != nil {
		t.Errorf("%v: %+v", tr.stop, tr.ended)
	}
	var sampled []int
	for _, d := range tr.decided {
		if d.Iteration == 2 && d.Sample > 0 {
			sampled = append(sampled, d.Sample)
		}
	}
	if !slices.Equal(sampled, []int{1, 2, 3, 5}) { // the fourth may be one that failed
		t.Errorf("samples %v", sampled)
	}
	// A judge that fails then, or says no number, ends nothing.
	for name, o := range map[string]loop.Outcome{"fails": failure(""), "no number": {State: map[string]any{"score": "?"}}, "wrote nothing": {Wrote: []string{}}} {
		tr = run(t, p, as(func() loop.Outcome { return o }))
		if tr.stop.Reason != loop.ReasonMaxIterations || tr.ended[2].Rejudged != nil || tr.stop.BestIteration != 1 {
			t.Errorf("%s: %v: %+v", name, tr.stop, tr.ended)
		}
	}
	for name, change := range map[string]func(*loop.Plan){
		"it reads what the iteration had": func(p *loop.Plan) { p.Score.Judge.Bound = true },
		"the rules before":                func(p *loop.Plan) { p.Version = 2 },
		"the best is kept":                func(p *loop.Plan) { p.OnRegression = loop.KeepBest },
	} {
		own := p
		own.Score = new(*p.Score)
		own.Score.Judge = new(*p.Score.Judge)
		change(&own)
		run(t, own, as(func() loop.Outcome { t.Errorf("%s: it is judged again", name); return loop.Outcome{} }))
	}
}

// T31: not_worth asks for proof too.
func TestNotWorthByProof(t *testing.T) {
	rule := func(p *loop.Plan) { p.NotWorth = &loop.NotWorth{Gain: 0.2} }
	slow := func(p *loop.Plan) { rule(p); p.NotWorth.Gain = 0.15 }
	if tr := proved(t, slow, 0.7, 5, 5.5, 5.4, 5.8, 5.7, 6.2, 6.4, 6.5); tr.stop.Reason != loop.ReasonMaxIterations {
		t.Errorf("slow: %v", tr.stop)
	}
	tr := proved(t, rule, 0.7, 5, 5.1, 4.9, 5.05, 5, 4.95, 5.1, 5, 5, 5)
	if tr.stop.Reason != loop.ReasonConverged || !strings.HasPrefix(tr.stop.Detail, "the next iteration is expected to gain ") {
		t.Errorf("flat: %v", tr.stop)
	}
}

// A plan of a later version of the rules is refused, since what it decides is not known.
func TestRulesOfALaterVersion(t *testing.T) {
	p := judged(3)
	p.Version = 5
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "the plan follows version 5 of the rules, and this program knows 4") {
		t.Error(err)
	}
}

// LOOP 14: a score says by how much it is off, in the record of an iteration, in that of the stop and in the ledger; an exact
// one does not.
func TestScoreSaysHowFarItIsOff(t *testing.T) {
	tr := proved(t, func(p *loop.Plan) { p.Score.Target = new(9.0) }, 0.5, 7, 8, 7.5)
	if got := tr.ended[1].String(); got != "Iteration 2: Score 8 ± 0.35 → Improvement: +1 (14.3%)" {
		t.Error(got)
	}
	if got := tr.ended[2].String(); got != "Iteration 3: Score 7.5 ± 0.33 → Improvement: -0.5 (-6.2%), within the judge's noise" {
		t.Error(got)
	}
	if got := fmt.Sprintf("%.2g", tr.stop.BestError); got != "0.33" || tr.stop.BestIteration != 2 {
		t.Errorf("best %v ± %s", *tr.stop.BestScore, got)
	}
	if row, _ := condition(tr.stop, "target"); row.Value != "7.5 ± 0.33" {
		t.Errorf("%+v", row)
	}
	exact := proved(t, func(p *loop.Plan) { p.Score.Target = new(9.0) }, 0, 7, 8, 7.5)
	if row, _ := condition(exact.stop, "target"); exact.ended[1].String() != "Iteration 2: Score 8 → Improvement: +1 (14.3%)" ||
		exact.stop.BestError != 0 || row.Value != "7.5" {
		t.Errorf("%v, %+v, %v", exact.ended[1], row, exact.stop.BestError)
	}
}

// LOOP 14: the record says how sure a stop is for which scores with noise are the reason, and nothing of any other stop.
func TestStopSaysHowSureItIs(t *testing.T) {
	flat := []float64{7.0, 7.3, 6.9, 7.2, 7.0, 7.1, 6.9, 7}
	tr := proved(t, func(p *loop.Plan) { p.Score.MinDelta, p.Score.Patience = new(0.1), 2 }, 0.504, flat...)
	if s := tr.stop.Proof; tr.stop.Reason != loop.ReasonConverged || s == nil || s.Odds < 100 || s.Scores < 3 || s.Gain != 0.207 || s.Chance != 0 {
		t.Errorf("converged: %v, %+v", tr.stop, s)
	}
	tr = proved(t, func(p *loop.Plan) { p.NotWorth = &loop.NotWorth{Gain: 0.3} }, 0.504, flat...)
	if s := tr.stop.Proof; tr.stop.Reason != loop.ReasonConverged || s == nil || s.Odds < 100 || s.Gain != 0.6 {
		t.Errorf("not worth it: %v, %+v", tr.stop, s)
	}
	tr = proved(t, func(p *loop.Plan) { p.Score.Target = new(7.2) }, 0.504, flat...)
	if s := tr.stop.Proof; tr.stop.Reason != loop.ReasonTarget || s == nil || s.Odds != 0 || s.Chance < 0.5 || s.Chance > 0.7 {
		t.Errorf("target: %v, %+v", tr.stop, s)
	}
	p := judged(2)
	p.Version, p.MaxIterations, p.Score.DimensionTarget = p.Current(), 3, new(7.0)
	plain := said(p, "abc", []float64{7, 8})
	tr = run(t, p, func(d loop.Decision) loop.Outcome { // dimensions alone
		o := plain(d)
		o.State["score"] = fmt.Sprintf(`{"score": %v, "dimensions": {"wit": 8}}`, o.State["score"])
		return o
	})
	if tr.stop.Reason != loop.ReasonTarget || tr.ended[0].Error == 0 || tr.stop.Proof != nil {
		t.Errorf("dimensions: %v, %+v", tr.stop, tr.stop.Proof)
	}
	tr = proved(t, func(p *loop.Plan) { p.Score.Target = new(9.0) }, 0.504, flat...)
	if tr.stop.Reason != loop.ReasonMaxIterations || tr.stop.Proof != nil {
		t.Errorf("limit: %v, %+v", tr.stop, tr.stop.Proof)
	}
	tr = proved(t, func(p *loop.Plan) { p.Score.MinDelta, p.Score.Target = new(0.1), new(9.0) }, 0, 7, 8, 8, 8)
	if tr.stop.Reason != loop.ReasonConverged || tr.stop.Proof != nil {
		t.Errorf("exact: %v, %+v", tr.stop, tr.stop.Proof)
	}
}
