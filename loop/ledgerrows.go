// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// rows returns one row for every condition of the plan. Stop records and ledgers are built from them.
func (p *Plan) rows(t *Tally, reason StopReason) (rows []Row) {
	add := func(r Row) {
		if r.Holds {
			r.Near = 1
		}
		rows = append(rows, r)
	}
	add(p.exitRow(t, reason))
	if n := p.MaxConsecutiveFailures; n > 0 {
		add(Row{ConditionRecord: ConditionRecord{
			Name: "max_consecutive_failures", Value: fmt.Sprint(t.FailuresRunning), Threshold: fmt.Sprintf("≥ %d", n),
			Holds: t.FailuresRunning >= n, Fired: t.Fatal != nil && t.Fatal.Running > 0,
		}}.withNumbers(UnitFailures, float64(t.FailuresRunning), float64(n)))
	}
	p.limitRows(t, reason, add)
	if p.StopWhen != nil {
		i := 0
		p.StopWhen.rows("stop_when", t.Truths, &i, func(r Row) {
			r.Fired = r.Name == "stop_when" && reason == ReasonCondition
			add(r)
		})
	}
	if p.Score != nil {
		p.scoreRows(t, reason == ReasonTarget, reason == ReasonConverged && p.isConverged(t), add)
	}
	p.circleRow(t, reason, add)
	if p.NotWorth != nil {
		add(p.worthRow(t, reason))
	}
	if n := p.MaxIterations; n > 0 {
		ran := t.endedIterations()
		add(Row{ConditionRecord: ConditionRecord{
			Name: "max_iterations", Value: fmt.Sprint(ran), Threshold: fmt.Sprintf("≥ %d", n),
			Holds: uint(ran) >= n, Fired: reason == ReasonMaxIterations,
		}}.withNumbers(UnitIterations, float64(ran), float64(n)))
	}
	return rows
}

// withNumbers returns the row with its numbers. Near is have divided by bound.
func (r Row) withNumbers(unit Unit, have, bound float64) Row {
	r.Unit, r.Have, r.Bound, r.Near = unit, &have, &bound, have/bound
	return r
}

// withNear returns the row with Near set to near, but less than 1, because the condition does not hold.
func (r Row) withNear(near float64) Row {
	r.Near = min(near, nearly)
	return r
}

// limitRows adds the rows of the time and of the budget. Their thresholds exclude what is kept for the finalizer.
func (p *Plan) limitRows(t *Tally, reason StopReason, add func(Row)) {
	if p.Timeout > 0 {
		limit, all := p.deadline()
		active := (t.Active - t.FinalActive).Round(time.Millisecond)
		r := Row{ConditionRecord: ConditionRecord{
			Name: "timeout", Value: active.String(), Threshold: "≥ " + limit.String(),
			Holds: p.isOutOfTime(t), Fired: reason == ReasonTimeout, Note: t.TimedOut,
		}, Reserved: (all - limit).Seconds()}.withNumbers(UnitSeconds, active.Seconds(), limit.Seconds())
		add(r.withNear(float64(active) / float64(limit)))
	} else if t.TimedOut != "" { // a limit outside of the loop, such as that of the run
		add(Row{ConditionRecord: ConditionRecord{Name: "timeout", Value: "out of time", Holds: true,
			Fired: reason == ReasonTimeout, Note: t.TimedOut}})
	}
	for _, l := range p.budget(t) {
		if l.unit == "" {
			continue
		}
		r := Row{ConditionRecord: ConditionRecord{
			Name: "budget." + string(l.unit), Value: num(l.used), Threshold: "≥ " + num(l.limit),
			Holds: l.used >= l.limit, Fired: reason == ReasonBudget && l.used >= l.limit,
		}, Reserved: roundDecimals(l.total - l.limit)}.withNumbers(l.unit, l.used, l.limit)
		if l.unit == UnitCost && t.CostUnknown {
			r.Note = "some prices are unknown and not counted"
			if l.used == 0 {
				r.Have, r.Status = nil, ConditionUnknown
			}
		}
		if n := t.Usage.EstimatedTokens - t.FinalUsage.EstimatedTokens; l.unit == UnitTokens && n > 0 {
			r.Note = num(float64(n)) + " of them estimated"
		}
		add(r.withNear(l.used / l.limit))
	}
	if t.Spent != "" {
		add(Row{ConditionRecord: ConditionRecord{Name: "budget", Value: "a call was refused", Holds: true,
			Fired: reason == ReasonBudget, Note: t.Spent}})
	}
}

// circleRow adds the row of NoProgress.
func (p *Plan) circleRow(t *Tally, reason StopReason, add func(Row)) {
	n := p.NoProgress
	if n == nil {
		return
	}
	same, turns := float64(t.Repeats-1)/float64(n.repeats()), float64(t.Swings)/float64(n.swings()+1)
	r := Row{ConditionRecord: ConditionRecord{
		Name: "no_progress", Value: fmt.Sprintf("same result %d×, two in turns %d×", t.Repeats, t.Swings),
		Threshold: fmt.Sprintf("%d× or %d×", n.repeats(), n.swings()),
		Holds:     n.isCircling(&t.repetition), Fired: reason == ReasonNoProgress, Circles: n.circles(&t.repetition),
	}}.withNumbers(UnitTimes, float64(t.Repeats), float64(n.repeats()))
	if t.Swings > 1 { // the first two results are one swing, if they differ
		r = r.withNumbers(UnitTimes, float64(t.Swings), float64(n.swings()))
	}
	r.Near = max(same, turns, 0)
	add(r)
}

// exitRow returns the row that says who may end the loop, and who has asked to.
func (p *Plan) exitRow(t *Tally, reason StopReason) Row {
	r := Row{ConditionRecord: ConditionRecord{Name: "exit_loop", Value: "not asked", Threshold: "any step"}}
	if p.CanExit != nil {
		r.Threshold, r.Who = strings.Join(p.CanExit, ", "), p.CanExit
		if len(p.CanExit) == 0 {
			r.Threshold = "nobody"
		}
	}
	if n := len(t.Refused); n > 0 {
		r.Value = fmt.Sprintf("asked by %s, who may not", t.Refused[n-1].By)
	}
	if t.Exit != nil {
		r.Value = "asked by " + t.Exit.By
		r.Holds = true
		r.Fired = reason == t.Exit.reason()
	}
	if t.Refusals > 0 {
		r.Note = fmt.Sprintf("%s refused", count(t.Refusals, "exit"))
	}
	return r
}

// rows adds the rows of the condition and of its parts. i is the index of the condition in results; rows adds 1 to it for each row.
func (c *Condition) rows(name string, results []conditionResult, i *int, add func(Row)) {
	r := Row{ConditionRecord: ConditionRecord{Name: name, Expr: c.String()}}
	if *i < len(results) {
		t := results[*i]
		r.Value, r.Threshold = t.sides()
		r.Holds, r.Note, r.Near = t.Holds, t.Note, t.Near
		if t.Op != "" {
			r.Unit, r.Have, r.Bound = UnitValue, &t.Left, &t.Right
		} else if t.Note != "" {
			r.Status = ConditionUnknown
		}
		if c.For > 1 {
			r.Unit, r.Have, r.Bound = UnitTimes, new(float64(t.Run)), new(float64(c.For))
			r.Note = strings.TrimPrefix(r.Note+fmt.Sprintf("; held for %d of %d iterations", t.Run, c.For), "; ")
		}
	} else {
		r.Note, r.Status = "not looked at yet", ConditionUnknown
	}
	*i++
	add(r)
	for n := range c.Any {
		c.Any[n].rows(fmt.Sprintf("%s.any[%d]", name, n), results, i, add)
	}
	for n := range c.All {
		c.All[n].rows(fmt.Sprintf("%s.all[%d]", name, n), results, i, add)
	}
	if c.Not != nil {
		c.Not.rows(name+".not", results, i, add)
	}
}

func (s *Score) sign() string {
	if s.LowerIsBetter {
		return "≤"
	}
	return "≥"
}

// scoreRows adds the rows of the target, of the dimensions and of convergence.
func (p *Plan) scoreRows(t *Tally, reached, converged bool, add func(Row)) {
	s := p.Score
	if s.Target != nil {
		r := Row{ConditionRecord: ConditionRecord{Name: "target", Expr: s.sourceName(), Value: "no score",
			Threshold: s.sign() + " " + num(*s.Target), Note: t.ScoreNote, Fired: reached,
			Unit: UnitScore, Bound: s.Target}, Status: ConditionUnknown}
		if t.Score != nil {
			meets, doubts := !s.better(*s.Target, *t.Score), s.isDoubtful(t)
			r.Value, r.Holds, r.Have, r.Status = num(*t.Score)+brief.OffBy(p.errorOf(t)), meets && !doubts, t.Score, ""
			r = r.withNear(closeness(*t.Score, *s.Target))
			if meets && doubts {
				r.Note = "not sure: " + p.chanceText(t)
			}
		}
		add(r)
	}
	if s.DimensionTarget != nil {
		r := Row{ConditionRecord: ConditionRecord{Name: "dimension_target", Value: "no dimensions",
			Threshold: "every one " + s.sign() + " " + num(*s.DimensionTarget), Fired: reached,
			Unit: UnitScore, Bound: s.DimensionTarget}, Status: ConditionUnknown}
		if worst := s.weakest(t.Dimensions); worst != nil {
			r.Value, r.Have, r.Status = worst.Name+" "+num(worst.Value), &worst.Value, ""
			r = r.withNear(closeness(worst.Value, *s.DimensionTarget))
		} else if len(t.Dimensions) > 0 {
			r.Value, r.Holds, r.Status = "all of "+fmt.Sprint(len(t.Dimensions)), true, ""
			r.Have = s.worst(t.Dimensions)
		}
		add(r)
	}
	if s.MinDelta == nil && s.MinDeltaPercent == nil {
		return
	}
	r := Row{ConditionRecord: ConditionRecord{Name: "converged", Expr: s.sourceName(), Value: "N/A",
		Holds: p.isSettled(t), Fired: converged,
	}}.withNumbers(UnitTimes, float64(min(t.Flat, s.patience())), float64(s.patience()))
	var parts []string
	var part float64 // how close the last improvement came to a threshold
	rec := t.Ended
	if rec.Delta != nil {
		r.Value = withSign(*rec.Delta)
		if rec.Percent != nil {
			r.Value += fmt.Sprintf(" (%.1f%%)", *rec.Percent)
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
	r.Threshold = strings.Join(parts, " or ")
	if n := s.patience(); n > 1 {
		r.Threshold += fmt.Sprintf(", %d times running", n)
		r.Note = fmt.Sprintf("%d of %d", min(t.Flat, n), n)
	}
	if t.Flat > 0 {
		part = 0 // Flat already counts the last improvement
	}
	r = p.findStandstill(t).row(r.withNear((float64(t.Flat) + part) / float64(s.patience())))
	if legs := p.legText(t); legs != "" {
		r.Note = strings.TrimPrefix(r.Note+"; "+legs, "; ")
	}
	add(r)
}

// worst returns the worst value of the dimensions.
func (s *Score) worst(dims []Dimension) *float64 {
	worst := &dims[0].Value
	for i := range dims {
		if s.better(*worst, dims[i].Value) {
			worst = &dims[i].Value
		}
	}
	return worst
}

// sourceName names the source of the score, for people.
func (s *Score) sourceName() string {
	if s.Expr != "" {
		return s.Expr
	}
	return "state." + s.Key
}

// ratio returns threshold divided by the value, which is 1 at the threshold and falls as the value grows. It returns 0
// if there is no positive value, or if the value is below the threshold.
func ratio(threshold float64, v *float64) float64 {
	if v == nil || *v <= 0 || threshold > *v {
		return 0
	}
	return threshold / *v
}
