// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/refrain-dev/refrain/loop"
)

// foundKinds counts the findings of random plans.
var foundKinds = make(map[loop.FindingKind]int)

// checkFindings holds the findings of a run against those of a replay of its outcomes and those of its back-test.
func checkFindings(t *testing.T, p *loop.Plan, found map[int][]loop.Finding, all []loop.Outcome, back []loop.IterationRecord) {
	t.Helper()
	var u loop.Tally
	replayed := make(map[int][]loop.Finding)
	for _, o := range all {
		p.Add(&u, o)
		if d := p.Next(&u); d.Ended.Number != 0 {
			replayed[d.Ended.Number] = d.Ended.Findings
		}
	}
	if !cmp.Equal(found, replayed, cmpopts.EquateEmpty()) {
		t.Fatalf("the replay finds something else:\n%s", cmp.Diff(found, replayed))
	}
	for _, rec := range back {
		if !cmp.Equal(found[rec.Number], rec.Findings, cmpopts.EquateEmpty()) {
			t.Fatalf("the back-test finds in %d:\n%s", rec.Number, cmp.Diff(found[rec.Number], rec.Findings))
		}
		for _, f := range rec.Findings {
			foundKinds[f.Kind]++
		}
	}
}

func TestRandomPlansFindAllKinds(t *testing.T) {
	clear(foundKinds)
	for seed := range uint64(1500) {
		runRandom(t, 2*seed, false, map[string]int{})
	}
	for _, kind := range []loop.FindingKind{loop.FindingProtected, loop.FindingTests, loop.FindingHoldout, loop.FindingGrowth} {
		if foundKinds[kind] == 0 {
			t.Errorf("none of kind %s in %v", kind, foundKinds)
		}
	}
}

func counts(total, skipped int) map[string]any {
	return map[string]any{"total": total, "skipped": skipped}
}

// What is found in each iteration, by what its steps leave.
func TestFindings(t *testing.T) {
	type state = map[string]any
	broken := state{"total": 1, "skipped": 0, "broken": 1}
	for _, c := range []struct {
		name   string
		change func(*loop.Plan)
		states []state
		want   []string // iteration kind: text
	}{
		{"fewer tests, and more skipped", nil, []state{{"score": 1, "tests": counts(9, 0)}, {"score": 2, "tests": counts(8, 1)}, {"score": 3, "tests": counts(8, 1)}},
			[]string{"2 tests: there are 8 tests, and there were 9 in iteration 1", "2 tests: 1 test skipped, and 0 in iteration 1"}},
		{"all tests are gone", nil, []state{{"score": 1, "tests": counts(9, 0)}, {"score": 1, "tests": counts(0, 0)}},
			[]string{"2 tests: there are 0 tests, and there were 9 in iteration 1"}},
		{"one test is left, and then none", nil, []state{{"score": 1, "tests": counts(3, 0)}, {"score": 2, "tests": counts(1, 0)}, {"score": 3, "tests": counts(0, 0)}},
			[]string{"2 tests: there is 1 test, and there were 3 in iteration 1", "3 tests: there are 0 tests, and there was 1 in iteration 2"}},
		{"the best counts, not the last", nil, []state{{"score": 5, "tests": counts(9, 0)}, {"score": 1, "tests": counts(20, 0)}, {"score": 6, "tests": counts(9, 0)}}, nil},
		{"not all could be counted", nil, []state{{"score": 1, "tests": counts(9, 0)}, {"score": 2, "tests": broken}, {"score": 3, "tests": counts(8, 0)}},
			[]string{"3 tests: there are 8 tests, and there were 9 in iteration 1"}},
		{"of another type", nil, []state{{"score": 1, "tests": counts(9, 0)}, {"score": 2, "tests": "8"}, {"score": 3, "tests": state{"total": "x"}}, {"score": 4, "tests": nil}}, nil},
		{"not counted in this iteration", nil, []state{{"score": 1, "tests": counts(9, 0)}, {"score": 2, "tests": counts(1, 0), "silent": true}}, nil},
		{"without a score", func(p *loop.Plan) { p.Score = nil }, []state{{"tests": counts(9, 0)}, {"tests": counts(8, 0)}, {"tests": counts(8, 0)}},
			[]string{"2 tests: there are 8 tests, and there were 9 in iteration 1"}},
		{"fewer than at the start", nil, []state{
			{"score": 1, "tests": state{"total": 2, "skipped": 1, "total_before": 3, "skipped_before": 0}},
			{"score": 2, "tests": state{"total": 3, "skipped": 0, "total_before": 3, "skipped_before": 0}},
			{"score": 3, "tests": state{"total": 2, "skipped": 0, "total_before": 3, "skipped_before": 0}}},
			[]string{"1 tests: there are 2 tests, and there were 3 at the start", "1 tests: 1 test skipped, and 0 at the start",
				"3 tests: there are 2 tests, and there were 3 at the start"}},
		{"not counted, but at the start", nil, []state{
			{"score": 1, "tests": state{"total": 3, "skipped": 0, "total_before": 3, "skipped_before": 0}},
			{"score": 2, "tests": state{"total": 0, "skipped": 0, "broken": 1, "total_before": 3, "skipped_before": 0}},
			{"score": 3, "tests": state{"total": 0, "skipped": 0, "broken": 1, "total_before": 0, "skipped_before": 0}}},
			[]string{"2 tests: the tests cannot be counted, and there were 3 at the start"}},
		{"rolled back", func(p *loop.Plan) { p.OnRegression = loop.RollbackOnWorse },
			[]state{{"score": 5, "tests": counts(9, 0)}, {"score": 1, "tests": counts(2, 0)}, {"score": 6, "tests": counts(3, 0)}},
			[]string{"2 tests: there are 2 tests, and there were 9 in iteration 1", "3 tests: there are 3 tests, and there were 9 in iteration 1"}},

		{"protected files", nil, []state{{"score": 1, "files": state{"protected": "a_test.go, go.mod"}}, {"score": 2, "files": state{"protected": ""}},
			{"score": 3, "files": state{"protected": "a_test.go"}, "silent": true}, {"score": 4, "more": state{"protected": "b"}}},
			[]string{"1 protected: protected files were changed: a_test.go, go.mod", "4 protected: protected files were changed: b"}},

		{"the hold-out falls", nil, []state{{"score": 5, "hidden": 5}, {"score": 6, "hidden": 4}, {"score": 7, "hidden": `{"score": 3}`}, {"score": 8, "hidden": 3}},
			[]string{"2 holdout: the score went from 5 to 6, and the hold-out from 5 to 4, since iteration 1",
				"3 holdout: the score went from 6 to 7, and the hold-out from 4 to 3, since iteration 2"}},
		{"both fall, or the score stays", nil, []state{{"score": 5, "hidden": 5}, {"score": 4, "hidden": 4}, {"score": 5, "hidden": 1}, {"score": 6, "hidden": 6}}, nil},
		{"lower is better", func(p *loop.Plan) { p.Score.LowerIsBetter = true }, []state{{"score": 5, "hidden": 5}, {"score": 4, "hidden": 6}, {"score": 3, "hidden": 2}},
			[]string{"2 holdout: the score went from 5 to 4, and the hold-out from 5 to 6, since iteration 1"}},
		{"no hold-out", nil, []state{{"score": 5, "hidden": 5}, {"score": 6, "hidden": "?"}, {"score": 7, "hidden": 4}},
			[]string{`2 warning: the hold-out hidden cannot be read: "?" has neither a number nor JSON with one; set label to the word before the number, or give the step an output_schema`,
				"3 holdout: the score went from 5 to 7, and the hold-out from 5 to 4, since iteration 1"}},

		{"growth", nil, []state{{"score": 5, "files": lines(10)}, {"score": 5, "files": lines(20)}, {"score": 4, "files": lines(30)}, {"score": 5, "files": lines(40)}, {"score": 6, "files": lines(50)}},
			[]string{"4 growth: the changes grew to 40 lines in 3 iterations without a better score"}},
		{"growth that shrinks between", nil, []state{{"score": 5, "files": lines(10)}, {"score": 5, "files": lines(20)}, {"score": 5, "files": lines(15)}, {"score": 5, "files": lines(25)}, {"score": 5, "files": lines(26)}}, nil},
		{"growth in rejected iterations", func(p *loop.Plan) { p.OnRegression = loop.RollbackOnWorse },
			[]state{{"score": 5, "files": lines(10)}, {"score": 4, "files": lines(20)}, {"score": 4, "files": lines(30)}, {"score": 4, "files": lines(40)}, {"score": 5, "files": lines(20)}}, nil},

		{"a condition sees them", func(p *loop.Plan) { p.StopWhen = &loop.Condition{Expr: `"tests" in findings && size(findings) == 1`} },
			[]state{{"score": 1, "tests": counts(9, 0)}, {"score": 2, "tests": counts(8, 1)}, {"score": 3, "tests": counts(7, 1)}, {"score": 9}},
			[]string{"2 tests: there are 8 tests, and there were 9 in iteration 1", "2 tests: 1 test skipped, and 0 in iteration 1",
				"3 tests: there are 7 tests, and there were 8 in iteration 2"}},
	} {
		p := loop.Plan{Steps: steps("coder", "tests"), MaxIterations: uint(len(c.states)), Score: &loop.Score{Key: "score", Holdout: "hidden"},
			Watch: &loop.Watch{Tests: []string{"tests"}, Files: []string{"files", "more"}}}
		if c.change != nil {
			c.change(&p)
		}
		var got []string
		tr := run(t, p, func(d loop.Decision) loop.Outcome {
			s := c.states[max(1, d.Iteration)-1]
			o := loop.Outcome{State: s, Wrote: []string{}, RolledBack: d.Action == loop.Rollback}
			for key := range s {
				if d.Step == 1 && (s["silent"] == nil || key == "score") {
					o.Wrote = append(o.Wrote, key)
				}
			}
			slices.Sort(o.Wrote)
			return o
		})
		for _, rec := range tr.ended {
			for _, f := range rec.Findings {
				got = append(got, fmt.Sprintf("%d %s: %s", rec.Number, f.Kind, f.Text))
			}
			if rec.Warning != "" {
				got = append(got, fmt.Sprintf("%d warning: %s", rec.Number, rec.Warning))
			}
		}
		if !cmp.Equal(c.want, got) {
			t.Errorf("%s:\n%s", c.name, cmp.Diff(c.want, got))
		}
		if stopped := tr.stop.Reason == loop.ReasonCondition; stopped != (p.StopWhen != nil) {
			t.Errorf("%s: stopped by %s", c.name, tr.stop.Reason)
		}
	}
}

func lines(n int64) map[string]any { return map[string]any{"lines": n} }

// Another policy does not change what was found in a recording.
func TestBacktestLeavesFindings(t *testing.T) {
	p := loop.Plan{Steps: steps("coder"), MaxIterations: 3, Score: &loop.Score{Key: "score"}, Watch: &loop.Watch{Tests: []string{"tests"}}}
	tr := run(t, p, func(d loop.Decision) loop.Outcome {
		return loop.Outcome{State: map[string]any{"score": d.Iteration, "tests": counts(9-d.Iteration, 0)}}
	})
	q := p
	q.QualityGate = new(3.0) // only the last is accepted
	back := q.BacktestOf(&p, tr.outcomes)
	if len(back.Records) != 3 || back.Records[1].Rejected == "" {
		t.Fatalf("%+v", back)
	}
	for i, rec := range back.Records {
		if !cmp.Equal(rec.Findings, tr.ended[i].Findings) {
			t.Errorf("iteration %d: %v, recorded %v", rec.Number, rec.Findings, tr.ended[i].Findings)
		}
	}
	if len(back.Records[2].Findings) != 1 || back.Records[2].Findings[0].Text != "there are 6 tests, and there were 7 in iteration 2" {
		t.Errorf("%v", back.Records[2].Findings)
	}
}

func TestHoldoutIsAnotherKey(t *testing.T) {
	p := loop.Plan{Steps: steps("coder"), Score: &loop.Score{Key: "score", Holdout: "score"}}
	if err := p.Check(); err == nil {
		t.Error("the score is its own hold-out")
	}
}
