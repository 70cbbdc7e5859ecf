// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"slices"
	"strings"
)

// record writes down why the loop stops and what it hands back.
func (p *Plan) record(t *Tally, reason StopReason) *StopRecord {
	r := &StopRecord{
		Loop: p.Name, Reason: reason,
		Iterations: t.Complete, Iteration: t.Iteration,
		Result:    p.result(t, reason),
		BestScore: t.Best, BestIteration: t.BestIteration,
		Usage: t.Usage, Elapsed: t.Active,
		Failures: t.Failures, Refusals: t.Refusals, Refused: slices.Clone(t.Refused),
		ScoreNote: t.ScoreNote, FinalizerFailure: t.FinalizerFailure,
	}
	switch {
	case reason == ReasonError && t.Fatal != nil:
		r.By = t.Fatal.Step
	case t.Exit != nil && reason == t.Exit.reason():
		r.By, r.Scope = t.Exit.By, t.Exit.Scope
	}
	r.Detail = p.detail(t, reason)
	r.Conditions, r.Nearest = p.conditions(t, reason)
	return r
}

// result is the first source that there is.
func (p *Plan) result(t *Tally, reason StopReason) Result {
	finalizes := p.Finalizer() >= 0 && reason != ReasonCanceled && reason != ReasonError
	switch {
	case finalizes && t.FinalizerFailure == "":
		return Result{FromFinalizer, t.Iteration}
	case t.Best != nil:
		return Result{FromBest, t.BestIteration}
	case t.LastComplete > 0:
		return Result{FromLast, t.LastComplete}
	}
	return Result{FromPartial, t.Iteration}
}

// detail words the reason for people.
func (p *Plan) detail(t *Tally, reason StopReason) string {
	switch reason {
	case ReasonCanceled:
		return t.Canceled
	case ReasonError:
		return p.failure(t)
	case ReasonCondition:
		return p.StopWhen.String()
	case ReasonTarget:
		return fmt.Sprintf("Score %s %s %s", num(*t.Score), p.Score.sign(), num(*p.Score.Target))
	case ReasonConverged:
		s := convergence + "Improvement < " + t.FlatBy
		if n := p.Score.patience(); n > 1 {
			s += fmt.Sprintf(", %d times running", n)
		}
		return s
	case ReasonMaxIterations:
		return "limit of " + plural(p.MaxIterations, "iteration")
	}
	if t.Exit.Reason == "" {
		return "no reason given by " + t.Exit.By
	}
	return t.Exit.Reason
}

func (p *Plan) failure(t *Tally) string {
	f := t.Fatal
	if f == nil {
		return "the plan has no step to run"
	}
	s := f.Message
	if f.Kind != "" && f.Kind != Failed {
		s = f.Kind + ": " + s
	}
	if f.Step != "" {
		s = f.Step + ": " + s
	}
	if f.Running > 0 {
		s = fmt.Sprintf("%s failed one after another, the last: %s", plural(f.Running, "step"), s)
	}
	return s
}

// conditions lists every condition of the plan, and names the one that came
// closest without being the reason.
func (p *Plan) conditions(t *Tally, reason StopReason) (recs []ConditionRecord, nearest string) {
	best := 0.0
	add := func(c ConditionRecord, near float64) {
		if c.Holds {
			near = 1
		}
		if !c.Fired && near > best {
			best, nearest = near, c.Name
		}
		recs = append(recs, c)
	}
	add(p.exitRecord(t, reason), 0)
	if n := p.MaxConsecutiveFailures; n > 0 {
		add(ConditionRecord{
			Name: "max_consecutive_failures", Value: fmt.Sprint(t.FailuresRunning), Threshold: fmt.Sprintf("≥ %d", n),
			Holds: t.FailuresRunning >= n, Fired: t.Fatal != nil && t.Fatal.Running > 0,
		}, float64(t.FailuresRunning)/float64(n))
	}
	if p.StopWhen != nil {
		i := 0
		p.StopWhen.records("stop_when", t.Truths, &i, func(c ConditionRecord, near float64) {
			root := c.Name == "stop_when"
			c.Fired = root && reason == ReasonCondition
			if root {
				add(c, near)
			} else {
				recs = append(recs, c)
			}
		})
	}
	if p.Score != nil {
		p.Score.records(t, reason, add)
	}
	if n := p.MaxIterations; n > 0 {
		ran := t.Iteration
		if t.Ended.Number == 0 {
			ran = max(0, ran-1)
		}
		add(ConditionRecord{
			Name: "max_iterations", Value: fmt.Sprint(ran), Threshold: fmt.Sprintf("≥ %d", n),
			Holds: uint(ran) >= n, Fired: reason == ReasonMaxIterations,
		}, float64(ran)/float64(n))
	}
	return recs, nearest
}

func (p *Plan) exitRecord(t *Tally, reason StopReason) ConditionRecord {
	c := ConditionRecord{Name: "exit_loop", Value: "not asked", Threshold: "any step"}
	if p.CanExit != nil {
		c.Threshold = strings.Join(p.CanExit, ", ")
		if len(p.CanExit) == 0 {
			c.Threshold = "nobody"
		}
	}
	if t.Exit != nil {
		c.Value = "asked by " + t.Exit.By
		c.Holds = true
		c.Fired = reason == t.Exit.reason()
	}
	if t.Refusals > 0 {
		c.Note = fmt.Sprintf("%s refused", plural(t.Refusals, "exit"))
	}
	return c
}

// records lists the condition and its parts.
func (c *Condition) records(name string, truths []Truth, i *int, add func(ConditionRecord, float64)) {
	rec := ConditionRecord{Name: name, Expr: c.String()}
	near := 0.0
	if *i < len(truths) {
		t := truths[*i]
		rec.Value, rec.Threshold, rec.Holds, rec.Note, near = t.Value, t.Threshold, t.Holds, t.Note, t.Near
		if c.For > 1 {
			rec.Note = strings.TrimPrefix(rec.Note+fmt.Sprintf("; held for %d of %d iterations", t.Run, c.For), "; ")
		}
	} else {
		rec.Note = "not looked at yet"
	}
	*i++
	add(rec, near)
	for n := range c.Any {
		c.Any[n].records(fmt.Sprintf("%s.any[%d]", name, n), truths, i, add)
	}
	for n := range c.All {
		c.All[n].records(fmt.Sprintf("%s.all[%d]", name, n), truths, i, add)
	}
	if c.Not != nil {
		c.Not.records(name+".not", truths, i, add)
	}
}

func (s *Score) sign() string {
	if s.LowerIsBetter {
		return "≤"
	}
	return "≥"
}

// records lists the target and the convergence.
func (s *Score) records(t *Tally, reason StopReason, add func(ConditionRecord, float64)) {
	if s.Target != nil {
		c := ConditionRecord{Name: "target", Expr: s.what(), Value: "no score", Threshold: s.sign() + " " + num(*s.Target), Note: t.ScoreNote}
		near := 0.0
		if t.Score != nil {
			c.Value, c.Holds, near = num(*t.Score), s.reached(*t.Score), closeness(*t.Score, *s.Target)
		}
		c.Fired = reason == ReasonTarget
		add(c, min(near, nearly))
	}
	if s.MinDelta == nil && s.MinDeltaPercent == nil {
		return
	}
	c := ConditionRecord{Name: "converged", Expr: s.what(), Value: "N/A", Holds: s.converged(t), Fired: reason == ReasonConverged}
	var parts []string
	var part float64 // how close the last improvement came to a threshold
	rec := t.Ended
	if rec.Delta != nil {
		c.Value = signed(*rec.Delta)
		if rec.Percent != nil {
			c.Value += fmt.Sprintf(" (%.1f%%)", *rec.Percent)
		}
	}
	if s.MinDelta != nil {
		parts = append(parts, "< "+num(*s.MinDelta))
		part = max(part, ratio(*s.MinDelta, rec.Delta))
	}
	if s.MinDeltaPercent != nil {
		parts = append(parts, "< "+num(*s.MinDeltaPercent)+"%")
		part = max(part, ratio(*s.MinDeltaPercent, rec.Percent))
	}
	c.Threshold = strings.Join(parts, " or ")
	if n := s.patience(); n > 1 {
		c.Threshold += fmt.Sprintf(", %d times running", n)
		c.Note = fmt.Sprintf("%d of %d", min(t.Flat, n), n)
	}
	if t.Flat > 0 {
		part = 0 // the last one is counted already
	}
	add(c, min((float64(t.Flat)+part)/float64(s.patience()), nearly))
}

func (s *Score) what() string {
	if s.Expr != "" {
		return s.Expr
	}
	return "state." + s.Key
}

// ratio is how close a value above the threshold is to it.
func ratio(threshold float64, v *float64) float64 {
	if v == nil || *v <= 0 || threshold > *v {
		return 0
	}
	return threshold / *v
}
