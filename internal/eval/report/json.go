// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"github.com/refrain-dev/refrain/internal/eval/stats"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// The JSON has null for each number that is unknown. Its fields only ever get more.
type (
	document struct {
		Eval    string  `json:"eval"`
		Set     string  `json:"set"`
		Verdict Verdict `json:"verdict"`
		Reason  string  `json:"reason,omitempty"` // why there is no verdict
		Exit    int     `json:"exit_code"`
		Decide  string  `json:"decide"`
		Margin  float64 `json:"margin"`
		Level   float64 `json:"level"` // confidence of all intervals
		Repeat  int     `json:"repeat"`
		Planned int     `json:"planned"` // cases
		Seconds float64 `json:"seconds"` // duration of the evaluation

		New        version     `json:"new"`
		Old        *version    `json:"old"`
		Comparison *comparison `json:"comparison"` // of the metric that decides
		Cost       *comparison `json:"cost_ratio"` // the difference is the ratio of new to old, minus 1
		Time       *comparison `json:"seconds_ratio"`

		Cases  []pair    `json:"cases"`
		Failed []failure `json:"failed"`
		Notes  []string  `json:"notes"`
	}
	version struct {
		Name          string   `json:"name"`
		Definition    string   `json:"definition"`
		Patch         string   `json:"patch,omitempty"`
		Texts         []Text   `json:"texts,omitempty"`
		Always        int      `json:"always"` // cases
		Sometimes     int      `json:"sometimes"`
		Never         int      `json:"never"`
		Error         int      `json:"error"`
		NotEvaluated  int      `json:"not_evaluated"`
		Runs          int      `json:"runs"`
		Errors        int      `json:"errors"` // runs
		Judged        int      `json:"judged"` // checks by judges
		Split         int      `json:"split"`  // those in which the votes differ
		Deterministic bool     `json:"deterministic"`
		Passed        estimate `json:"passed"`
		PassedOfAll   estimate `json:"passed_of_all"` // if each run with an error did not pass
		Decided       estimate `json:"decided"`
		Cost          *float64 `json:"cost"`
		Judges        *float64 `json:"judges"`  // cost
		Seconds       float64  `json:"seconds"` // of all runs
		Tokens        int64    `json:"tokens"`
	}
	estimate struct {
		Mean *float64 `json:"mean"`
		Low  *float64 `json:"low"`
		High *float64 `json:"high"`
	}
	comparison struct {
		Metric     string   `json:"metric"`
		Difference *float64 `json:"difference"`
		Low        *float64 `json:"low"`
		High       *float64 `json:"high"`
		Cases      int      `json:"cases"`
		LeftOut    int      `json:"left_out"`
		Units      int      `json:"units"`
		Differing  int      `json:"differing"` // units
		Better     int      `json:"better"`    // cases
		Worse      int      `json:"worse"`
		Chance     float64  `json:"chance"` // better cases, and as many worse ones, of a version against itself
		Detectable *float64 `json:"detectable"`
		Needed     *int     `json:"needed"` // cases to see this difference
	}
	pair struct {
		ID     string   `json:"id"`
		Group  string   `json:"group,omitempty"`
		Tags   []string `json:"tags,omitempty"`
		Weight float64  `json:"weight"`
		New    *outcome `json:"new"`
		Old    *outcome `json:"old"`
	}
	// failure is a run that failed, of the new version.
	failure struct {
		ID       string `json:"id"`
		Input    string `json:"input"`
		Expected string `json:"expected"`
		Answer   string `json:"answer"`
		Why      string `json:"why"`
	}
	outcome struct {
		State State     `json:"state"`
		Value *float64  `json:"value"` // mean of the metric that decides
		Runs  []runJSON `json:"runs"`
	}
	runJSON struct {
		ID      string      `json:"id"`
		Passed  *bool       `json:"passed"`
		Score   *float64    `json:"score"`
		Cost    *float64    `json:"cost"`
		Judges  *float64    `json:"judges,omitempty"`
		Seconds float64     `json:"seconds"`
		Tokens  int64       `json:"tokens"`
		Answer  string      `json:"answer"`
		Error   *string     `json:"error"`
		Checks  []checkJSON `json:"checks"`
	}
	checkJSON struct {
		Name          string   `json:"name"`
		Value         *float64 `json:"value"`
		Passed        *bool    `json:"passed"`
		Reason        string   `json:"reason"`
		Informational bool     `json:"informational,omitempty"`
		Votes         int      `json:"votes,omitempty"`
		Split         bool     `json:"split,omitempty"`
	}
)

// WriteJSON writes everything as one indented JSON object.
func (s *Summary) WriteJSON(w io.Writer) error {
	d := document{
		Eval: s.Eval, Set: s.Set, Verdict: s.Verdict, Reason: s.Reason, Exit: s.ExitCode(), Decide: s.metric(), Margin: s.Margin,
		Level: brief.Digits(1-cmp.Or(s.Alpha, 0.05), 6), Repeat: s.Repeat, Planned: max(s.Planned, len(s.New.Cases)), Seconds: s.Time.Seconds(),
		New: versionOf(&s.New, &s.NewTotal), Cases: s.pairs(), Failed: s.failed(), Notes: append([]string{}, s.Notes...),
		Comparison: comparisonOf(s.metric(), s.Decided), Cost: comparisonOf(Cost, s.Cost), Time: comparisonOf(Seconds, s.Seconds),
	}
	if s.Old != nil {
		d.Old = new(versionOf(s.Old, s.OldTotal))
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// finite returns a number with six digits, and nil for one that JSON does not have.
func finite(x float64) *float64 {
	if !isFinite(x) {
		return nil
	}
	return new(brief.Digits(x, 6))
}

// optional returns a number as it is, and nil for one that JSON does not have.
func optional(x *float64) *float64 {
	if x == nil || !isFinite(*x) {
		return nil
	}
	return x
}

func versionOf(side *Side, t *Total) version {
	of := func(e stats.Estimate) estimate { return estimate{finite(e.Mean), finite(e.Low), finite(e.High)} }
	return version{
		Name: side.Name, Definition: side.Definition, Patch: side.Patch, Texts: side.Texts,
		Always: t.Always, Sometimes: t.Sometimes, Never: t.Never, Error: t.Error, NotEvaluated: t.Unknown,
		Runs: t.Runs, Errors: t.Errors, Judged: t.Votes, Split: t.Split, Deterministic: t.Deterministic,
		Passed: of(t.Passed), PassedOfAll: of(t.PassedOfAll), Decided: of(t.Decided),
		Cost: t.Cost, Judges: optional(t.Judges), Seconds: t.Seconds, Tokens: t.Tokens,
	}
}

func comparisonOf(metric string, c *stats.Comparison) *comparison {
	if c == nil {
		return nil
	}
	of := &comparison{
		Metric: metric, Difference: finite(c.Difference), Low: finite(c.Low), High: finite(c.High),
		Cases: c.Cases, LeftOut: c.Left, Units: c.Units, Differing: c.Differing, Better: c.Better, Worse: c.Worse, Chance: c.Chance,
	}
	if d := c.Detectable(); d > 0 {
		of.Detectable = finite(d)
	}
	if n := c.Needed(c.Difference); n > 0 {
		of.Needed = &n
	}
	return of
}

// failed returns the first failed run of each case of the new version that has one, at most [mostListed].
func (s *Summary) failed() []failure {
	all := []failure{}
	for i := range s.New.Cases {
		c := &s.New.Cases[i]
		k := slices.IndexFunc(c.Runs, func(r Run) bool { return r.why() != "" })
		if k >= 0 && len(all) < mostListed {
			all = append(all, failure{ID: c.ID, Input: c.Input, Expected: c.Expected, Answer: c.Runs[k].Answer, Why: c.Runs[k].why()})
		}
	}
	return all
}

// pairs returns the cases of both sides, in the order of the new one.
func (s *Summary) pairs() []pair {
	all := []pair{}
	at := make(map[string]int)
	of := func(c *Case) *pair {
		i, ok := at[c.ID]
		if !ok {
			i, at[c.ID] = len(all), len(all)
			weight := c.Weight
			if weight == 0 {
				weight = 1
			}
			all = append(all, pair{ID: c.ID, Group: c.Group, Tags: c.Tags, Weight: weight})
		}
		return &all[i]
	}
	for i := range s.New.Cases {
		of(&s.New.Cases[i]).New = s.outcome(&s.New.Cases[i])
	}
	if s.Old != nil {
		for i := range s.Old.Cases {
			of(&s.Old.Cases[i]).Old = s.outcome(&s.Old.Cases[i])
		}
	}
	return all
}

func (s *Summary) outcome(c *Case) *outcome {
	o := &outcome{State: c.State(), Runs: []runJSON{}}
	one := Report{New: Side{Cases: []Case{*c}}}
	if e := stats.Mean(one.observations(s.metric()), stats.Options{Unbounded: true}); e.Cases == 1 {
		o.Value = finite(e.Mean)
	}
	for i := range c.Runs {
		r := &c.Runs[i]
		run := runJSON{
			ID: r.ID, Passed: r.Passed, Score: optional(r.Score), Cost: optional(r.Cost), Judges: optional(r.Judges), Seconds: r.Seconds, Tokens: r.Tokens, Answer: r.Answer,
			Checks: []checkJSON{},
		}
		if r.Error != "" {
			run.Error = &r.Error
		}
		for _, c := range r.Checks {
			c.Value = optional(c.Value)
			run.Checks = append(run.Checks, checkJSON(c))
		}
		o.Runs = append(o.Runs, run)
	}
	return o
}
