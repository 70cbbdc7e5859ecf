// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"fmt"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// Trend returns a loop's trend in English, such as "↗ Improving".
func Trend(l *progress.Loop) string {
	switch f := l.Forecast(); f.Trend {
	case loop.Improving:
		return "↗ Improving"
	case loop.Plateau:
		return "→ Plateau"
	case loop.Regressing:
		return "↘ Regressing"
	case loop.Oscillating:
		return "↕ Oscillating"
	}
	if l.Plan.Score == nil {
		return "none: the loop is not scored"
	}
	return "too early to say"
}

// Estimate returns in English how many iterations of a loop remain, such as "2 more iterations (~4m 30s), until
// converged", without the running one. If nothing can be predicted, it says so and names the limit if there is one.
func Estimate(l *progress.Loop, now time.Duration) string {
	if l.Stop != nil {
		return "done"
	}
	f, cur := l.Forecast(), l.Current()
	number := 0
	if cur != nil {
		number = cur.Number
	}
	if !f.Predictable || f.Until == "" {
		if limit := int(min(l.Plan.MaxIterations, 1<<30)); limit > 0 {
			if limit <= number {
				return f.Note + "; this is the last iteration"
			}
			return fmt.Sprintf("%s; at most %s", f.Note, more(limit-number))
		}
		return f.Note
	}
	r := ahead(l, &f, now)
	s := more(r.Iterations)
	if r.Low != r.High {
		s += fmt.Sprintf(" (%d to %d)", r.Low, r.High)
	}
	if r.Left >= time.Second {
		s += ", ~" + brief.Clock(r.Left)
	}
	return s + ", until " + strings.ReplaceAll(string(f.Until), "_", " ")
}

func more(n int) string {
	switch n {
	case 0:
		return "none after this iteration"
	case 1:
		return "1 more iteration"
	}
	return fmt.Sprintf("%d more iterations", n)
}

// ahead returns the remaining iterations by a forecast.
func ahead(l *progress.Loop, f *loop.Forecast, now time.Duration) *Range {
	r := &Range{Iterations: f.Iterations, Low: f.Low, High: f.High}
	cur := l.Current()
	running := cur != nil && cur.Status == progress.StatusRunning
	if running && cur.Provisional == nil { // it is one of them
		r.Low, r.Iterations, r.High = max(0, r.Low-1), max(0, r.Iterations-1), max(0, r.High-1)
	}
	r.Left = f.Time * time.Duration(r.Iterations)
	if running {
		r.Left += max(0, f.Time-cur.Took(now))
	}
	return r
}
