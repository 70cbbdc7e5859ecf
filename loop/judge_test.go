// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// judged is a loop of a writer and a judge who is asked so often.
func judged(samples uint) loop.Plan {
	return loop.Plan{Steps: steps("writer", "judge"), MaxIterations: 9, Score: &loop.Score{Key: "score", Judge: &loop.Judge{Step: "judge", Samples: samples}}}
}

// said is what the judge says, iteration by iteration, and what text it judges:
// the same letter is the same text.
func said(p loop.Plan, texts string, scores ...[]float64) script {
	return func(d loop.Decision) loop.Outcome {
		if d.Step < 0 {
			return loop.Outcome{}
		}
		i := min(d.Iteration, len(scores)) - 1
		if p.Steps[d.Step].Name != "judge" {
			o := loop.Outcome{State: map[string]any{"score": math.NaN()}}
			if i < len(texts) && texts[i] != '?' {
				o.Fingerprint = texts[i : i+1]
			}
			return o
		}
		return loop.Outcome{State: map[string]any{"score": scores[i][min(max(d.Sample, 1), len(scores[i]))-1]}, Fingerprint: "words of the judge"}
	}
}

// LOOP 14: a judge that gives the same text 0.2, 0.2, 0.7, 0.7 has seen no
// improvement, whether in one iteration or over two. C18
func TestLaw14NoiseIsNoImprovement(t *testing.T) {
	for name, c := range map[string]struct {
		samples uint
		texts   string
		said    [][]float64
		score   float64 // of the last iteration
	}{
		"in one iteration, then the better half": {4, "ab", [][]float64{{0.2, 0.2, 0.7, 0.7}, {0.7, 0.7, 0.7, 0.7}}, 0.7},
		"over two iterations":                    {2, "aa", [][]float64{{0.2, 0.2}, {0.7, 0.7}}, 0.45},
		"over two, the other way":                {2, "aa", [][]float64{{0.7, 0.7}, {0.2, 0.2}}, 0.45},
		"over four, one sample each":             {1, "aaaa", [][]float64{{0.2}, {0.2}, {0.7}, {0.7}}, 0.45},
	} {
		p := judged(c.samples)
		p.MaxIterations = uint(len(c.said))
		tr := run(t, p, said(p, c.texts, c.said...))
		last := tr.ended[len(tr.ended)-1]
		if *last.Score != c.score || last.Best || tr.stop.BestIteration != 1 {
			t.Errorf("%s: %v, best %v: %+v", name, last, tr.stop.BestIteration, last)
		}
		if last.Noise <= math.Abs(*last.Delta) || last.Samples != int(c.samples) {
			t.Errorf("%s: noise %v, change %v, %d samples", name, last.Noise, *last.Delta, last.Samples)
		}
		// It is a plateau, however small an improvement is asked for.
		p.Score.MinDelta = new(0.0)
		if tr = run(t, p, said(p, c.texts, c.said...)); tr.stop.Reason != loop.ReasonConverged {
			t.Errorf("%s: %v", name, tr.stop)
		}
	}
}

// Without samples and without fingerprints nothing is known of the noise.
func TestUnknownNoise(t *testing.T) {
	for name, p := range map[string]loop.Plan{"no judge": {Steps: steps("a"), Score: &loop.Score{Key: "score"}}, "one sample": judged(1)} {
		p.MaxIterations = 4
		tr := run(t, p, said(p, "????", []float64{0.2}, []float64{0.2}, []float64{0.7}, []float64{0.7}))
		if name == "no judge" {
			tr = run(t, p, scored(0.2, 0.2, 0.7, 0.7))
		}
		if tr.stop.BestIteration != 3 || tr.ended[3].Noise != 0 {
			t.Errorf("%s: %+v", name, tr.stop)
		}
	}
}

// LOOP 14: what exceeds the noise is an improvement, a new best, a regression.
func TestBeyondTheNoise(t *testing.T) {
	a := []float64{4.9, 5.1, 5.0}
	for name, c := range map[string]struct {
		then     []float64
		best     bool
		rejected bool
	}{
		"better":         {[]float64{6.9, 7.1, 7.0}, true, false},
		"a little":       {[]float64{5.0, 5.2, 5.1}, false, false},
		"a little worse": {[]float64{4.8, 5.0, 4.9}, false, false},
		"worse":          {[]float64{3.9, 4.1, 4.0}, false, true},
		"the same":       {a, false, false},
	} {
		p := judged(3)
		p.MaxIterations, p.OnRegression, p.Score.MinDelta = 2, loop.RollbackOnWorse, new(0.01)
		tr := run(t, p, said(p, "ab", a, c.then))
		r := tr.ended[1]
		if r.Best != c.best || (r.Rejected != "") != c.rejected || (tr.stop.Rollbacks == 1) != c.rejected {
			t.Errorf("%s: %+v", name, r)
		}
		if (tr.stop.Reason == loop.ReasonConverged) == c.best {
			t.Errorf("%s: %v", name, tr.stop)
		}
		if want := "Convergence detected: Improvement < 0.163299 (the judge's noise)"; name == "a little" && tr.stop.Detail != want {
			t.Errorf("%s: %s", name, tr.stop.Detail)
		}
	}
	// Lower is better, and all of it is turned round.
	p := judged(3)
	p.MaxIterations, p.OnRegression, p.Score.LowerIsBetter = 4, loop.RollbackOnWorse, true
	tr := run(t, p, said(p, "abcd", a, []float64{4.8, 5.0, 4.9}, []float64{3.9, 4.1, 4.0}, []float64{5.9, 6.1, 6.0}))
	if got := bests(tr); got != "1 3" || tr.ended[3].Rejected == "" || tr.ended[1].Rejected != "" {
		t.Errorf("best %s: %+v", got, tr.ended)
	}
}

// After a rollback gains count from the best, whose state it is, and not from
// what was accepted within the noise.
func TestGainAfterARollbackWithinTheNoise(t *testing.T) {
	p := judged(2)
	p.MaxIterations, p.OnRegression = 4, loop.RollbackOnWorse
	tr := run(t, p, said(p, "abcd", []float64{5, 7}, []float64{5, 6}, []float64{0, 1}, []float64{7, 9}))
	if *tr.ended[1].Score != 5.5 || tr.ended[1].Rejected != "" || tr.ended[2].Rejected == "" || *tr.ended[3].Delta != 2 {
		t.Errorf("%+v", tr.ended)
	}
}

// bests are the iterations that were the best when they ended.
func bests(tr trace) string {
	var out []string
	for _, r := range tr.ended {
		if r.Best {
			out = append(out, string(rune('0'+r.Number)))
		}
	}
	return strings.Join(out, " ")
}

// Small steps that each are within the noise add up against the best.
func TestSlowImprovementIsSeenAtLast(t *testing.T) {
	p := judged(2)
	p.MaxIterations = 8
	var all [][]float64
	for i := range 8 {
		x := 5 + 0.1*float64(i)
		all = append(all, []float64{x - 0.1, x + 0.1})
	}
	if got := bests(run(t, p, said(p, "abcdefgh", all...))); got != "1 4 7" {
		t.Errorf("best in %s", got)
	}
}

// The judge runs as often as the plan says, as one step, and its mean counts.
func TestJudgeSamples(t *testing.T) {
	p := judged(3)
	p.MaxIterations = 2
	tr := run(t, p, said(p, "ab", []float64{4, 5, 9}, []float64{7, 7, 7}))
	if got := strings.Join(tr.ran, " "); got != "writer@1 judge@1 judge@1 judge@1 writer@2 judge@2 judge@2 judge@2" {
		t.Errorf("ran %s", got)
	}
	var samples []int
	for _, d := range tr.decided {
		samples = append(samples, d.Sample)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3, 0, 1, 2, 3}, samples); diff != "" {
		t.Error(diff)
	}
	if tr.tally.Steps != 4 || *tr.ended[0].Score != 6 || tr.ended[0].Samples != 3 {
		t.Errorf("%d steps, %+v", tr.tally.Steps, tr.ended[0])
	}
}

// What stands between the judge's samples and a score.
func TestJudgeInTrouble(t *testing.T) {
	base := judged(3)
	base.MaxIterations = 2
	even := said(base, "ab", []float64{5, 5, 5}, []float64{8, 8, 8})
	in := func(iteration, sample int, o loop.Outcome) script {
		return func(d loop.Decision) loop.Outcome {
			if d.Iteration == iteration && d.Sample == sample && d.Attempt == 1 {
				if o.State == nil {
					o.State = even(d).State
				}
				return o
			}
			return even(d)
		}
	}
	retry, skip, late, first := base, base, base, base
	retry.Steps = []loop.Step{{Name: "writer"}, {Name: "judge", Retry: &loop.Retry{Attempts: 2}}}
	skip.OnError = loop.SkipStep
	late.IterationTimeout = secs(3)
	first.Steps = steps("judge", "writer")
	for name, c := range map[string]struct {
		plan   loop.Plan
		script script
		scores string
		note   string
	}{
		"one cannot be read":        {base, in(2, 2, loop.Outcome{State: map[string]any{"score": "?"}}), "5/3 8/2", ""},
		"none can be read":          {base, said(base, "ab", []float64{5, 5, 5}, []float64{math.NaN(), math.NaN(), math.NaN()}), "5/3 -", `state key "score": not a finite number: NaN`},
		"one fails and is tried":    {retry, in(2, 2, failure("")), "5/3 8/3", ""},
		"one fails for good":        {skip, in(2, 2, failure("")), "5/3 8/1", ""},
		"all fail":                  {skip, in(2, 1, failure("")), "5/3 -", "the judge judge has not judged this iteration"},
		"the iteration is over":     {late, even, "5/2 8/2", ""},
		"an answer from the cache":  {base, in(2, 1, loop.Outcome{Cached: true}), "5/3 8/1", ""},
		"it leaves with the second": {base, in(2, 2, loop.Outcome{Exit: &loop.Exit{}}), "5/3 8/2", ""},
		"it leaves with its own":    {base, in(2, 2, loop.Outcome{Exit: &loop.Exit{Score: new(3.0)}}), "5/3 3/0", ""},
		"somebody leaves before":    {base, at(base, "writer", 2, loop.Outcome{Exit: &loop.Exit{}}, even), "5/3 -", "the judge judge has not judged this iteration"},
	} {
		tr := run(t, c.plan, c.script)
		var got []string
		for _, r := range tr.ended {
			s := "-"
			if r.Score != nil {
				s = num(*r.Score) + "/" + num(float64(r.Samples))
			}
			got = append(got, s)
		}
		if strings.Join(got, " ") != c.scores || tr.stop.ScoreNote != c.note {
			t.Errorf("%s: %v, note %q, ran %v", name, got, tr.stop.ScoreNote, tr.ran)
		}
	}
}

// The agent's own verdict is held against the judge's noise too: a step that
// says that it is done is not undone for chance.
func TestOwnScoreWithinTheNoise(t *testing.T) {
	p := judged(3)
	p.OnRegression, p.BestOnExit = loop.RollbackOnWorse, true
	with := func(score float64) trace {
		return run(t, p, at(p, "judge", 2, loop.Outcome{Exit: &loop.Exit{Score: &score}, State: map[string]any{"score": 7.9}}, said(p, "ab", []float64{7, 8, 9})))
	}
	if tr := with(7.5); tr.stop.Rollbacks != 0 || tr.stop.BestIteration != 1 || tr.stop.Reason != loop.ReasonExit {
		t.Errorf("%v: %+v", tr.stop, tr.ended[1])
	}
	if tr := with(2); tr.stop.Rollbacks != 1 || tr.stop.Reason != loop.ReasonExit {
		t.Errorf("%v: %+v", tr.stop, tr.ended[1])
	}
}

// A candidate is what was produced since the judge ran last, wherever it stands
// in the order. Its own words do not count.
func TestCandidates(t *testing.T) {
	pooled := func(names string, texts map[string]string) string {
		p := loop.Plan{Steps: steps(strings.Fields(names)...), MaxIterations: 4, Score: &loop.Score{Key: "score", Judge: &loop.Judge{Step: "judge"}}}
		tr := run(t, p, func(d loop.Decision) loop.Outcome {
			name := p.Steps[d.Step].Name
			if name == "judge" {
				return loop.Outcome{State: map[string]any{"score": d.Iteration}}
			}
			return loop.Outcome{State: map[string]any{"score": 0}, Fingerprint: texts[name][d.Iteration-1 : d.Iteration]}
		})
		var out []string
		for _, r := range tr.ended {
			out = append(out, num(*r.Score))
		}
		return strings.Join(out, " ")
	}
	for name, c := range map[string][2]string{
		"new each time":             {pooled("writer judge", map[string]string{"writer": "abcd"}), "1 2 3 4"},
		"the same each time":        {pooled("writer judge", map[string]string{"writer": "aaaa"}), "1 1.5 2 2.5"},
		"there and back":            {pooled("writer judge", map[string]string{"writer": "abab"}), "1 2 3 4"},
		"one of two is new":         {pooled("writer editor judge", map[string]string{"writer": "aaaa", "editor": "aabb"}), "1 1.5 3 3.5"},
		"the judge is first":        {pooled("judge writer", map[string]string{"writer": "aaab"}), "1 2 2.5 3"},
		"an editor after the judge": {pooled("writer judge editor", map[string]string{"writer": "aaaa", "editor": "aabb"}), "1 2 2.5 4"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: scores %s, want %s", name, c[0], c[1])
		}
	}
}
