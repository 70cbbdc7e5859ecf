// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// LimitName names a time limit as the file gives it.
func LimitName(l, step *definition.Agent, kind string, d time.Duration) string {
	switch kind {
	case loop.Timeout:
		if step.Step != nil && step.Step.AdaptiveTimeout != nil {
			return fmt.Sprintf("adaptive_timeout of %s: %s", step.Name, brief.Clock(d))
		}
		return fmt.Sprintf("timeout of %s: %s", step.Name, brief.Clock(d))
	case loop.IterationTimeout:
		return fmt.Sprintf("iteration_timeout of %s: %s%s", l.Name, brief.Clock(time.Duration(l.Loop.IterationTimeout)),
			byPreset(l, "iteration_timeout"))
	}
	return fmt.Sprintf("timeout of %s: %s%s", l.Name, brief.Clock(time.Duration(l.Loop.Timeout)), byPreset(l, "timeout"))
}

// byPreset names the preset that a time limit comes from, if the file does not give the limit.
func byPreset(l *definition.Agent, field string) string {
	if _, given := l.FieldPosition(field); given {
		return ""
	}
	if _, given := l.FieldPosition("timeouts"); given {
		return fmt.Sprintf(" (timeouts: %s)", l.Loop.Timeouts)
	}
	return " (the default)"
}

// guard names what ended a loop, in the words of the file.
func (w *Walked) By(l *definition.Agent) string {
	if w.Stop == nil {
		return w.Guard
	}
	s := l.Loop
	switch w.Stop.Reason {
	case loop.ReasonMaxIterations:
		given := ""
		if _, ok := l.FieldPosition("max_iterations"); !ok {
			given = " (the default)"
		}
		return fmt.Sprintf("max_iterations: %d%s", s.MaxIterations, given)
	case loop.ReasonTimeout:
		return fmt.Sprintf("timeout: %s%s", s.Timeout, byPreset(l, "timeout"))
	case loop.ReasonTarget:
		return "score.target"
	case loop.ReasonConverged:
		switch {
		case s.Score == nil || !w.fired("converged"):
			return "not_worth"
		case s.Score.MinDeltaPercent == nil:
			return "score.min_delta: " + study.Decimal(*s.Score.MinDelta)
		case s.Score.MinDelta == nil:
			return "score.min_delta_percent: " + study.Decimal(*s.Score.MinDeltaPercent)
		}
		return "score.min_delta, min_delta_percent"
	case loop.ReasonNoProgress:
		return "no_progress"
	case loop.ReasonCondition:
		return "stop_when"
	case loop.ReasonBudget:
		return w.budget(s.Budget)
	case loop.ReasonError:
		return w.failure(l)
	}
	if w.Stop.By != "" {
		return string(w.Stop.Reason) + " by " + w.Stop.By
	}
	return string(w.Stop.Reason)
}

func (w *Walked) fired(name string) bool {
	return slices.ContainsFunc(w.Stop.Conditions, func(c loop.ConditionRecord) bool { return c.Name == name && c.Fired })
}

func (w *Walked) budget(b *loop.Budget) string {
	switch {
	case b == nil:
		return "a budget around"
	case w.fired("budget.tokens"), b.Calls == 0 && b.Cost == nil:
		return fmt.Sprintf("budget.tokens: %d", b.Tokens)
	case w.fired("budget.calls"), b.Tokens == 0 && b.Cost == nil:
		return fmt.Sprintf("budget.calls: %d", b.Calls)
	case w.fired("budget.cost"), b.Tokens == 0 && b.Calls == 0:
		return "budget.cost: " + study.Decimal(*b.Cost)
	}
	return "budget"
}

func (w *Walked) failure(l *definition.Agent) string {
	switch f := w.Fatal; {
	case f != nil && f.Kind == loop.StateTooLarge:
		return fmt.Sprintf("state_limit: %s", Size(l.Loop.StateLimit))
	case f != nil && f.Running > 0:
		return fmt.Sprintf("max_consecutive_failures: %d", l.Loop.MaxConsecutiveFailures)
	}
	if l.OnError == "" {
		return "on_error: stop (the default)"
	}
	return "on_error: stop"
}

// Size writes a number of bytes for people.
func Size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// Ending says how a loop ended: "max_iterations after 5 iterations and 3m; hands back the best,
// iteration 2".
func (w *Walked) Ending() string {
	if w.far {
		return fmt.Sprintf("still running after %s and %s", brief.Count(w.Iterations, "iteration"), brief.Clock(w.Elapsed))
	}
	if w.Stop == nil {
		return fmt.Sprintf("cut off after %s and %s", brief.Count(w.Iterations, "iteration"), brief.Clock(w.Elapsed))
	}
	s := fmt.Sprintf("%s after %s", w.Stop.Reason, brief.Count(w.Stop.Iteration, "iteration"))
	if w.Elapsed > 0 {
		s += " and " + brief.Clock(w.Elapsed)
	}
	if w.Stop.Reason == loop.ReasonTimeout && w.kept > 0 && w.Elapsed < w.limit {
		s += fmt.Sprintf(" (%.0f%% of %s is kept for the finalizer)", w.kept*100, brief.Clock(w.limit))
	}
	return s + "; hands back " + handsBack(w.Stop)
}

func handsBack(rec *loop.StopRecord) string {
	switch r := rec.Result; r.Source {
	case loop.FromFinalizer:
		return "what the finalizer says"
	case loop.FromBest:
		return fmt.Sprintf("the best, iteration %d", r.Iteration)
	case loop.FromLast:
		return fmt.Sprintf("the last, iteration %d", r.Iteration)
	}
	return fmt.Sprintf("what iteration %d has left", rec.Result.Iteration)
}
