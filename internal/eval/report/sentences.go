// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/refrain-dev/refrain/internal/eval/stats"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// sentences say what stands behind the verdict, one after the other.
func (s *Summary) sentences() (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if s.Decided != nil {
		all = append(all, s.comparison()...)
	}
	if text := s.New.unevaluated(); text != "" {
		add("%s", text)
	}
	same := 0
	for _, v := range s.versions() {
		if n := v.total.Errors; n > 0 {
			count := "count neither as passed nor as failed"
			if n == 1 {
				count = "counts neither as passed nor as failed"
			}
			add("%s of %s%s ended with an error and %s. The most frequent error: %s",
				brief.Whole(n), brief.Count(v.total.Runs, "run"), v.of, count, v.side.error())
		}
		if v.total.Split > 0 {
			add("Judges were not unanimous in %s of %s%s.", brief.Whole(v.total.Split), brief.Count(v.total.Votes, "check"), v.of)
		}
		if v.total.Deterministic {
			same++
		}
	}
	if errors := s.NewTotal.Errors + errorsOf(s.OldTotal); errors > 0 {
		if s.Decided != nil && s.Reason != "" && s.Ended == "" {
			add("If a definition causes the errors, mend it. If chance does, run the same command again for a verdict.")
		}
		if s.Retry != "" {
			again := "To run only the cases with errors or failures again"
			if len(s.New.Texts) > 0 {
				again += ", with the same stdin"
			}
			add("%s: %s", again, s.Retry)
		}
	}
	if same == len(s.versions()) {
		add("All runs of each case gave the same answer, so one run of each case says as much.")
	}
	for _, note := range s.Notes {
		add("%s", brief.Line(note, 300))
	}
	return all
}

// unevaluated names the cases that have run but that no check has evaluated, with the reason of the first one; "" if there are none.
func (s *Side) unevaluated() string {
	var names []string
	why, more := "", 0
	for i := range s.Cases {
		c := &s.Cases[i]
		if len(c.Runs) == 0 || c.State() != Unknown {
			continue
		}
		if why == "" && len(c.Runs[0].Checks) > 0 {
			why = c.Runs[0].Checks[0].Name + ": " + c.Runs[0].Checks[0].Reason
		}
		if len(names) == 5 {
			more++
			continue
		}
		names = append(names, brief.Line(c.ID, 40))
	}
	if names == nil {
		return ""
	}
	text := "Not evaluated: " + strings.Join(names, ", ")
	if more > 0 {
		text += " and " + brief.Whole(more) + " more"
	}
	if why != "" {
		text += " (" + brief.Line(why, 160) + ")"
	}
	return text + ". Give such a case a reference, or a check that needs none."
}

// sideName is a version with what tells it from the other one in a sentence.
type sideName struct {
	of    string // " of the new version"; "" if there is one version
	side  *Side
	total *Total
}

func (s *Summary) versions() []sideName {
	if s.Old == nil {
		return []sideName{{"", &s.New, &s.NewTotal}}
	}
	return []sideName{{" of the new version", &s.New, &s.NewTotal}, {" of the old version", s.Old, s.OldTotal}}
}

func errorsOf(t *Total) int {
	if t == nil {
		return 0
	}
	return t.Errors
}

// error returns the most frequent error of the runs.
func (s *Side) error() (text string) {
	count := make(map[string]int)
	for i := range s.Cases {
		for j := range s.Cases[i].Runs {
			e := brief.Line(s.Cases[i].Runs[j].Error, 160)
			if e != "" {
				count[e]++
			}
			if e != text && (count[e] > count[text] || count[e] == count[text] && e < text) {
				text = e
			}
		}
	}
	return text
}

// comparison says what the comparison of two versions has seen, and what it could not see.
func (s *Summary) comparison() (all []string) {
	c := s.Decided
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if s.Reason != "" && c.Cases > 0 {
		so := "Without them"
		if s.Ended != "" {
			so = "So far"
		}
		add("%s: %s %s.", so, s.name(), change(s.metric(), c))
	}
	if s.OfAll != nil && s.Ended == "" && s.OfAll.Verdict != c.Verdict {
		add("If the runs with an error did not pass: %s %s.", s.name(), change(Passed, s.OfAll))
	}
	switch {
	case c.Cases == 0:
		add("No case has a value of %s in both versions.", s.name())
	case c.Better+c.Worse == 0 && (s.Verdict == Same || s.Reason != ""): // else sight says so
		add("No case differs.")
	case c.Better+c.Worse == 0:
	default:
		itself := "none"
		if n := min(int(math.Round(c.Chance)), c.Cases/2); n > 0 {
			itself = fmt.Sprintf("about %s and %[1]s", brief.Whole(n))
		}
		worse := "none"
		if c.Worse > 0 {
			worse = brief.Whole(c.Worse)
		}
		add("%s better and %s worse (a version against itself: %s).", are(c.Better), worse, itself)
	}
	if len(s.Losses) > 0 {
		var names []string
		for _, id := range s.Losses[:min(len(s.Losses), 5)] {
			names = append(names, brief.Line(id, 40))
		}
		add("Largest losses: %s.", strings.Join(names, ", "))
	}
	if s.Reason == "" {
		all = append(all, s.sight()...)
	}
	if s.Reason == "" && s.Planned > len(s.New.Cases) {
		add("The evaluation ended early, after %s of %s, because these decide.", brief.Whole(len(s.New.Cases)), brief.Count(s.Planned, "case"))
	}
	if c.Left > 0 && c.Cases > 0 {
		add("Left out: %s without a value of %s in both versions.", brief.Count(c.Left, "case"), s.name())
	}
	var others []string
	for _, other := range []struct {
		metric, name string
		c            *stats.Comparison
	}{{Cost, "cost", s.Cost}, {Seconds, "time", s.Seconds}} {
		if other.c != nil && other.c.Cases > 0 && other.metric != s.metric() {
			others = append(others, other.name+" "+change(other.metric, other.c))
		}
	}
	if others != nil {
		add("For information: %s.", strings.Join(others, ", "))
	}
	return all
}

// are writes a number of cases as the subject of a sentence.
func are(cases int) string {
	switch cases {
	case 0:
		return "No case is"
	case 1:
		return "1 case is"
	}
	return brief.Count(cases, "case") + " are"
}

// mostNeeded is the number of cases from which on nobody would write them.
const mostNeeded = 1e5

// sight says which difference could have been seen, and what it takes to see a smaller one, or to decide.
func (s *Summary) sight() (all []string) {
	c := s.Decided
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	unit := "case"
	if c.Units < c.Cases {
		unit = "group"
	}
	seen := c.Detectable()
	if s.Verdict == Same {
		add("The difference is smaller than the margin, which is %s.", s.size(s.Margin))
	}
	if s.Verdict == Undecided && c.Differing < stats.Least && c.Cases > 0 {
		add("A verdict needs %s that differ; %d of %s differ here.", brief.Count(stats.Least, unit), c.Differing, brief.Whole(c.Units))
	} else if needed := c.Needed(c.Difference); s.Verdict == Undecided && 0 < needed && needed < mostNeeded {
		add("If the true difference is %s, as measured here, a verdict takes about %s.", s.difference(c.Difference), s.amount(needed))
	}
	if math.IsNaN(seen) || seen <= 0 || c.Units < stats.Least {
		return all
	}
	smaller := ""
	for _, small := range []float64{0.5, 0.2, 0.1, 0.05, 0.02, 0.01} {
		if needed := c.Needed(small); small <= seen/2 && 0 < needed && needed < mostNeeded {
			smaller = fmt.Sprintf("; one of %s takes %s", s.size(small), s.amount(needed))
			break
		}
	}
	if math.IsInf(seen, 1) {
		add("No true difference, however large, would be seen in 4 of 5 evaluations like this one%s.", smaller)
	} else {
		add("A true difference of %s would be seen in 4 of 5 evaluations like this one%s.", s.size(seen), smaller)
	}
	if margin := max(-c.Low, c.High); s.Verdict == Undecided && !quantity(s.metric()) && s.Margin < margin && margin <= 0.15 {
		margin = math.Ceil(margin*100) / 100
		add("With --margin %s, the versions would count as the same.", brief.Number(margin, 64))
	}
	return all
}

// size writes a difference without its sign, and difference with it.
func (s *Summary) size(x float64) string {
	if quantity(s.metric()) {
		return brief.Percent(x)
	}
	return brief.Number(brief.Digits(x, 2), 64)
}

func (s *Summary) difference(x float64) string {
	if x < 0 {
		return "-" + s.size(-x)
	}
	return "+" + s.size(x)
}
