// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/progress/backtest"
)

// Print writes a table with a line for each policy. run is the name of the run for the commands that Print suggests.
func Print(out io.Writer, rec *backtest.Recording, rows []Row, run string) error {
	asked, cached := false, false
	trees := slices.ContainsFunc(rows, func(r Row) bool { return r.Tree != "" })
	for _, o := range rec.Outcomes {
		asked, cached = asked || o.Usage.Calls > 0, cached || o.Usage.CachedTokens > 0
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "policy\tstops after\treason\tresult\tsaves iterations\tsteps\ttime")
	if asked {
		fmt.Fprint(w, "\ttokens\tcost\tcost then")
	}
	if cached {
		fmt.Fprint(w, "\tfrom cache")
	}
	if trees {
		fmt.Fprint(w, "\tfiles")
	}
	fmt.Fprintln(w)
	for i := range rows {
		r := &rows[i]
		if r.Result.Unknown {
			fmt.Fprintf(w, "%s\tmore than %d\t%s\t\n", r.Policy, r.Result.Iterations, r.Result.Note)
			continue
		}
		stop := r.Result.Stop
		fmt.Fprintf(w, "%s\t%d\t%s\t%s", r.Policy, stop.Iteration, stop.Reason, resultOf(stop))
		fmt.Fprintf(w, "\t%d\t%d\t%s", r.Result.SavedIterations, r.Result.SavedSteps, progress.Short(time.Duration(r.Result.SavedTime)))
		if asked {
			fmt.Fprintf(w, "\t%d\t%s\t%s", r.Result.SavedTokens, term.Cost(r.Result.SavedCost), term.Cost(r.Result.Used.Cost))
		}
		if cached {
			fmt.Fprintf(w, "\t%s", cacheOf(&r.Result.Used))
		}
		if trees {
			fmt.Fprintf(w, "\t%s", r.Tree[:min(12, len(r.Tree))])
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil || !trees {
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

// cacheOf returns the share of input tokens that came from the provider's cache, and what the cache saved: 62%, 0.41 saved.
func cacheOf(u *loop.Usage) string {
	if u.InputTokens <= 0 {
		return ""
	}
	s := fmt.Sprintf("%d%%", 100*u.CachedTokens/u.InputTokens)
	if u.CacheSaved != 0 {
		s += fmt.Sprintf(", %.4g saved", u.CacheSaved)
	}
	return s
}

// resultOf returns which iteration the result would have come from: best 4 (7.6).
func resultOf(rec *loop.StopRecord) string {
	s := fmt.Sprintf("%s %d", rec.Result.Source, rec.Result.Iteration)
	if rec.BestScore == nil {
		return s
	}
	score := strconv.FormatFloat(*rec.BestScore, 'g', 6, 64)
	if rec.Result.Source == loop.FromBest {
		return fmt.Sprintf("%s (%s)", s, score)
	}
	return fmt.Sprintf("%s, best %d (%s)", s, rec.BestIteration, score)
}

// PrintSweep writes a table with a line for each level.
func PrintSweep(out io.Writer, s *backtest.Sweep) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tsame\tkept\tlost\tunknown\tsaves iterations\ttokens\tcost\n", s.Field)
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
		cost := term.Amount(l.Saved.Cost)
		if l.Saved.Unpriced {
			cost = "unknown"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s%s\n", strconv.FormatFloat(l.Value, 'g', -1, 64), l.Same, l.Kept,
			l.Lost, l.Unknown, l.Saved.Iterations, l.Saved.Tokens, cost, note)
	}
	return w.Flush()
}
