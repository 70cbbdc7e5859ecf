// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
)

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
	for _, line := range append(uncounted(e), prices(e)...) {
		b.WriteString(line + "\n")
	}
}

func expectedCells(e *definition.ExpectedIteration, priced bool) []string {
	cost := func(c *float64) string {
		if c == nil {
			return "unknown"
		}
		return term.Amount(*c)
	}
	cells := []string{strconv.Itoa(e.Requests), strconv.FormatInt(e.InputTokens, 10), strconv.FormatInt(e.CachedTokens, 10),
		strconv.FormatInt(e.OutputTokens, 10)}
	if priced {
		cells = append(cells, cost(e.Cost), cost(e.Uncached))
	}
	return cells
}

// uncounted returns what the estimate leaves out, and which flag adds it.
func uncounted(e *definition.Expected) (lines []string) {
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
