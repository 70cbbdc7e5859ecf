// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/loop"
)

// ranged is a loop with a judge who is asked 3 to 12 times whether the score is at 9.
func ranged(change func(*loop.Plan)) loop.Plan {
	p := judged(3)
	p.Score.Judge.Max, p.Score.Target = 12, new(9.0)
	p.Version, p.MaxIterations = p.Current(), 2
	if change != nil {
		change(&p)
	}
	return p
}

// LOOP 14: a range of samples asks until it is clear whether the target is reached.
func TestLaw14AsksUntilTheTargetIsClear(t *testing.T) {
	wide := slices.Repeat([]float64{9.4, 8.4, 10}, 4)
	for name, c := range map[string]struct {
		answers [][]float64
		asked   []int
		reached bool
	}{
		"reached with four":            {[][]float64{{9.4, 9.6, 9.3, 9.5}}, []int{4}, true},
		"not clear with four":          {[][]float64{{9.5, 8.6, 9.3, 9.0, 7, 6}, {7, 7, 7}}, []int{6, 3}, false},
		"missed with four":             {[][]float64{{7, 7.2, 6.9, 7.1}, {7, 7, 7}}, []int{4, 3}, false},
		"never more than twelve":       {[][]float64{wide, {7, 7, 7}}, []int{12, 3}, false},
		"the error is that of all":     {[][]float64{{7, 7.2, 6.9, 7.1}, {9.5, 9.6, 9.7}}, []int{4, 3}, true},
		"all agree, and it is reached": {[][]float64{{9, 9, 9, 9}}, []int{4}, true},
		"all agree, and it is not":     {[][]float64{{8.9, 8.9, 8.9, 8.9}, {8, 8, 8}}, []int{4, 3}, false},
		"a mean at the target is none": {[][]float64{append([]float64{8, 9}, slices.Repeat([]float64{10, 9}, 5)...), {7, 7, 7}}, []int{12, 3}, false},
	} {
		p := ranged(nil)
		tr := run(t, p, said(p, "ab", c.answers...))
		asked := make([]int, len(tr.ended))
		for _, d := range tr.decided {
			if d.Sample > 0 {
				asked[d.Iteration-1]++
			}
		}
		if !slices.Equal(asked, c.asked) || (tr.stop.Reason == loop.ReasonTarget) != c.reached {
			t.Errorf("%s: asked %v, %v", name, asked, tr.stop)
		}
	}
	p := ranged(func(p *loop.Plan) { p.Score.LowerIsBetter = true })
	if tr := run(t, p, said(p, "ab", []float64{8.6, 8.4, 8.7, 8.5})); tr.stop.Reason != loop.ReasonTarget || tr.ended[0].Samples != 4 {
		t.Errorf("lower is better: %v", tr.stop)
	}
	p = ranged(func(p *loop.Plan) { p.MaxIterations = 1 })
	tr := run(t, p, said(p, "a", wide))
	if row, _ := condition(tr.stop, "target"); row.Holds || row.Value != "9.26667 ± 0.22" || row.Note != "not sure: ± 0.22: 9 in 10" {
		t.Errorf("not sure: %+v", row)
	}
	tr = run(t, p, said(p, "a", []float64{7, 7.2, 6.9, 7.1}))
	if row, _ := condition(tr.stop, "target"); row.Holds || row.Note != "" {
		t.Errorf("missed by far, which is sure: %+v", row)
	}
}

// LOOP 14: a version that is judged again has all its answers, and is not asked about more often than it takes.
func TestLaw14AnswersOfTheSameVersionDecideTogether(t *testing.T) {
	p := ranged(nil)
	tr := run(t, p, said(p, "aa", []float64{8.5, 9.3, 8.6, 9.4, 8.4, 9.5, 8.5, 9.4, 8.6, 9.4, 8.5, 9.4}, slices.Repeat([]float64{9.9}, 12)))
	if tr.stop.Reason != loop.ReasonTarget || tr.ended[0].Samples != 12 || tr.ended[1].Samples != 6 ||
		!strings.Contains(tr.stop.Detail, "(18 answers, ± ") {
		t.Errorf("%v: %+v", tr.stop, tr.ended)
	}
}

// A stop by a target says how sure it is, unless the score is exact.
func TestTargetSaysHowSureItIs(t *testing.T) {
	for name, c := range map[string]struct {
		plan   loop.Plan
		script func(loop.Plan) script
		want   string
	}{
		"three answers": {judged(3), func(p loop.Plan) script {
			return said(p, "abc", []float64{7.8, 8.1, 8.4}, []float64{8, 8.4, 8.6}, []float64{8.8, 9.2, 9.6})
		}, "Score 9.2 ≥ 9 (3 answers, ± 0.23: 4 in 5)"},
		"a range": {ranged(nil), func(p loop.Plan) script { return said(p, "a", []float64{9.4, 9.6, 9.3, 9.5}) },
			"Score 9.45 ≥ 9 (4 answers, ± 0.083: 99 in 100)"},
		"one answer": {judged(1), func(p loop.Plan) script { return said(p, "a", []float64{9.2}) }, "Score 9.2 ≥ 9 (1 answer, error unknown)"},
		"all agree":  {judged(3), func(p loop.Plan) script { return said(p, "a", []float64{9.2, 9.2, 9.2}) }, "Score 9.2 ≥ 9"},
		"no judge":   {loop.Plan{Steps: steps("a"), MaxIterations: 9, Score: &loop.Score{Key: "score"}}, func(loop.Plan) script { return scored(9.2) }, "Score 9.2 ≥ 9"},
	} {
		c.plan.Score.Target = new(9.0)
		c.plan.Version = c.plan.Current()
		if tr := run(t, c.plan, c.script(c.plan)); tr.stop.Reason != loop.ReasonTarget || tr.stop.Detail != c.want {
			t.Errorf("%s: %s: %s, want %s", name, tr.stop.Reason, tr.stop.Detail, c.want)
		}
	}
}

// A range needs a target to decide about, and its smaller number first.
func TestRangesThatMeanNothing(t *testing.T) {
	for want, change := range map[string]func(*loop.Plan){
		"score.judge.samples is 3..12, but the score has no target": func(p *loop.Plan) { p.Score.Target = nil },
		"score.judge.samples is 3..2":                               func(p *loop.Plan) { p.Score.Judge.Max = 2 },
		"score.judge.samples is 3..33 (give at most 32)":            func(p *loop.Plan) { p.Score.Judge.Max = 33 },
	} {
		p := ranged(change)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	p := ranged(nil)
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}
