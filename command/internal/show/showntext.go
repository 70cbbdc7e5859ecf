// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// print writes the parts of the report that the flags ask for.
func (s *Shown) print(e *term.Env, f Options) error {
	if f.JSON {
		if f.One || f.Diff != "" || f.Prompt != "" || f.Files {
			s.Tree, s.Loops = nil, nil
			return term.WriteJSON(e.Stdout, s)
		}
		return s.printJSON(e.Stdout)
	}
	w := bufio.NewWriter(e.Stdout)
	switch {
	case f.Files:
		s.Files.print(w, s.columns > 0)
		return w.Flush()
	case f.Diff != "":
		printDiff(w, s.Diff)
		if slices.ContainsFunc(s.Diff, func(c progress.Change) bool { return c.Key == runfiles.Key || c.Key == runfiles.Key+".tree" }) {
			fmt.Fprintln(w, e.Hint(fmt.Sprintf("To see how the files changed: refrain show %s --diff %s --files", s.Run, f.Diff)))
		}
		return w.Flush()
	case f.Prompt != "":
		printPrompt(w, s.step, s.Prompt)
		return w.Flush()
	case f.One:
		if s.Iteration != nil {
			printIteration(w, s)
		}
	case f.Resources:
		s.printResources(w)
	case f.State: // and nothing else
	default:
		s.header(w)
		s.PrintTree(w)
		if s.spool != nil && s.spool.err != nil {
			return s.spool.err
		}
		s.ending(e, w)
	}
	if f.State {
		printState(w, s.State, f.One)
	}
	return w.Flush()
}

// printJSON writes the report with the iterations that the tree left out.
func (s *Shown) printJSON(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	j := &treeJSON{w: &indenter{w: out}, spool: s.spool}
	if j.report(s); j.err != nil {
		return j.err
	}
	_ = out.WriteByte('\n') // bufio keeps the error for Flush
	return out.Flush()
}

// printResources writes the resources that the run has used, as far as its log contains them.
func (s *Shown) printResources(w io.Writer) {
	table := [][]string{{"from first to last event", brief.Clock(s.Resources.Wall)}}
	for _, l := range s.Resources.Lines() {
		table = append(table, l[:])
	}
	_ = term.PrintTable(w, table, term.Layout{}) // bufio keeps the error for Flush
}

// header writes the ID and the status of the run.
func (s *Shown) header(w io.Writer) {
	line := "run " + s.Run
	if s.Name != "" {
		line += "  " + s.Name
	}
	line += "  " + s.Status
	if s.Driver != "" {
		line += "  " + runstore.DriverText(s.Driver)
	}
	if s.DrivenBy != "" {
		line += " (" + runstore.OwnerText(s.DrivenBy) + ")"
	}
	fmt.Fprintln(w, brief.Clean(line))
	if !s.Started.IsZero() {
		fmt.Fprintf(w, "started %s, active for %s", s.Started.Local().Format(time.DateTime), brief.Clock(s.Tree.Active()))
		if s.Tree.Forked > 0 { // which limits, model calls and cost count too
			fmt.Fprintf(w, " (%s with the part before the fork)", brief.Clock(s.Tree.Now))
		}
		if u := s.Usage; u != nil {
			fmt.Fprintf(w, ", %s", brief.Count(u.Calls, "model call"))
			if u.Tokens() > 0 {
				fmt.Fprintf(w, ", %s", brief.Count(u.Tokens(), "token"))
			}
			if cost := u.CostText(); cost != "" && cost != "0" {
				fmt.Fprintf(w, ", cost %s", cost)
			}
			if cache := u.Cache(); cache != "" {
				fmt.Fprintf(w, ", %s", cache)
			}
		}
		fmt.Fprintln(w)
	}
	if p := s.Parent; p != nil {
		fmt.Fprintf(w, "forked from %s after event %d\n", brief.Clean(p.SessionID), p.Seq)
	}
}

// ending writes the result of the run.
func (s *Shown) ending(e *term.Env, w io.Writer) {
	for i := range s.Loops {
		if o := &s.Loops[i]; o.Reason == "" && !mark.RunStatus(s.Status).IsFinal() {
			fmt.Fprintln(w)
			printOutlook(w, o)
		}
	}
	for _, rec := range s.Stops {
		fmt.Fprintln(w)
		printStop(w, rec, lastStep(s.Tree, rec))
	}
	if len(s.Acts) > 0 {
		fmt.Fprintln(w, "\nWho did what:")
		rows := make([][]string, len(s.Acts))
		for i, a := range s.Acts {
			rows[i] = []string{"  " + a.At.Local().Format(time.DateTime), brief.Clean(a.By), string(a.Deed), brief.Line(a.Text, 200)}
		}
		_ = term.PrintTable(w, rows, term.Layout{}) // bufio keeps the error for Flush
	}
	if lines := s.Tree.Tasks.Lines(); lines != nil {
		fmt.Fprintf(w, "\n%s\n", strings.Join(lines, "\n"))
	}
	if s.Error != "" {
		fmt.Fprintf(w, "\nError: %s\n", brief.Clean(s.Error))
	}
	switch mark.RunStatus(s.Status) {
	case mark.RunIsPaused:
		fmt.Fprintf(w, "\n%s\n", strings.Join(runstore.PausedLines(s.Tree, s.Summary), "\n"))
	case mark.RunWaiting:
		fmt.Fprintf(w, "\nThe run %s:\n%s\n", runstore.WaitsForPerson, e.Hint(strings.Join(runstore.Asks(s.Run, s.Summary), "\n")))
	}
	for _, f := range s.Findings {
		fmt.Fprintf(w, "\n%s\n", brief.Clean(term.Note(f)))
	}
	switch s.Status {
	case runlog.StatusInterrupted, string(mark.RunIsPaused), string(mark.RunCanceled):
		fmt.Fprintf(w, "\n%s\n", e.Hint(brief.Clean(s.resume())))
	}
	if s.where != "" && mark.RunStatus(s.Status).IsFinal() {
		fmt.Fprintf(w, "\n%s\n", e.Hint(s.where))
	}
	if s.Answer != "" {
		title := "Answer:"
		if !mark.RunStatus(s.Status).IsFinal() {
			title = "Said last:"
		}
		fmt.Fprintln(w, "\n"+title)
		term.Indented(w, s.Answer, "  ")
	}
}

// printOutlook writes the progress of an unfinished loop, and how the loop can stop. A star marks the likely condition, a tilde
// the nearest condition.
func printOutlook(w io.Writer, o *prose.Outlook) {
	fmt.Fprintln(w, brief.Clean(string(o.Loop)+": "+o.Words.String()))
	var rows [][2]string
	for i := range o.Ledger {
		r := &o.Ledger[i]
		parts := slices.DeleteFunc([]string{r.Words.Amount, r.Words.Tag, r.Words.Why}, func(s string) bool { return s == "" })
		rows = append(rows, [2]string{markers(r.Status == loop.ConditionLikely, r.Name == o.Nearest) + r.Words.Title, strings.Join(parts, "; ")})
	}
	printRows(w, rows)
}

// markers begins the line of a condition: a star before one that ends the loop, a tilde before the one that is nearest.
func markers(ends, nearest bool) string {
	switch {
	case ends:
		return "* "
	case nearest:
		return "~ "
	}
	return "  "
}

// printRows writes two columns, with a margin.
func printRows(w io.Writer, rows [][2]string) {
	wide := 0
	for _, r := range rows {
		wide = max(wide, utf8.RuneCountInString(r[0]))
	}
	for _, r := range rows {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-*s  %s", wide, brief.Clean(r[0]), brief.Clean(r[1])), " "))
	}
}

// printStop writes a stop record: the reason, and each condition with its values. A star marks the condition that fired, a
// tilde the condition that came nearest.
func printStop(w io.Writer, rec *loop.StopRecord, of *progress.Step) {
	line := rec.String()
	if rec.Loop != "" {
		line = rec.Loop + ": " + line
	}
	if rec.By != "" {
		line += " (by " + rec.By + ")"
	}
	fmt.Fprintln(w, brief.Clean(line))
	var rows [][2]string
	for _, c := range conditions(rec, of) {
		rows = append(rows, [2]string{markers(c.Fired, c.Name == rec.Nearest) + c.Name, conditionText(c, of)})
	}
	printRows(w, rows)
	result := "result: " + string(rec.Result.Source)
	if rec.Result.Iteration > 0 {
		result += fmt.Sprintf(", iteration %d", rec.Result.Iteration)
	}
	if rec.BestScore != nil && rec.BestIteration == 0 {
		result += fmt.Sprintf("; best score %s%s, that of the start", brief.Score(*rec.BestScore), brief.OffBy(rec.BestError))
	} else if rec.BestScore != nil {
		result += fmt.Sprintf("; best score %s%s in iteration %d", brief.Score(*rec.BestScore), brief.OffBy(rec.BestError), rec.BestIteration)
	}
	if rec.Trend != "" {
		result += "; " + string(rec.Trend)
	}
	fmt.Fprintln(w, "  "+brief.Clean(result))
	for _, extra := range []string{prose.HowSure(rec.Proof, prose.English), rec.ScoreNote, rec.FinalizerFailure} {
		if extra != "" {
			fmt.Fprintln(w, "  "+brief.Clean(extra))
		}
	}
}

// conditions returns the conditions of a stop record. Those of an old version have no numbers: they come from the log where it agrees.
func conditions(rec *loop.StopRecord, of *progress.Step) []loop.ConditionRecord {
	if of == nil {
		return rec.Conditions
	}
	var all []loop.ConditionRecord
	for _, r := range of.Loop.Ledger(0).Rows {
		all = append(all, r.ConditionRecord)
	}
	return all
}

// isLimit reports whether a condition is a limit that can be used up.
func isLimit(name string) bool {
	return name == string(loop.ReasonMaxIterations) || name == string(loop.ReasonTimeout) ||
		strings.HasPrefix(name, "budget.")
}

// lastStep returns the step of the loop that has a stop record; nil if it is not in the tree.
func lastStep(t *progress.Tree, rec *loop.StopRecord) *progress.Step {
	if t == nil || rec.Digest == "" {
		return nil
	}
	for s := range t.Loops() {
		if s.Loop.Stop != nil && s.Loop.Stop.Digest == rec.Digest {
			return s
		}
	}
	return nil
}

// wholeLimit returns a limit as the definition has it, if a share of the limit is reserved for the finalizer; otherwise "". The
// threshold of a stop record does not include the share.
func wholeLimit(name string, of *progress.Step) string {
	if of == nil || of.Loop.Plan.Share() == 0 {
		return ""
	}
	plan := of.Loop.Plan
	switch b := plan.Budget; {
	case name == string(loop.ReasonTimeout):
		return brief.Clock(time.Duration(plan.Timeout))
	case b == nil:
	case name == "budget.calls":
		return brief.Whole(b.Calls)
	case name == "budget.tokens":
		return brief.Whole(b.Tokens)
	case name == "budget.cost" && b.Cost != nil:
		return brief.Money(*b.Cost)
	}
	return ""
}

// figure writes a value of a condition as [brief] does. A log has it exactly; a value that is no figure is returned unchanged.
func figure(name, text string) string {
	f, err := strconv.ParseFloat(text, 64)
	d, noTime := time.ParseDuration(text)
	switch {
	case name == string(loop.ReasonTimeout) && noTime == nil:
		return brief.Clock(d)
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
		return text
	case name == "budget.cost":
		return brief.Money(f)
	}
	return brief.Score(f)
}

// quantity writes a bound of a condition.
func quantity(unit loop.Unit, f float64) string {
	switch unit {
	case loop.UnitSeconds:
		return brief.Clock(time.Duration(f * float64(time.Second)))
	case loop.UnitCost:
		return brief.Money(f)
	}
	return brief.Score(f)
}

// conditionText returns the values that a condition saw.
func conditionText(c loop.ConditionRecord, of *progress.Step) string {
	var words, notes []string
	if c.Expr != "" {
		words = append(words, c.Expr+":")
	}
	compound := c.Value == "" && c.Note == "" && strings.HasPrefix(c.Name, "stop_when") // its parts, which follow, have the values
	if compound && c.Expr != "" {
		words[0] = c.Expr
	} else {
		words = append(words, cmp.Or(figure(c.Name, c.Value), "no value"))
	}
	switch {
	case c.Name == "exit_loop" && c.Threshold != "":
		who := c.Threshold
		if c.Who != nil && len(c.Who) == 0 {
			who = "no step"
		}
		words = append(words, "("+who+" may)")
	case isLimit(c.Name) && c.Bound != nil:
		limit := quantity(c.Unit, *c.Bound)
		if whole := wholeLimit(c.Name, of); whole != "" {
			limit = whole
			notes = append(notes, brief.Percent(of.Loop.Plan.Share())+" is kept for the finalizer")
		}
		if c.Name == "budget.cost" && of != nil && of.Usage().Unknown {
			words[len(words)-1] += " or more"
		}
		words[len(words)-1] += " of " + limit
	case c.Circles != nil:
		words[len(words)-1] = circlesText(c.Circles)
	case c.Threshold != "":
		words[len(words)-1] += ", wanted " + c.Threshold
	}
	if c.Holds && !c.Fired {
		words = append(words, "(holds)")
	}
	if c.Note != "" {
		first, rest, _ := strings.Cut(c.Note, " ")
		notes = append(notes, strings.TrimSpace(figure(c.Name, first)+" "+rest))
	}
	if len(notes) > 0 {
		words = append(words, "("+strings.Join(notes, "; ")+")")
	}
	return strings.Join(words, " ")
}

// circlesText returns how often the last result was repeated, and how often two results alternated, with the limits that end
// the loop.
func circlesText(c *loop.Circles) string {
	return fmt.Sprintf("the last result came %d of %d times in a row, two in turns %d of %d times", c.Repeats, c.MaxRepeats, c.Swings,
		c.MaxSwings)
}
