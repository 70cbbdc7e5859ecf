// SPDX-License-Identifier: Apache-2.0

// Package check reports the worst case of a run of a definition.
package check

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/notify"
	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// loopReport describes how one loop can end.
type loopReport struct {
	Name  string               `json:"name"`
	Stops []definition.StopWay `json:"stops"`
}

// agentReport is the worst case of one agent.
type agentReport struct {
	Name  string          `json:"name"`
	Type  definition.Type `json:"type"`
	Depth int             `json:"depth"`
	definition.AtMost
}

// worstReport is the worst case of the run. A null value is unlimited or unknown.
type worstReport struct {
	Total  definition.AtMost `json:"total"`
	Agents []agentReport     `json:"agents"`
}

// Report is the output of refrain check --json.
type Report struct {
	File  string `json:"file"`
	Name  string `json:"name,omitzero"`
	Valid bool   `json:"valid"`
	// NeedsRequest is the reason why a run needs a request of its user; empty if a run needs none.
	NeedsRequest string              `json:"needs_request,omitzero"`
	Problems     definition.Problems `json:"problems"`
	Loops        []loopReport        `json:"loops,omitzero"`
	Worst        *worstReport        `json:"worst,omitzero"`
	// Notify says who is notified of which events, by the variables with the addresses.
	Notify definition.Notify `json:"notify,omitzero"`
	// Expected is the expected cost of the iterations; nil if no agent asks a model.
	Expected *definition.Expected `json:"expected,omitzero"`
	// Schedules has the most that each schedule of the definition can use within 24 hours.
	Schedules []Day `json:"schedules,omitzero"`
}

func loopReports(def *definition.Definition, worst *definition.WorstCase) []loopReport {
	var loops []loopReport
	for a := range def.Root.All {
		if a.Type == definition.TypeLoop {
			loops = append(loops, loopReport{a.Name, worst.Stops(a)})
		}
	}
	return loops
}

func report(worst *definition.WorstCase) *worstReport {
	r := &worstReport{Total: worst.Total}
	for _, a := range worst.Agents {
		r.Agents = append(r.Agents, agentReport{a.Agent.Name, a.Agent.Type, a.Depth, a.AtMost})
	}
	return r
}

// ReportOf returns the report about a definition.
func ReportOf(file string, def *definition.Definition, worst *definition.WorstCase, expected *definition.Expected, days []Day,
	problems definition.Problems) Report {
	if len(expected.Loops) == 0 {
		expected = nil
	}
	return Report{
		File: file, Name: def.Name, Valid: true, NeedsRequest: def.NeedsRequest(), Problems: append(definition.Problems{}, problems...),
		Loops: loopReports(def, worst), Worst: report(worst), Notify: def.Notify, Expected: expected, Schedules: days,
	}
}

// Print writes the worst case of a run for people.
func Print(e *term.Env, w io.Writer, file string, def *definition.Definition, worst *definition.WorstCase, expected *definition.Expected,
	days []Day) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s is valid\n", file, def.Name)
	if why := def.NeedsRequest(); why != "" {
		fmt.Fprintf(&b, "A run needs a request of its user: %s. Write: %s \"REQUEST\"\n", why, e.Hint("refrain run "+file))
	}
	for _, l := range loopReports(def, worst) {
		fmt.Fprintf(&b, "\n%s ends\n", l.Name)
		for _, s := range l.Stops {
			fmt.Fprintf(&b, "  %s\n", s.Text)
		}
	}
	if len(def.Notify) > 0 {
		fmt.Fprintf(&b, "\nIt notifies %s\n", def.Notify)
		for _, name := range slices.Sorted(maps.Keys(def.Notify)) {
			if err := notify.CheckAddress(e.Getenv, name); err != nil {
				fmt.Fprintf(&b, "  here it cannot: %s: %v\n", name, err)
			}
		}
	}
	b.WriteString("\nAt the most\n")
	table(&b, worst)
	if len(days) > 0 {
		b.WriteString("\nSchedules in " + schedule.File + "\n")
	}
	for _, d := range days {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	printExpected(&b, expected)
	_, err := io.WriteString(w, b.String())
	return err
}

// table writes the worst case of each agent, including the agents in it.
func table(b *strings.Builder, worst *definition.WorstCase) {
	asks := worst.Total.Calls > 0
	rows := [][]string{{"", "runs", "time"}}
	if asks {
		rows = [][]string{{"", "runs", "turns", "requests", "tokens", "cost", "time"}}
	}
	for _, a := range worst.Agents {
		cells := []string{strings.Repeat("  ", a.Depth) + a.Agent.Name, count(a.Runs)}
		if asks {
			cells = append(cells, modelCells(a.AtMost)...)
		}
		rows = append(rows, append(cells, timeCell(a.AtMost)))
	}
	align(b, rows)
	if !asks {
		return
	}
	b.WriteString("\nA turn asks a model once; a request that fails may be sent again.\n")
	if worst.Total.Tokens.Unbounded() {
		b.WriteString("To count tokens and cost, give --input-tokens and --output-tokens for each request.\n")
		return
	}
	for _, line := range costless(worst) {
		b.WriteString(line + "\n")
	}
}

// align writes rows whose names stand at the left, and the other cells, aligned to the right, after them.
func align(b *strings.Builder, rows [][]string) {
	wide := 0
	for _, cells := range rows {
		wide = max(wide, len([]rune(cells[0])))
	}
	var aligned strings.Builder
	t := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, cells := range rows {
		fmt.Fprintf(t, "%-*s\t%s\t\n", wide, cells[0], strings.Join(cells[1:], "\t"))
	}
	t.Flush()
	for line := range strings.Lines(aligned.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// costless returns why the cost is unknown although the tokens are known.
func costless(worst *definition.WorstCase) []string {
	var nameless, unpriced []string
	for i := range worst.Agents {
		switch a := &worst.Agents[i]; {
		case !a.Unpriced || !a.Cost.Unbounded():
		case a.UnpricedModel == "?":
			nameless = append(nameless, a.Agent.Name)
		case !slices.Contains(unpriced, a.UnpricedModel):
			unpriced = append(unpriced, a.UnpricedModel)
		}
	}
	var lines []string
	if nameless != nil {
		lines = append(lines, fmt.Sprintf("No model is named for %s: to count cost, give --model.",
			strings.Join(nameless, ", ")))
	}
	if unpriced != nil {
		lines = append(lines, fmt.Sprintf("To count cost, add to prices in the file: %s.",
			strings.Join(unpriced, ", ")))
	}
	return lines
}

func modelCells(u definition.AtMost) []string {
	if u.Calls == 0 {
		return []string{"", "", "", ""}
	}
	tokens, cost := "unknown", "unknown"
	if !u.Tokens.Unbounded() {
		tokens = count(u.Tokens)
	}
	if !u.Cost.Unbounded() {
		cost = brief.Money(float64(u.Cost))
	}
	return []string{count(u.Turns), count(u.Calls), tokens, cost}
}

// count returns a number as text; large numbers are rounded.
func count(n definition.Bound) string {
	switch {
	case n.Unbounded():
		return "unbounded"
	case n < 1e7:
		return strconv.FormatFloat(float64(n), 'f', 0, 64)
	}
	return strconv.FormatFloat(float64(n), 'g', 3, 64)
}

func timeCell(u definition.AtMost) string {
	d, ok := u.Time()
	switch {
	case !ok && u.Seconds.Unbounded():
		return "unbounded"
	case !ok:
		return "centuries"
	case d == 0:
		return ""
	}
	return brief.Clock(d)
}

// shownIterations is the number of iterations at the beginning that have a line each. One line stands for all later iterations.
const shownIterations = 3

// printExpected writes the expected cost of the iterations for people.
func printExpected(b *strings.Builder, e *definition.Expected) {
	if len(e.Loops) == 0 {
		return
	}
	b.WriteString("\nExpected by iteration, in tokens\n")
	var rows [][]string
	row := func(name string, cells ...string) { rows = append(rows, append([]string{name}, cells...)) }
	priced := slices.ContainsFunc(e.Loops, func(l definition.ExpectedLoop) bool { return l.Total.Cost != nil })
	cells := func(one *definition.ExpectedIteration) []string { return expectedCells(one, priced) }
	head := []string{"requests", "input", "from cache", "output", "cost", "without cache"}
	if !priced {
		head = head[:4]
	}
	row("         ", head...) // as wide as "  all 500"
	for _, l := range e.Loops {
		row(l.Name, make([]string, len(head))...)
		for i := range l.Iterations {
			if n := len(l.Iterations); i < shownIterations || i == n-1 {
				row(fmt.Sprintf("  %d", i+1), cells(&l.Iterations[i])...)
			} else if i == shownIterations {
				row("  …", make([]string, len(head))...)
			}
		}
		if n := len(l.Iterations); n > 1 || l.Total.Requests > l.Iterations[0].Requests {
			name := fmt.Sprintf("  all %d", n)
			if l.More {
				name = fmt.Sprintf("  first %d", n)
			}
			row(name, cells(&l.Total)...)
		}
	}
	align(b, rows)
	b.WriteString("\nThis is an estimate from the texts of the file: a token is taken for 4 characters, and\n" +
		"an iteration for shorter than the 5 minutes for which providers keep what they have read.\n")
	for _, line := range append(uncountedLines(e), prices(e)...) {
		b.WriteString(line + "\n")
	}
}

func expectedCells(e *definition.ExpectedIteration, priced bool) []string {
	cells := []string{strconv.Itoa(e.Requests), strconv.FormatInt(e.InputTokens, 10), strconv.FormatInt(e.CachedTokens, 10),
		strconv.FormatInt(e.OutputTokens, 10)}
	if priced {
		cells = append(cells, term.Cost(e.Cost), term.Cost(e.Uncached))
	}
	return cells
}

// uncountedLines returns what the estimate leaves out, and which flag adds it.
func uncountedLines(e *definition.Expected) (lines []string) {
	for _, kind := range []struct {
		what  definition.UncountedKind
		words string
	}{
		{definition.UncountedRequest, "the user's request"},
		{definition.UncountedAnswers, "what the models answer: give --output-tokens"},
		{definition.UncountedValue, "the values of %s"},
		{definition.UncountedTools, "the declarations of the tools of %s"},
		{definition.UncountedTurns, "what %s asks after a call of a tool"},
		{definition.UncountedIterations, "the iterations of %s after the first, because it has no max_iterations"},
		{definition.UncountedAgent, "what %s asks by itself"},
		{definition.UncountedPrice, "the price of %s"},
	} {
		var names []string
		for _, u := range e.Uncounted {
			if u.What == kind.what {
				names = append(names, u.Name)
			}
		}
		switch {
		case names == nil:
		case strings.Contains(kind.words, "%s"):
			lines = append(lines, "Unknown: "+fmt.Sprintf(kind.words, strings.Join(names, ", "))+".")
		default:
			lines = append(lines, "Unknown: "+kind.words+".")
		}
	}
	return lines
}

// prices returns the sources of the prices that the file does not have.
func prices(e *definition.Expected) (lines []string) {
	for _, p := range e.Prices {
		if p.Date != "" {
			lines = append(lines, fmt.Sprintf("%s: list price of %s, in US dollars, from %s.", p.Model, p.Date, p.Source))
		}
	}
	if lines != nil {
		lines = append(lines, "The list is part of refrain; prices in the file replace it. Budgets need prices in the file.")
	}
	return slices.Clip(lines)
}
