// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"math"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/loop"
)

// writing gives outcomes the keys that their steps write.
func writing(s script, keys func(d loop.Decision) []string) script {
	return func(d loop.Decision) loop.Outcome {
		o := s(d)
		if o.Wrote = keys(d); o.Wrote == nil {
			o.Wrote = []string{}
		}
		return o
	}
}

// LOOP 12, 18, 29: a score belongs to the iteration that wrote it.
func TestScoreBelongsToTheIterationThatWroteIt(t *testing.T) {
	first := func(d loop.Decision) []string {
		if d.Iteration == 1 && d.Step == 1 {
			return []string{"text", "score"}
		}
		return []string{"text"}
	}
	never := func(loop.Decision) []string { return nil }
	p := loop.Plan{Steps: steps("a", "critic"), MaxIterations: 3, Score: &loop.Score{Key: "score", Target: new(8.0)}}

	// An earlier run has left it: nobody has judged this one.
	if tr := run(t, p, writing(scored(9), never)); tr.stop.Reason != loop.ReasonMaxIterations || tr.stop.BestScore != nil ||
		tr.ended[0].Unscored != `no step wrote state key "score" in this iteration` {
		t.Errorf("%v: %+v", tr.stop, tr.ended[0])
	}
	// The critic fails, or says nothing: what it said before is not the score.
	p.Score, p.OnRegression = &loop.Score{Key: "score"}, loop.RollbackOnWorse
	tr := run(t, p, writing(scored(7), first))
	if got := strings.Join(tr.ran, " "); got != "a@1 critic@1 a@2 critic@2 back to 1 a@3 critic@3 back to 1" || result(tr.stop) != "best 1" {
		t.Errorf("ran %s: %v", got, tr.stop)
	}
	if it := tr.ended[1]; it.Score != nil || it.Rejected != "it has no score; the best so far is 7 (iteration 1)" {
		t.Errorf("%+v", it)
	}
	p.OnRegression = loop.KeepBest
	if tr = run(t, p, writing(scored(7), first)); result(tr.stop) != "best 1" || tr.stop.Rejections != 0 || len(tr.tally.Scores) != 1 {
		t.Errorf("%v: %+v", tr.stop, tr.tally)
	}
	p.QualityGate = new(5.0)
	if tr = run(t, p, writing(scored(7), first)); tr.ended[1].Rejected != "it has no score, and the quality gate is 5" {
		t.Errorf("%+v", tr.ended[1])
	}
}

// LOOP 12: an expression is a score where the iteration has written one of the keys
// that it reads; a judge has to write its own.
func TestWhatAScoreIsWrittenBy(t *testing.T) {
	state := func(loop.Decision) loop.Outcome {
		return loop.Outcome{State: map[string]any{"passed": 6.0, "tests": 8.0, "score": 5.0}}
	}
	for name, c := range map[string]struct {
		score loop.Score
		wrote []string
		is    bool
	}{
		"one of its keys":     {loop.Score{Expr: "state.passed / state.tests"}, []string{"passed"}, true},
		"none of them":        {loop.Score{Expr: "state.passed / state.tests"}, []string{"score"}, false},
		"it reads no state":   {loop.Score{Expr: "iteration * 2"}, []string{}, true},
		"any":                 {loop.Score{Expr: "double(state.size())"}, []string{"x"}, true},
		"not even any":        {loop.Score{Expr: "double(state.size())"}, []string{}, false},
		"not known":           {loop.Score{Key: "score"}, nil, true},
		"the judge has":       {loop.Score{Key: "score", Judge: &loop.Judge{Step: "a"}}, []string{"score"}, true},
		"the judge has not":   {loop.Score{Key: "score", Judge: &loop.Judge{Step: "a"}}, []string{"passed"}, false},
		"the judge, as ever":  {loop.Score{Key: "score", Judge: &loop.Judge{Step: "a"}}, nil, true},
		"a judge's own words": {loop.Score{Expr: "state.score", Judge: &loop.Judge{Step: "a", Samples: 2}}, []string{"score"}, true},
	} {
		p := loop.Plan{Steps: steps("a"), MaxIterations: 1, Score: &c.score}
		tr := run(t, p, func(d loop.Decision) loop.Outcome {
			o := state(d)
			o.Wrote = c.wrote
			return o
		})
		if it := tr.ended[0]; (it.Score != nil) != c.is || (it.Unscored == "") != c.is {
			t.Errorf("%s: %+v", name, it)
		}
	}
}

// LOOP 12, 29: NaN and infinities are no scores, and break nothing.
func TestNotANumberIsNoScore(t *testing.T) {
	p := loop.Plan{
		Steps: steps("a"), MaxIterations: 4, OnRegression: loop.RollbackOnWorse, Score: &loop.Score{Key: "score", Target: new(9.0), MinDelta: new(0.1), Patience: 2},
		StopWhen: &loop.Condition{Expr: "state.score > 100.0"},
	}
	tr := run(t, p, scored(5, math.NaN(), math.Inf(-1), 7))
	if got := accepted(tr); got != "*--*" || result(tr.stop) != "best 4" || !strings.Contains(tr.ended[1].Unscored, "not a finite number: NaN") {
		t.Errorf("%s, %s: %+v", got, result(tr.stop), tr.ended)
	}
}

// LOOP 12: a judge who answers in words has given a score where people see one; where
// they do not, the iteration says at once what the judge said.
func TestJudgeAnswersInWords(t *testing.T) {
	for text, want := range map[string]float64{
		"I give it 6/10.":                                            6,
		"I'd say 6 out of 10.":                                       6,
		"7.5 out of 10, as above":                                    7.5,
		"1. Fix the intro…\nScore: 8":                                8,
		"1) Fix the intro\n2) Cut the end\n\n**Score:** 8/10":        8,
		"Clarity score: 7\nDepth score: 6\nScore: 6.5":               6.5,
		"Clarity: 7/10, depth: 5/10. Overall score: 6":               6,
		"3 problems remain; the rating is 4.":                        4,
		"3 problems remain: I give it 6/10":                          6,
		"The score is -2":                                            -2,
		"8.5/10, good":                                               8.5,
		"8 — the last one had 6/10":                                  8,
		"See [1] for the rules. Score: 9":                            9,
		"```json\n{\"score\": 4}\n```\nI would have given it a 9/10": 4,
		"Nota: 7,5":                    7.5,
		"Fixed on 12/10/2026, so 6/10": 6,
		"6/10 for the text. I'd keep 6/10 even without the second half": 6,
	} {
		if got, note := judge(text); note != "" || got != want {
			t.Errorf("%q: %v %s, want %v", text, got, note, want)
		}
	}
	for text, want := range map[string]string{
		"1. Fix the intro\n2. Cut the end":     `"1. Fix the intro 2. Cut the end" has neither a number nor JSON with one; set label to`,
		"Solid work, nearly there.":            `"Solid work, nearly there." has neither a number nor JSON with one; set label to`,
		"Clarity 7/10, depth 5/10":             `"Clarity 7/10, depth 5/10" has both 7 and 5; set label to`,
		strings.Repeat("long words ", 30):      `long words lo…" has neither`,
		"Clarity score: 7, depth score: 5 ok.": `has both 7 and 5; set label to the word before the number, or give the step an output_schema`,
	} {
		if got, note := judge(text); !strings.Contains(note, want) {
			t.Errorf("%q: %v, %s, want %s", text, got, note, want)
		}
	}
}

func judge(text string) (score float64, note string) {
	p := loop.Plan{Steps: []loop.Step{{Name: "a"}}, MaxIterations: 1, Score: &loop.Score{Key: "s"}}
	var u loop.Tally
	p.Add(&u, loop.Outcome{State: map[string]any{"s": text}, Wrote: []string{"s"}})
	if u.Score != nil {
		score = *u.Score
	}
	return score, u.Ended.Unscored
}
