// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress/backtest"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// Print writes a table with a line for each policy. run is the name of the run for the commands that Print suggests.
func Print(out io.Writer, rec *backtest.Recording, rows []Row, run string) error {
	asked, cached := false, false
	trees := slices.ContainsFunc(rows, func(r Row) bool { return r.Tree != "" })
	for _, o := range rec.Outcomes {
		asked, cached = asked || o.Usage.Calls > 0, cached || o.Usage.CachedTokens > 0
	}
	table := [][]string{{"policy", "stops after", "reason", "result", "saves iterations", "steps", "time"}}
	const reason, result, steps, took = 2, 3, 5, 6
	head, drop := &table[0], []int{steps, took}
	add := func(on bool, names ...string) {
		for _, name := range names {
			if on {
				drop = append([]int{len(*head)}, drop...)
				*head = append(*head, name)
			}
		}
	}
	add(asked, "tokens", "cost", "cost then")
	add(cached, "from cache")
	add(trees, "files")
	for i := range rows {
		r := &rows[i]
		if r.Result.Unknown {
			table = append(table, []string{r.Policy, fmt.Sprintf("more than %d", r.Result.Iterations), r.Result.Note})
			continue
		}
		stop := r.Result.Stop
		cells := []string{r.Policy, strconv.Itoa(stop.Iteration), string(stop.Reason), resultOf(stop), strconv.Itoa(r.Result.SavedIterations),
			strconv.Itoa(r.Result.SavedSteps), savedTime(time.Duration(r.Result.SavedTime))}
		if asked {
			cells = append(cells, brief.Whole(r.Result.SavedTokens), term.Cost(r.Result.SavedCost), term.Cost(r.Result.Used.Cost))
		}
		if cached {
			cells = append(cells, cacheOf(&r.Result.Used))
		}
		if trees {
			cells = append(cells, r.Tree[:min(12, len(r.Tree))])
		}
		table = append(table, cells)
	}
	if err := term.PrintTable(out, table, term.Layout{Drop: append(drop, reason), Cut: []int{0, reason, result}}); err != nil {
		return err
	}
	if err := printLimits(out, rec, rows); err != nil || !trees {
		return err
	}
	seen := make(map[int]bool)
	for i := range rows {
		n := rows[i].From
		if n == 0 || seen[n] {
			continue
		}
		seen[n] = true
		if _, err := fmt.Fprintf(out, "Files of iteration %d: refrain show %s --diff 0..%d --files\n", n, run, n); err != nil {
			return err
		}
	}
	return nil
}

// printLimits says by which rules the run was made, if they are not those of today, and which answers a back-test does not have.
func printLimits(out io.Writer, rec *backtest.Recording, rows []Row) error {
	if now, older := backtest.Today(rec.Plan); older {
		if _, err := fmt.Fprintf(out, "The run was made by version %d of the rules about a judge's scores; today's rules are version %d.\n",
			rec.Plan.Version, now.Version); err != nil {
			return err
		}
	}
	for i := range rows {
		if n := rows[i].Result.Unasked; n > 0 {
			if _, err := fmt.Fprintf(out, "%s: the judge would have been asked again about the best after %s; the run has no such answer, so "+
				"the mean stays as it was.\n", rows[i].Policy, brief.Count(n, "rollback")); err != nil {
				return err
			}
		}
	}
	return nil
}

// cacheOf returns the share of input tokens that came from the provider's cache, and what the cache saved: 62%, 0.41 saved.
func cacheOf(u *loop.Usage) string {
	if u.InputTokens <= 0 {
		return ""
	}
	s := brief.Percent(float64(u.CachedTokens) / float64(u.InputTokens))
	if u.CacheSaved != 0 {
		s += ", " + brief.Money(u.CacheSaved) + " saved"
	}
	return s
}

// resultOf returns which iteration the result would have come from: best 4 (7.6).
func resultOf(rec *loop.StopRecord) string {
	s := fmt.Sprintf("%s %d", rec.Result.Source, rec.Result.Iteration)
	if rec.BestScore == nil {
		return s
	}
	score := brief.Score(*rec.BestScore) + brief.OffBy(rec.BestError)
	if rec.Result.Source == loop.FromBest {
		return fmt.Sprintf("%s (%s)", s, score)
	}
	return fmt.Sprintf("%s, best %d (%s)", s, rec.BestIteration, score)
}

// PrintSweep writes a table with a line for each level.
func PrintSweep(out io.Writer, s *backtest.Sweep) error {
	table := [][]string{{s.Field, "same", "kept", "lost", "unknown", "saves iterations", "tokens", "cost"}}
	const same, unknown, tokens = 1, 4, 6
	for i := range s.Levels {
		l := &s.Levels[i]
		note := ""
		if s.Now != nil && l.Value == *s.Now {
			note = "  now"
		}
		if i == s.Safe {
			note += "  saves most without a loss"
			if l.Unknown > 0 {
				note += " that is known"
			}
		}
		cost := brief.Money(l.Saved.Cost)
		if l.Saved.Unpriced {
			cost = "unknown"
		}
		table = append(table, []string{brief.Number(l.Value, 64), strconv.Itoa(l.Same), strconv.Itoa(l.Kept),
			strconv.Itoa(l.Lost), strconv.Itoa(l.Unknown), strconv.Itoa(l.Saved.Iterations), brief.Whole(l.Saved.Tokens), cost + note})
	}
	return term.PrintTable(out, table, term.Layout{Drop: []int{tokens, same, unknown}})
}

// savedTime writes the time that a policy saves: 0 as the other columns have it, and a time that it adds with its sign.
func savedTime(d time.Duration) string {
	switch {
	case d > -time.Millisecond/2 && d < time.Millisecond/2:
		return "0"
	case d < 0:
		return "-" + brief.Clock(-d)
	}
	return brief.Clock(d)
}
