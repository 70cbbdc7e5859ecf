// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/eval/stats"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// mostListed is how many cases the text lists; the JSON has all.
const mostListed = 10

// WriteText writes the summary for people, without the patch. width is the number of columns to which sentences are folded; 0 does not fold
// them.
func (s *Summary) WriteText(w io.Writer, width int) error {
	p := page{width: width}
	p.line("", s.title())
	p.table(s)
	p.line("", s.headline())
	if s.Decided == nil {
		p.failures(s)
	}
	for _, sentence := range s.sentences() {
		p.line("  ", sentence)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// page is a text of a limited width.
type page struct {
	strings.Builder
	width int
}

// line writes a sentence, folded and indented.
func (p *page) line(indent, text string) {
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			p.WriteString(indent)
			column = len(indent)
		case p.width > 0 && column+1+n > p.width:
			p.WriteString("\n  " + indent)
			column = len(indent) + 2
		default:
			p.WriteString(" ")
			column++
		}
		p.WriteString(word)
		column += n
	}
	p.WriteString("\n")
}

// rows writes cells in columns of two spaces between them, aligned to the right but for the first and the last one.
func (p *page) rows(rows [][]string) {
	wide := make([]int, len(rows[0]))
	for _, cells := range rows {
		for i, cell := range cells {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	for _, cells := range rows {
		line := []string{""}
		for i, cell := range cells {
			space := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(cell))
			if i == 0 || i == len(cells)-1 {
				cell, space = cell+space, ""
			}
			line = append(line, space+cell)
		}
		p.WriteString(strings.TrimRight(strings.Join(line, "  "), " ") + "\n")
	}
}

// title says what has run.
func (s *Summary) title() string {
	text := fmt.Sprintf("eval %s: %s", s.Eval, cmp.Or(brief.Line(s.New.Name, 60), brief.Line(s.Set, 60)))
	if s.Old != nil {
		text += " against " + brief.Line(s.Old.Name, 60)
	}
	text += ", " + s.amount(len(s.New.Cases))
	if s.Time > 0 {
		text += ", " + brief.Clock(s.Time)
	}
	text += costOf(", cost ", s.NewTotal.Cost)
	judges := 0.0
	if s.NewTotal.Judges != nil {
		judges = *s.NewTotal.Judges
	}
	if s.OldTotal != nil {
		text += costOf(", old ", s.OldTotal.Cost)
		if s.OldTotal.Judges != nil {
			judges += *s.OldTotal.Judges
		}
	}
	text += costOf(", judges ", &judges)
	return text
}

func costOf(prefix string, cost *float64) string {
	switch {
	case cost == nil:
		return prefix + "unknown"
	case *cost == 0:
		return ""
	}
	return prefix + brief.Money(*cost)
}

// amount writes a number of cases with the runs of each: 30 cases × 3 runs.
func (s *Summary) amount(cases int) string {
	text := brief.Count(cases, "case")
	if s.Repeat > 0 {
		text += " × " + brief.Count(s.Repeat, "run")
	}
	return text
}

func (p *page) table(s *Summary) {
	metric := s.name()
	if quantity(s.metric()) {
		metric = Passed
	}
	metric += " (" + level(s.Alpha) + " interval)"
	head := []string{"cases that pass", "always", "sometimes", "never", "error", "unknown", metric}
	rows := [][]string{head}
	add := func(name string, t *Total) {
		e := t.Decided
		if quantity(s.metric()) {
			e = t.Passed
		}
		row := []string{name}
		for _, n := range []int{t.Always, t.Sometimes, t.Never, t.Error, t.Unknown} {
			row = append(row, brief.Whole(n))
		}
		rows = append(rows, append(row, interval(e.Mean, e.Low, e.High, "%.*f")))
	}
	name := ""
	if s.Old != nil {
		name = "new"
	}
	add(name, &s.NewTotal)
	if s.OldTotal != nil {
		add("old", s.OldTotal)
	}
	if s.NewTotal.Unknown == 0 && (s.OldTotal == nil || s.OldTotal.Unknown == 0) {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 5, 6)
		}
	}
	p.WriteString("\n")
	p.rows(rows)
	p.WriteString("\n")
}

// name is the metric that decides, for people.
func (s *Summary) name() string { return brief.Line(s.metric(), 40) }

// quantity reports whether versions are compared by the ratio of a metric.
func quantity(metric string) bool { return metric == Cost || metric == Seconds }

// level writes the confidence of intervals: 95%.
func level(alpha float64) string { return brief.Score(100*(1-cmp.Or(alpha, 0.05))) + "%" }

// interval writes a number with its interval, with as many decimals as the interval needs.
func interval(x, low, high float64, format string) string {
	if math.IsNaN(x) {
		return "unknown"
	}
	decimals := 4
	switch width := high - low; {
	case width >= 50:
		decimals = 0
	case !(width < 0.05): // or unknown
		decimals = 2
	case width >= 0.005:
		decimals = 3
	}
	text := fmt.Sprintf(format, decimals, x)
	if !isFinite(low) || !isFinite(high) {
		return text + " (unknown)"
	}
	return fmt.Sprintf("%s ("+format+" … "+format+")", text, decimals, low, decimals, high)
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// change writes a difference of a metric with its interval.
func change(metric string, c *stats.Comparison) string {
	if !quantity(metric) || math.IsNaN(c.Difference) {
		return interval(c.Difference, c.Low, c.High, "%+.*f")
	}
	percent := func(x float64) string {
		if x < 0 {
			return brief.Percent(x)
		}
		return "+" + brief.Percent(x)
	}
	switch {
	case c.Low == c.High: // no case differs
		return percent(c.Difference)
	case !isFinite(c.Low) || !isFinite(c.High):
		return percent(c.Difference) + " (unknown)"
	}
	return fmt.Sprintf("%s (%s … %s)", percent(c.Difference), percent(c.Low), percent(c.High))
}

// headline is the verdict.
func (s *Summary) headline() string {
	t := &s.NewTotal
	cases := len(s.New.Cases)
	switch {
	case s.Reason != "":
		text := string(s.Verdict) + ": " + s.Reason
		if planned := max(s.Planned, cases); s.Ended != "" && s.started() < planned {
			text += fmt.Sprintf("; %s of %s have run", brief.Whole(s.started()), brief.Count(planned, "case"))
		}
		return text
	case s.Decided != nil:
		return fmt.Sprintf("%s: %s %s", s.Verdict, s.name(), change(s.metric(), s.Decided))
	case s.Verdict == AllPassed && t.Always == 1:
		return "passed: the case passes in all runs"
	case s.Verdict == AllPassed:
		return fmt.Sprintf("passed: %s pass in all runs", brief.Count(t.Always, "case"))
	}
	text := fmt.Sprintf("failed: %s of %s did not pass in all runs", brief.Whole(t.Sometimes+t.Never), brief.Count(cases, "case"))
	if t.Unknown > 0 {
		text += "; " + s.unevaluated()
	}
	return text
}

// started counts the cases of the new version that have a run.
func (s *Summary) started() (n int) {
	for i := range s.New.Cases {
		if len(s.New.Cases[i].Runs) > 0 {
			n++
		}
	}
	return n
}

// failures lists cases that do not always pass, those that never pass first.
func (p *page) failures(s *Summary) {
	var rows [][]string
	for _, state := range []State{Never, Sometimes} {
		for i := range s.New.Cases {
			if c := &s.New.Cases[i]; c.State() == state {
				rows = append(rows, []string{brief.Line(c.ID, 30), string(state), c.why()})
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	more := len(rows) - mostListed
	rows = rows[:min(len(rows), mostListed)]
	wide := 0
	for _, cells := range rows {
		wide = max(wide, utf8.RuneCountInString(cells[0]))
	}
	for _, cells := range rows {
		line := fmt.Sprintf("  %-*s  %-*s  ", wide, cells[0], len(Sometimes), cells[1])
		if p.width > 0 {
			cells[2] = brief.Clip(cells[2], max(20, p.width-utf8.RuneCountInString(line)-1))
		}
		p.WriteString(line + cells[2] + "\n")
	}
	if more > 0 {
		p.line("  ", fmt.Sprintf("and %s; --json lists all", brief.Count(more, "more case")))
	}
}

// why returns the reason of the first check that failed in a run; "" if there is none.
func (c *Case) why() string {
	for i := range c.Runs {
		if reason := c.Runs[i].why(); reason != "" {
			return reason
		}
	}
	return ""
}

func (r *Run) why() string {
	if r.Error != "" || r.Passed == nil || *r.Passed {
		return ""
	}
	for i := range r.Checks {
		if c := &r.Checks[i]; !c.Informational && c.Passed != nil && !*c.Passed {
			return brief.Line(c.Name+": "+c.Reason, 200)
		}
	}
	return "the score is too low"
}
