// SPDX-License-Identifier: Apache-2.0

// Package report says what an evaluation has found: to people as text, to programs as JSON, and to CI as JUnit's XML. It
// works with values alone, and reads no store.
//
//	r := &report.Report{Eval: "ev_3f2a", New: sideOf(runs), Old: sideOf(others)}
//	s := r.Summary()
//	s.WriteText(os.Stdout, 80)
//	os.Exit(s.ExitCode())
package report

import (
	"time"

	"github.com/refrain-dev/refrain/internal/eval/stats"
)

// A Report is what an evaluation has run: one version of a definition, or two of them on the same cases.
type Report struct {
	Eval string // ID of the evaluation
	Set  string // name of the set of cases
	New  Side
	Old  *Side // what New is compared with; nil if there is one version

	// Decide is the metric that decides: passed, score, cost, seconds, or the name of a check. "" is passed.
	Decide string
	Margin float64 // difference that does not matter; 0 if every difference does
	// Alpha is the share of false verdicts between equal versions; 0 is 0.05. An evaluation that looks several times has
	// that of the look at which it ended: [stats.Look].
	Alpha float64

	Planned int           // cases to run; 0 if all of them have run
	Repeat  int           // runs of each case and version
	Time    time.Duration // how long the evaluation took
	// Ended says why cases are missing, as the end of a sentence: "the budget is used up". "" if it ended as planned, or
	// early because it was decided.
	Ended string
	Retry string   // command that runs the cases with errors again; "" if there is none
	Notes []string // sentences for the reader, such as that the runs of Old are old
}

// A Side is one version with its runs.
type Side struct {
	Name       string // for people: the file, or the evaluation that the runs are from
	Definition string // hash of the definition
	Patch      string // how the definition differs from its file, as a unified diff; "" if it does not
	Texts      []Text // texts of the definition that the evaluation was asked to change
	Cases      []Case
}

// A Text is the text of a field of an agent.
type Text struct {
	Field string `json:"field"` // AGENT.FIELD
	Text  string `json:"text"`
}

// A Case is what one version did with one case. The cases of both sides are matched by their IDs.
type Case struct {
	ID     string
	Group  string // unit of the statistics; "" for a case that is one by itself
	Tags   []string
	Weight float64 // 0 is 1
	// Input is what the last turn asks, and Expected the answer that it expects; "" if the case has none.
	Input, Expected string
	Runs            []Run
}

// A Run is one run of a case. A run with an error neither passed nor failed; a verdict has to hold also if it did not pass.
type Run struct {
	ID      string
	Passed  *bool    // nil if no check was evaluated
	Score   *float64 // nil if it has none
	Checks  []Check
	Cost    *float64 // nil if a price is unknown
	Judges  *float64 // cost of the judges of its checks, which is no part of Cost; nil if none was asked, or a price is unknown
	Seconds float64
	Tokens  int64
	Answer  string
	Error   string // why the run has no result; "" if it has one
}

// A Check is what one check found in one run.
type Check struct {
	Name          string
	Value         *float64 // from 0 to 1; nil if the check was not evaluated
	Passed        *bool
	Reason        string
	Informational bool // it is shown, and decides nothing
	Votes         int  // votes of a judge; 0 if none was asked
	Split         bool // the votes differ
}

// The names of metrics that are no checks.
const (
	Passed  = "passed"
	Score   = "score"
	Cost    = "cost"
	Seconds = "seconds"

	// passedOfAll is the metric passed in which a run with an error has 0. No check has this name.
	passedOfAll = "\x00"
)

// value returns a run's value of a metric; nil if it is unknown.
func (r *Run) value(metric string) *float64 {
	if r.Error != "" {
		if metric == passedOfAll {
			return new(0.0)
		}
		return nil
	}
	switch metric {
	case Passed, passedOfAll:
		return number(r.Passed)
	case Score:
		return r.Score
	case Cost:
		return r.Cost
	case Seconds:
		return &r.Seconds
	}
	for i := range r.Checks {
		if r.Checks[i].Name == metric {
			return r.Checks[i].Value
		}
	}
	return nil
}

func number(b *bool) *float64 {
	switch {
	case b == nil:
		return nil
	case *b:
		return new(1.0)
	}
	return new(0.0)
}

// values returns the known values of a metric in the runs of a case.
func (c *Case) values(metric string) (values []float64) {
	if c == nil {
		return nil
	}
	for i := range c.Runs {
		if v := c.Runs[i].value(metric); v != nil {
			values = append(values, *v)
		}
	}
	return values
}

// observations pairs the cases of both sides in the order of the new one. Of a case that one side does not have, the
// values of that side are empty.
func (r *Report) observations(metric string) []stats.Observation {
	old := make(map[string]*Case)
	if r.Old != nil {
		for i := range r.Old.Cases {
			old[r.Old.Cases[i].ID] = &r.Old.Cases[i]
		}
	}
	var obs []stats.Observation
	for i := range r.New.Cases {
		c := &r.New.Cases[i]
		obs = append(obs, stats.Observation{
			Case: c.ID, Group: c.Group, Weight: c.Weight, A: c.values(metric), B: old[c.ID].values(metric),
		})
		delete(old, c.ID)
	}
	if r.Old != nil {
		for i := range r.Old.Cases {
			if c := &r.Old.Cases[i]; old[c.ID] != nil {
				obs = append(obs, stats.Observation{Case: c.ID, Group: c.Group, Weight: c.Weight, B: c.values(metric)})
			}
		}
	}
	return obs
}
