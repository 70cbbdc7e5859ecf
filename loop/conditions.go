// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"strings"
	"time"
)

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
	p.limitRecords(t, reason, add)
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
		p.Score.records(t, reason == ReasonTarget, reason == ReasonConverged && p.converged(t), add)
	}
	p.circleRecords(t, reason, add)
	if p.NotWorth != nil {
		c := ConditionRecord{
			Name: "not_worth", Value: "not predictable", Threshold: fmt.Sprintf("< %s per %s", num(p.NotWorth.Gain),
				p.NotWorth.per()),
			Holds: p.notWorth(t), Fired: reason == ReasonConverged && !p.converged(t),
		}
		near := 0.0
		if t.Worth != nil {
			c.Value, near = num(*t.Worth), ratio(p.NotWorth.Gain, t.Worth)
		}
		add(c, near)
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

// limitRecords lists the time and the budget. What is kept for the finalizer is
// taken off the thresholds.
func (p *Plan) limitRecords(t *Tally, reason StopReason, add func(ConditionRecord, float64)) {
	if p.Timeout > 0 {
		limit, _ := p.deadline()
		active := t.Active - t.FinalActive
		add(ConditionRecord{
			Name: "timeout", Value: active.Round(time.Millisecond).String(), Threshold: "≥ " + limit.String(),
			Holds: p.late(t), Fired: reason == ReasonTimeout, Note: t.TimedOut,
		}, min(float64(active)/float64(limit), nearly))
	} else if t.TimedOut != "" { // a limit from around the loop
		add(ConditionRecord{Name: "timeout", Value: "out of time", Holds: true, Fired: reason == ReasonTimeout,
			Note: t.TimedOut}, 1)
	}
	for _, l := range p.budget(t) {
		if l.name == "" {
			continue
		}
		c := ConditionRecord{
			Name: "budget." + l.name, Value: num(l.used), Threshold: "≥ " + num(l.limit),
			Holds: l.used >= l.limit, Fired: reason == ReasonBudget && l.used >= l.limit,
		}
		if l.name == "cost" && t.CostUnknown {
			c.Note = "some prices are unknown and not counted"
		}
		if n := t.Usage.EstimatedTokens - t.FinalUsage.EstimatedTokens; l.name == "tokens" && n > 0 {
			c.Note = num(float64(n)) + " of them estimated"
		}
		add(c, min(l.used/l.limit, nearly))
	}
	if t.Spent != "" {
		add(ConditionRecord{Name: "budget", Value: "a call was refused", Holds: true, Fired: reason == ReasonBudget,
			Note: t.Spent}, 1)
	}
}

func (p *Plan) circleRecords(t *Tally, reason StopReason, add func(ConditionRecord, float64)) {
	n := p.NoProgress
	if n == nil {
		return
	}
	add(ConditionRecord{
		Name: "no_progress", Value: fmt.Sprintf("same %d, in turns %d", t.Repeats, t.Swings),
		Threshold: fmt.Sprintf("same ≥ %d or in turns ≥ %d", n.repeats(), n.swings()),
		Holds:     n.circling(t), Fired: reason == ReasonNoProgress,
	}, max(float64(t.Repeats-1)/float64(n.repeats()), float64(t.Swings)/float64(n.swings()+1)))
}

func (p *Plan) exitRecord(t *Tally, reason StopReason) ConditionRecord {
	c := ConditionRecord{Name: "exit_loop", Value: "not asked", Threshold: "any step"}
	if p.CanExit != nil {
		c.Threshold = strings.Join(p.CanExit, ", ")
		if len(p.CanExit) == 0 {
			c.Threshold = "nobody"
		}
	}
	if n := len(t.Refused); n > 0 {
		c.Value = fmt.Sprintf("asked by %s, who may not", t.Refused[n-1].By)
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
func (c *Condition) records(name string, truths []truth, i *int, add func(ConditionRecord, float64)) {
	rec := ConditionRecord{Name: name, Expr: c.String()}
	near := 0.0
	if *i < len(truths) {
		t := truths[*i]
		rec.Value, rec.Threshold = t.words()
		rec.Holds, rec.Note, near = t.Holds, t.Note, t.Near
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

// attained words a target that is reached.
func (s *Score) attained(t *Tally) string {
	var parts []string
	if s.Target != nil {
		parts = append(parts, fmt.Sprintf("Score %s %s %s", num(*t.Score), s.sign(), num(*s.Target)))
	}
	if s.DimensionTarget != nil {
		parts = append(parts, fmt.Sprintf("every dimension %s %s", s.sign(), num(*s.DimensionTarget)))
	}
	return strings.Join(parts, ", ")
}

// records lists the target and the convergence.
func (s *Score) records(t *Tally, reached, converged bool, add func(ConditionRecord, float64)) {
	if s.Target != nil {
		c := ConditionRecord{Name: "target", Expr: s.what(), Value: "no score",
			Threshold: s.sign() + " " + num(*s.Target), Note: t.ScoreNote}
		near := 0.0
		if t.Score != nil {
			c.Value, c.Holds, near = num(*t.Score), !s.better(*s.Target, *t.Score), closeness(*t.Score, *s.Target)
		}
		c.Fired = reached
		add(c, min(near, nearly))
	}
	if s.DimensionTarget != nil {
		c := ConditionRecord{Name: "dimension_target", Value: "no dimensions",
			Threshold: "every one " + s.sign() + " " + num(*s.DimensionTarget), Fired: reached}
		near := 0.0
		if worst := s.weakest(t.Dimensions); worst != nil {
			c.Value, near = worst.Name+" "+num(worst.Value), closeness(worst.Value, *s.DimensionTarget)
		} else if len(t.Dimensions) > 0 {
			c.Value, c.Holds = "all of "+fmt.Sprint(len(t.Dimensions)), true
		}
		add(c, min(near, nearly))
	}
	if s.MinDelta == nil && s.MinDeltaPercent == nil {
		return
	}
	c := ConditionRecord{Name: "converged", Expr: s.what(), Value: "N/A", Holds: s.converged(t), Fired: converged}
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
	if rec.Noise > 0 {
		parts = append(parts, "≤ "+num(rec.Noise)+" (the judge's noise)")
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
