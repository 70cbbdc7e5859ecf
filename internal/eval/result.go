// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/eval/report"
	"github.com/refrain-dev/refrain/internal/eval/stats"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session/mark"
)

// OldAfter is the age of an eval after which its models may have changed.
const OldAfter = 7 * 24 * time.Hour

// Report returns what an eval has found so far.
func (r *Record) Report() *report.Report {
	of := r.ordered()
	if r.Ended != nil && r.Ended.Cases > 0 {
		of = of[:min(r.Ended.Cases, len(of))]
	}
	slices.SortFunc(of, func(a, b *check.Case) int { return r.place(a) - r.place(b) })
	rep := r.reportOf(of)
	if rep.Planned = len(r.Set.Cases); r.Ended == nil {
		rep.Ended = fmt.Sprintf("%d of %d runs are over", r.own(), r.Runs())
	} else if r.Ended.Unpriced != "" {
		rep.Ended = r.Ended.uncounted()
	} else if r.Ended.Reason == EndedBudget {
		rep.Ended = "the budget is used up"
	}
	switch looks := stats.Looks(len(r.Set.Cases)); {
	case r.Ended != nil && r.Ended.Alpha > 0:
		rep.Alpha = r.Ended.Alpha
	case r.StopEarly && len(looks) > 0:
		rep.Alpha = looks[len(looks)-1].Alpha
	}
	for _, v := range r.Versions {
		if age := r.Began.Sub(v.Began); v.Side == SideB && v.Eval != "" && age > OldAfter {
			rep.Notes = append(rep.Notes, fmt.Sprintf("The runs of %s are %d days older; models change meanwhile.", v.Eval, int(age.Hours()/24)))
		}
	}
	if r.Scores == "" {
		rep.Retry = r.retry()
	}
	return rep
}

// retry returns the command that runs the cases that failed again.
func (r *Record) retry() string {
	text := "refrain eval " + shellword.Of(r.Versions[0].Name)
	add := func(flag, value string) { text += " --" + flag + " " + shellword.Of(value) }
	add("cases", r.File)
	add("failed", r.ID)
	for _, t := range r.Versions[0].Texts {
		add("change", t.Field)
	}
	if len(r.Versions) > 1 {
		add("against", cmp.Or(r.Versions[1].Eval, r.Versions[1].Name))
	}
	if p, err := program.Decode(mark.RunStarted{Program: r.Versions[0].Program}); err == nil {
		if p.Model != "" {
			add("model", p.Model)
		}
		if root, err := filepath.Rel(p.Dir, p.Root); err == nil && root != "." {
			add("root", root)
		}
	}
	return text
}

// uncounted says which cost is unknown, and what to do.
func (e *Ended) uncounted() string {
	if len(e.Models) == 0 {
		return fmt.Sprintf("the cost of run %s is unknown, and the budget limits it; leave the cost out of the budget, and limit "+
			"tokens or calls", e.Unpriced)
	}
	return fmt.Sprintf("the cost of run %s is unknown, because the price of %s is, and the budget limits it; give the price under prices in "+
		"the definition, or limit tokens or calls instead", e.Unpriced, strings.Join(e.Models, " and "))
}

// place returns the place of a case in its file.
func (r *Record) place(c *check.Case) int {
	return slices.IndexFunc(r.Set.Cases, func(o check.Case) bool { return o.ID == c.ID })
}

// own counts the results of the eval's own case-runs.
func (r *Record) own() (n int) {
	for i := range r.Scored {
		if r.Own(&r.Scored[i]) {
			n++
		}
	}
	return n
}

// reportOf returns a report of some cases.
func (r *Record) reportOf(of []*check.Case) *report.Report {
	rep := &report.Report{Eval: r.ID, Set: r.Set.Name, Decide: r.Set.Decide, Margin: r.Set.Margin, Repeat: r.Set.Repeat}
	if n := len(r.Scored); n > 0 && r.Scores == "" {
		rep.Time = r.Took
	}
	for _, v := range r.Versions {
		side := report.Side{Name: v.Name, Definition: v.Hash, Patch: v.Patch}
		for _, t := range v.Texts {
			side.Texts = append(side.Texts, report.Text(t))
		}
		if v.Patch != "" {
			side.Name += " (changed)"
		}
		if v.Eval != "" && r.Scores == "" {
			side.Name += " (" + v.Eval + ")"
		}
		at := make(map[string]int)
		for _, c := range of {
			at[c.ID] = len(side.Cases)
			of := report.Case{ID: c.ID, Group: c.Group, Tags: c.Tags, Weight: c.Weight}
			if last := len(c.Turns) - 1; last >= 0 {
				of.Input = c.Turns[last].Input
				if e := c.Turns[last].Expected; e != nil {
					of.Expected = *e
				}
			}
			side.Cases = append(side.Cases, of)
		}
		for i := range r.Scored {
			if k, ok := at[r.Scored[i].Case]; ok && r.Scored[i].Side == v.Side {
				run := runOf(&r.Scored[i])
				r.addPair(&run, &r.Scored[i])
				side.Cases[k].Runs = append(side.Cases[k].Runs, run)
			}
		}
		for i := range side.Cases {
			slices.SortFunc(side.Cases[i].Runs, compareRuns)
		}
		if v.Side == SideA {
			rep.New = side
		} else {
			rep.Old = &side
		}
	}
	return rep
}

// compareRuns orders the runs of a case by their numbers, which their IDs end with.
func compareRuns(a, b report.Run) int {
	return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
}

func runOf(s *Scored) report.Run {
	run := report.Run{ID: s.Run, Passed: s.Grade.Passed, Score: s.Grade.Score, Cost: s.Cost, Seconds: s.Seconds, Tokens: s.Tokens,
		Answer: s.Answer, Error: s.Error}
	if s.Judges != nil {
		run.Judges = s.Judges.Cost
	}
	for _, c := range s.Grade.Results {
		run.Checks = append(run.Checks, checkOf(&c))
	}
	return run
}

func checkOf(c *check.Result) report.Check {
	return report.Check{Name: c.Name, Value: c.Value, Passed: c.Passed, Reason: c.Reason, Informational: c.Informational, Votes: c.Votes,
		Split: c.Split}
}
