// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/refrain-dev/refrain/internal/eval/stats"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// A Verdict is the answer of an evaluation.
type Verdict string

// The verdicts: those of one version, and those of two.
const (
	AllPassed Verdict = "passed"
	Failed    Verdict = "failed"
	Better    Verdict = Verdict(stats.Better)
	Worse     Verdict = Verdict(stats.Worse)
	Same      Verdict = Verdict(stats.Same)
	Undecided Verdict = Verdict(stats.Undecided)
)

// mostErrors is the share of runs with errors above which there is no verdict.
const mostErrors = 0.1

// A Summary is what follows from a report.
type Summary struct {
	*Report
	Verdict Verdict
	// Reason says why there is no verdict although there are results; "" if the cases alone do not decide.
	Reason string

	NewTotal Total
	OldTotal *Total // nil if there is one version

	Decided *stats.Comparison // of the metric that decides, without the runs with an error; nil if there is one version
	OfAll   *stats.Comparison // of passed, if each run with an error did not pass; nil unless passed decides and there are such runs
	Cost    *stats.Comparison // ratio of the costs; nil if there is one version, or a cost is unknown
	Seconds *stats.Comparison // ratio of the times; nil if there is one version

	Losses []string // IDs of the cases that are worse, the largest loss first
}

// A Total is what the runs of one version add up to.
type Total struct {
	Always, Sometimes, Never int // cases by how often their runs pass
	Error                    int // cases without a failed run of which a run ended with an error
	Unknown                  int // cases that no check evaluated, and those without a run
	Runs, Errors             int // runs, and those that ended with an error
	Votes, Split             int // checks by judges, and those in which the votes differ
	Deterministic            bool
	Passed                   stats.Estimate
	PassedOfAll              stats.Estimate // Passed, if each run with an error did not pass
	Decided                  stats.Estimate // of the metric that decides
	Cost                     *float64       // of all runs; nil if one is unknown
	Judges                   *float64       // cost of judges; nil if none was asked
	Seconds                  float64
	Tokens                   int64
}

// A State is how often the runs of a case pass.
type State string

// The states. A run with an error does not count, except that its case does not always pass.
const (
	Always    State = "always"
	Sometimes State = "sometimes"
	Never     State = "never"
	Error     State = "error"
	Unknown   State = "not evaluated"
)

// State returns how often the runs of a case pass.
func (c *Case) State() State {
	passed, known, errors := 0, 0, 0
	for i := range c.Runs {
		switch r := &c.Runs[i]; {
		case r.Error != "":
			errors++
		case r.Passed != nil:
			known++
			if *r.Passed {
				passed++
			}
		}
	}
	switch {
	case passed == known && errors > 0:
		return Error
	case known == 0:
		return Unknown
	case passed == known:
		return Always
	case passed == 0:
		return Never
	}
	return Sometimes
}

// Summary computes totals, comparisons and the verdict.
func (r *Report) Summary() *Summary {
	s := &Summary{Report: r}
	s.NewTotal = r.total(&r.New)
	if r.Old != nil {
		old := r.total(r.Old)
		s.OldTotal = &old
		s.Decided = r.compare(r.metric())
		if r.metric() == Passed && s.NewTotal.Errors+old.Errors > 0 {
			s.OfAll = r.compare(passedOfAll)
		}
		s.Cost, s.Seconds = r.compare(Cost), r.compare(Seconds)
		if s.NewTotal.Cost == nil || s.OldTotal.Cost == nil || *s.NewTotal.Cost+*s.OldTotal.Cost == 0 {
			s.Cost = nil
		}
		s.Losses = r.losses()
	}
	s.Verdict, s.Reason = s.decide()
	return s
}

func (r *Report) metric() string { return cmp.Or(r.Decide, Passed) }

// options returns how the values of a metric are read.
func (r *Report) options(metric string, obs []stats.Observation) stats.Options {
	o := stats.Options{Alpha: r.Alpha, LowerIsBetter: metric == Cost || metric == Seconds, Unbounded: metric == Cost || metric == Seconds}
	if metric == r.metric() || metric == passedOfAll {
		o.Margin = r.Margin
	}
	outside := func(x float64) bool { return x < 0 || x > 1 }
	for i := range obs {
		o.Unbounded = o.Unbounded || slices.ContainsFunc(obs[i].A, outside) || slices.ContainsFunc(obs[i].B, outside)
	}
	return o
}

func (r *Report) compare(metric string) *stats.Comparison {
	obs := r.observations(metric)
	o := r.options(metric, obs)
	if metric == Cost || metric == Seconds {
		return new(stats.CompareRatio(obs, o))
	}
	return new(stats.Compare(obs, o))
}

func (r *Report) total(side *Side) (t Total) {
	t.Cost = new(0.0)
	var answers [][]string
	for i := range side.Cases {
		c := &side.Cases[i]
		switch c.State() {
		case Always:
			t.Always++
		case Sometimes:
			t.Sometimes++
		case Never:
			t.Never++
		case Error:
			t.Error++
		case Unknown:
			t.Unknown++
		}
		var of []string
		for j := range c.Runs {
			run := &c.Runs[j]
			t.add(run)
			if run.Error == "" && run.Answer != "" {
				of = append(of, run.Answer)
			}
		}
		answers = append(answers, of)
	}
	t.Deterministic = stats.Identical(answers)
	alone := Report{New: *side, Decide: r.Decide, Alpha: r.Alpha}
	estimate := func(metric string) stats.Estimate {
		obs := alone.observations(metric)
		return stats.Mean(obs, alone.options(metric, obs))
	}
	t.Passed, t.PassedOfAll, t.Decided = estimate(Passed), estimate(passedOfAll), estimate(r.metric())
	return t
}

func (t *Total) add(run *Run) {
	t.Runs++
	t.Seconds += run.Seconds
	t.Tokens += run.Tokens
	if run.Error != "" {
		t.Errors++
	}
	if run.Cost == nil || !isFinite(*run.Cost) {
		t.Cost = nil
	} else if t.Cost != nil {
		*t.Cost += *run.Cost
	}
	if run.Judges != nil {
		if t.Judges == nil {
			t.Judges = new(0.0)
		}
		*t.Judges += *run.Judges
	}
	for i := range run.Checks {
		if run.Checks[i].Votes > 0 {
			t.Votes++
		}
		if run.Checks[i].Split {
			t.Split++
		}
	}
}

// Whole returns the cost of the runs and their judges; nil if it is unknown.
func (t *Total) Whole() *float64 {
	if t.Cost == nil || t.Judges == nil {
		return t.Cost
	}
	return new(*t.Cost + *t.Judges)
}

// losses returns the cases in which the new version is worse, the largest loss first.
func (r *Report) losses() (ids []string) {
	metric := r.metric()
	loss := make(map[string]float64)
	for _, o := range r.observations(metric) {
		one := []stats.Observation{{A: o.A, B: o.B}}
		c := stats.Compare(one, r.options(metric, one))
		if c.Worse == 1 {
			ids, loss[o.Case] = append(ids, o.Case), math.Round(math.Abs(c.Difference)*1e9) // equal losses differ in their last bits
		}
	}
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(loss[b], loss[a]) })
	return ids
}

// decide returns the verdict, and why there is none although there are results.
func (s *Summary) decide() (Verdict, string) {
	for _, v := range s.versions() {
		if n, runs := v.total.Errors, v.total.Runs; float64(n) > mostErrors*float64(runs) {
			return Undecided, fmt.Sprintf("more than %s of the runs%s ended with an error", brief.Percent(mostErrors), v.of)
		}
	}
	t := &s.NewTotal
	switch {
	case s.Ended != "":
		return Undecided, s.Ended
	case s.Decided != nil:
		return s.compared()
	case t.Sometimes+t.Never > 0:
		return Failed, ""
	case t.Error > 0:
		return Undecided, fmt.Sprintf("%s ended with an error in at least one run", brief.Count(t.Error, "case"))
	case t.Always == 0:
		return Undecided, "no check has evaluated a run"
	case t.Unknown > 0:
		return Undecided, s.unevaluated()
	}
	return AllPassed, ""
}

// compared returns the verdict on two versions. Runs with an error are left out, so that a version whose failures become errors
// looks better. A verdict on passed therefore has to hold also if they did not pass, and one on another metric must not be in favor
// of the version that has more of them.
func (s *Summary) compared() (Verdict, string) {
	v := Verdict(s.Decided.Verdict)
	more := s.NewTotal.Errors - s.OldTotal.Errors
	switch {
	case v == Undecided:
	case s.OfAll != nil && s.OfAll.Verdict != s.Decided.Verdict:
		return Undecided, fmt.Sprintf("%s only without the runs that ended with an error", v)
	case s.OfAll == nil && (v == Better && more > 0 || v == Worse && more < 0):
		return Undecided, fmt.Sprintf("%s only without the runs that ended with an error, of which the version with the better %s has more", v, s.name())
	}
	return v, ""
}

// unevaluated says how many cases of the new version no check has evaluated.
func (s *Summary) unevaluated() string {
	n, cases := s.NewTotal.Unknown, len(s.New.Cases)
	if n == 1 {
		return fmt.Sprintf("1 of %s was not evaluated", brief.Count(cases, "case"))
	}
	return fmt.Sprintf("%s of %s were not evaluated", brief.Whole(n), brief.Count(cases, "case"))
}

// The exit codes of an evaluation that has run.
const (
	ExitPassed    = 0 // all passed; of two versions, the new one is better or the same
	ExitFailed    = 1 // a case does not always pass; of two versions, the new one is worse
	ExitUndecided = 3
)

// ExitCode returns the exit code of the command.
func (s *Summary) ExitCode() int {
	switch s.Verdict {
	case AllPassed, Better, Same:
		return ExitPassed
	case Failed, Worse:
		return ExitFailed
	}
	return ExitUndecided
}
