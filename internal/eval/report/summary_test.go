// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/eval/report"
)

// side makes a version from the results of its cases: p for a run that passed, f for one that failed, e for an error and ? for one
// that no check evaluated.
func side(name string, results ...string) report.Side {
	s := report.Side{Name: name}
	for i, runs := range results {
		c := report.Case{ID: fmt.Sprintf("case-%d", i+1)}
		for j, result := range runs {
			run := report.Run{ID: fmt.Sprintf("ev_3f2a.A.%d.%d", i+1, j+1), Answer: fmt.Sprint("answer ", i, j)}
			run.Seconds, run.Cost, run.Tokens = 2, new(0.01), 100
			switch result {
			case 'e':
				run.Error = "model: status 529: overloaded"
			case '?':
			default:
				ok := result == 'p'
				run.Passed, run.Score = &ok, new(0.25)
				run.Checks = []report.Check{{Name: "contains", Value: new(0.0), Passed: &ok, Reason: `the answer has no "30 days"`}}
				if ok {
					run.Score, run.Checks[0].Value, run.Checks[0].Reason = new(0.75), new(1.0), `the answer has "30 days"`
				}
			}
			c.Runs = append(c.Runs, run)
		}
		s.Cases = append(s.Cases, c)
	}
	return s
}

// times repeats the results of a case.
func times(n int, result string) []string { return strings.Fields(strings.Repeat(result+" ", n)) }

// list joins lists of results.
func list(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func of(name string, lists ...[]string) report.Side { return side(name, list(lists...)...) }

func TestVerdicts(t *testing.T) {
	pass, fail := times(8, "ppp"), times(8, "fff")
	old := func(lists ...[]string) *report.Side { return new(of("old.yaml", lists...)) }
	const (
		undecided, errors, used = report.Undecided, "more than 10% of the runs", "the budget is used up"
		unseen                  = "no check has evaluated a run"
	)
	for _, tt := range []struct {
		name   string
		r      report.Report
		want   report.Verdict
		code   int
		reason string
	}{
		{"all pass", report.Report{New: of("a", pass)}, report.AllPassed, 0, ""},
		{"one run fails", report.Report{New: of("a", pass, times(1, "ppf"))}, report.Failed, 1, ""},
		{"a case is not evaluated", report.Report{New: of("a", pass, times(1, "???"))}, undecided, 3, "1 of 9 cases was not evaluated"},
		{"most cases are not evaluated", report.Report{New: of("a", times(1, "ppp"), times(29, "???"))}, undecided, 3, "29 of 30 cases were not evaluated"},
		{"one fails and one is not evaluated", report.Report{New: of("a", times(1, "fff"), times(1, "???"))}, report.Failed, 1, ""},
		{"no case is evaluated", report.Report{New: of("a", times(3, "?"))}, undecided, 3, unseen},
		{"no case", report.Report{}, undecided, 3, unseen},
		{"10% errors in a case that passed", report.Report{New: of("a", times(9, "p"), times(1, "pe"))}, undecided, 3,
			"1 case ended with an error in at least one run"},
		{"a case with errors alone", report.Report{New: of("a", times(9, "p"), times(1, "e"))}, undecided, 3,
			"1 case ended with an error in at least one run"},
		{"one fails and one has an error", report.Report{New: of("a", times(9, "ppp"), times(1, "ppf"), times(1, "ppe"))}, report.Failed, 1, ""},
		{"20% errors", report.Report{New: of("a", times(8, "f"), times(2, "e"))}, undecided, 3, errors + " ended with an error"},
		{"the budget is used up", report.Report{New: of("a", pass), Ended: used}, undecided, 3, used},
		{"better", report.Report{New: of("a", pass), Old: old(fail)}, report.Better, 0, ""},
		{"worse", report.Report{New: of("a", fail), Old: old(pass)}, report.Worse, 1, ""},
		{"not decided", report.Report{New: of("a", pass), Old: old(pass)}, undecided, 3, ""},
		{"same", report.Report{New: of("a", pass), Old: old(pass), Margin: 0.4}, report.Same, 0, ""},
		{"the old version has errors", report.Report{New: of("a", pass), Old: old(fail, times(1, "eee"))}, undecided, 3,
			errors + " of the old version ended with an error"},
		{"better by score", report.Report{New: of("a", pass), Old: old(fail), Decide: "score"}, report.Better, 0, ""},
		{"worse by a check", report.Report{New: of("a", fail), Old: old(pass), Decide: "contains"}, report.Worse, 1, ""},
		{"no check of that name", report.Report{New: of("a", pass), Old: old(fail), Decide: "rouge"}, undecided, 3, ""},
		{"by a cost that does not differ", report.Report{New: of("a", pass), Old: old(fail), Decide: "cost"}, undecided, 3, ""},
		{"no case in common", report.Report{New: of("a", pass), Old: &report.Side{Cases: []report.Case{{ID: "other"}}}}, undecided, 3, ""},
	} {
		s := tt.r.Summary()
		if s.Verdict != tt.want || s.ExitCode() != tt.code || s.Reason != tt.reason {
			t.Errorf("%s: %s (%q), exit code %d", tt.name, s.Verdict, s.Reason, s.ExitCode())
		}
	}
}

func TestLowerCostAndTimeAreBetter(t *testing.T) {
	for _, metric := range []string{report.Cost, report.Seconds} {
		r := report.Report{New: of("a", times(8, "p")), Old: new(of("old.yaml", times(8, "p"))), Decide: metric}
		for i := range r.New.Cases {
			run := &r.New.Cases[i].Runs[0]
			run.Cost, run.Seconds = new(0.007+0.0001*float64(i)), 1+0.1*float64(i)
		}
		if s := r.Summary(); s.Verdict != report.Better || s.Decided.Better != 8 || s.Decided.High >= 0 {
			t.Errorf("%s: %s %+v", metric, s.Verdict, s.Decided)
		}
	}
}

func TestTotals(t *testing.T) {
	r := report.Report{New: side("loop.yaml", "ppp", "ppf", "fff", "eee", "ppe", "???", ""), Time: time.Minute}
	r.New.Cases[0].Runs[0].Checks = append(r.New.Cases[0].Runs[0].Checks, report.Check{Name: "polite", Votes: 3, Split: true})
	r.New.Cases[0].Runs[1].Checks = append(r.New.Cases[0].Runs[1].Checks, report.Check{Name: "polite", Votes: 3})
	got := r.Summary().NewTotal
	if got.Always != 1 || got.Sometimes != 1 || got.Never != 1 || got.Error != 2 || got.Unknown != 2 {
		t.Errorf("cases: %+v", got)
	}
	if got.Runs != 18 || got.Errors != 4 || got.Votes != 2 || got.Split != 1 || got.Seconds != 36 || got.Tokens != 1800 || got.Deterministic {
		t.Errorf("runs: %+v", got)
	}
	if got.Passed.Cases != 4 || got.Passed.Mean < 0.666 || got.Passed.Mean > 0.667 {
		t.Errorf("passed: %+v", got.Passed)
	}
	if got.PassedOfAll.Cases != 5 || got.PassedOfAll.Mean < 0.466 || got.PassedOfAll.Mean > 0.467 { // (1 + 2/3 + 0 + 0 + 2/3) / 5
		t.Errorf("passed of all: %+v", got.PassedOfAll)
	}
	r.New.Cases[0].Runs[0].Cost = nil
	if got := r.Summary().NewTotal; got.Cost != nil {
		t.Errorf("a cost that is unknown is added up: %v", *got.Cost)
	}
	for i := range r.New.Cases {
		for j := range r.New.Cases[i].Runs {
			r.New.Cases[i].Runs[j].Answer = fmt.Sprint(i)
		}
	}
	if !r.Summary().NewTotal.Deterministic {
		t.Error("all repeats have the same answers")
	}
}

func TestLossesAreSorted(t *testing.T) {
	r := report.Report{New: side("a", "ppf", "fff", "ppp", "fpp", "fff"), Old: new(side("b", "ppp", "ppp", "fff", "fpp", "pff"))}
	if diff := cmp.Diff([]string{"case-2", "case-1", "case-5"}, r.Summary().Losses); diff != "" {
		t.Error(diff)
	}
}

// A report never names a difference that values from 0 to 1 cannot have.
func TestSightIsPossible(t *testing.T) {
	now, old := of("new.yaml", times(4, "ppp"), times(4, "pff")), of("old.yaml", times(4, "ppf"), times(4, "ppp"))
	for i, weight := range []float64{100, 1, 1, 1, 100, 1, 1, 1} {
		now.Cases[i].Weight, old.Cases[i].Weight = weight, weight
	}
	sum := (&report.Report{New: now, Old: &old, Repeat: 3}).Summary()
	if d := sum.Decided.Detectable(); !math.IsInf(d, 1) {
		t.Errorf("a difference of %v can be seen", d)
	}
	var text strings.Builder
	if err := sum.WriteText(&text, 0); err != nil || !strings.Contains(text.String(), "No true difference, however large, would be seen in 4 of 5 evaluations like this one; one of 0.5 takes ") {
		t.Errorf("the report is %s (%v)", &text, err)
	}
}
