// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"math"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Budget limits the model calls of a loop and of everything in it. 0 and nil set no limit.
//
// A plan counts a call when it has ended. The driver must refuse a call that does not
// fit; its step then fails with the kind [BudgetSpent].
type Budget struct {
	Calls  int64    `json:"calls,omitzero"`
	Tokens int64    `json:"tokens,omitzero"` // of input and output together
	Cost   *float64 `json:"cost,omitzero"`   // in the currency of the price list
}

// Share returns the share of Timeout and Budget that is kept for the finalizer; 0
// without a finalizer.
func (p *Plan) Share() float64 {
	switch {
	case p.Finalizer() < 0:
		return 0
	case p.FinalizerReserve == 0:
		return 0.1
	}
	return p.FinalizerReserve
}

// deadline returns the active time that the iterations may use, and the time that the whole loop may use.
func (p *Plan) deadline() (iterations, all time.Duration) {
	all = time.Duration(p.Timeout)
	return all - time.Duration(float64(all)*p.Share()), all
}

// Reserved returns the part of the budget that is kept for the finalizer. If calls are limited,
// this is at least one call.
func (p *Plan) Reserved() Budget {
	share := p.Share()
	if share == 0 || p.Budget == nil {
		return Budget{}
	}
	held := func(n int64) int64 { return n - int64(math.Floor(float64(n)*(1-share))) }
	b := Budget{Calls: held(p.Budget.Calls), Tokens: held(p.Budget.Tokens)}
	if p.Budget.Cost != nil {
		b.Cost = new(roundDecimals(*p.Budget.Cost * share))
	}
	return b
}

// limit is one limit of a budget, and how much of it is used.
type limit struct {
	unit        Unit // "" means that the plan has no limit of this kind
	used, limit float64
	total       float64 // limit plus what is kept for the finalizer
}

// budget returns the limits of the budget and what is used of each.
func (p *Plan) budget(t *Tally) (ls [3]limit) {
	b := p.Budget
	if b == nil {
		return ls
	}
	left := 1 - p.Share()
	if b.Calls > 0 {
		ls[0] = limit{UnitCalls, float64(t.Usage.Calls - t.FinalUsage.Calls), math.Floor(float64(b.Calls) * left), float64(b.Calls)}
	}
	if b.Tokens > 0 {
		ls[1] = limit{UnitTokens, float64(t.Usage.tokens() - t.FinalUsage.tokens()), math.Floor(float64(b.Tokens) * left),
			float64(b.Tokens)}
	}
	if b.Cost != nil { // only the known part of the cost counts
		ls[2] = limit{UnitCost, roundDecimals(t.KnownCost - t.FinalUsage.cost()), roundDecimals(*b.Cost * left), *b.Cost}
	}
	return ls
}

// budgetUsed reports whether the budget leaves nothing for another iteration (full), and whether the loop must stop at once
// (over) because the budget is exceeded or a call was refused. If the last call has used the budget exactly, the
// running iteration may still finish.
func (p *Plan) budgetUsed(t *Tally) (full, over bool) {
	for _, l := range p.budget(t) {
		if l.unit != "" && l.used >= l.limit {
			full, over = true, over || l.used > l.limit
		}
	}
	return full, over || t.Spent != ""
}

// budgetText returns a text that says how much of the budget is used.
func (p *Plan) budgetText(t *Tally) string {
	if t.Spent != "" {
		return t.Spent
	}
	worst := limit{}
	for _, l := range p.budget(t) {
		if l.unit != "" && (worst.unit == "" || l.used/l.limit > worst.used/worst.limit) {
			worst = l
		}
	}
	return fmt.Sprintf("%s of %s %s used", num(worst.used), num(worst.limit), worst.unit)
}

// isOutOfTime reports whether the loop has used up its time.
func (p *Plan) isOutOfTime(t *Tally) bool {
	if t.TimedOut != "" || p.Timeout == 0 {
		return t.TimedOut != ""
	}
	limit, _ := p.deadline()
	return p.Timeout > 0 && t.Active-t.FinalActive >= limit
}

// Left returns the time that the loop has left after t, without the finalizer's share.
// ok is false if the loop has no time limit.
func (p *Plan) Left(t *Tally) (left time.Duration, ok bool) {
	limit, _ := p.deadline()
	return max(0, limit-t.Active-t.Between), p.Timeout > 0
}

// timeText returns a text that says how much of the time is used.
func (p *Plan) timeText(t *Tally) string {
	if t.TimedOut != "" {
		return t.TimedOut
	}
	limit, _ := p.deadline()
	return fmt.Sprintf("%s of %s used", brief.Clock(t.Active-t.FinalActive), brief.Clock(limit))
}

// iterationIsOutOfTime reports whether the running iteration has used up its time.
func (p *Plan) iterationIsOutOfTime(t *Tally) bool {
	return p.IterationTimeout > 0 && t.IterationActive >= time.Duration(p.IterationTimeout)
}

// bound sets the timeout of a decision to the smallest of three times: the step's own timeout, what is left of the
// iteration's time, and what is left of the loop's time. It shortens the wait to what is left. The whole wait counts
// against the loop's time; the part of it around an iteration does not count against the iteration's time.
func (p *Plan) bound(t *Tally, d *Decision, begins bool, around time.Duration) {
	least := func(left time.Duration, kind string) {
		if d.Timeout == 0 || left < d.Timeout {
			d.Timeout, d.TimeoutKind = max(left, 1), kind
		}
	}
	if own := p.stepTimeout(&t.stepRuns, d.Step); own > 0 {
		least(own, Timeout)
	}
	if p.IterationTimeout > 0 && d.Action != Finalize { // the finalizer does not belong to an iteration
		left := time.Duration(p.IterationTimeout)
		if !begins {
			left -= t.IterationActive
		}
		d.Wait = min(d.Wait, around+max(left, 0))
		least(left-max(0, d.Wait-around), IterationTimeout)
	}
	if p.Timeout > 0 {
		limit, all := p.deadline()
		used := t.Active + t.Between
		left := limit - used
		if d.Action == Finalize {
			left = max(all-used, all-limit)
		}
		d.Wait = min(d.Wait, max(left, 0))
		least(left-d.Wait, TotalTimeout)
	}
}
