// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// record returns the stop record: why the loop stops and what it returns.
func (p *Plan) record(t *Tally, reason StopReason) *StopRecord {
	r := &StopRecord{
		Loop: p.Name, Reason: reason,
		Iterations: t.Complete, Iteration: t.Iteration,
		Result:      p.result(t, reason),
		BestVersion: BestVersion{BestScore: t.Best, BestIteration: t.BestIteration, BestError: p.BestError(t)},
		Leg:         t.Leg, Usage: t.Usage, Elapsed: t.Active, Trend: p.Trend(t),
		StopHistory: StopHistory{
			Rejections: t.Rejections, Rollbacks: t.Rollbacks,
			Failures: t.Failures, Retries: t.Retries, Timeouts: t.Timeouts, CacheHits: t.CacheHits, StateSize: t.StateSize,
			Refusals: t.Refusals, Refused: slices.Clone(t.Refused),
			ScoreNote: t.ScoreNote, FinalizerFailure: t.FinalizerFailure,
		},
	}
	switch {
	case reason == ReasonError && t.Fatal != nil:
		r.By = t.Fatal.Step
	case reason == ReasonError && t.LastFailure != nil:
		r.By = t.LastFailure.Step
	case t.Exit != nil && reason == t.Exit.reason():
		r.By, r.Scope = t.Exit.By, t.Exit.Scope
	}
	r.Detail, r.Proof = p.detail(t, reason), p.proof(t, reason)
	r.NoneSucceeded = reason == ReasonError && t.Fatal == nil && t.hasNoSuccess()
	rows := p.rows(t, reason)
	r.Conditions, r.Nearest = make([]ConditionRecord, len(rows)), nearest(rows)
	for i := range rows {
		r.Conditions[i] = rows[i].ConditionRecord
	}
	return r
}

// result returns where the result of the loop comes from. It takes the first source that exists, in the order of the
// sources. For a target, a condition or an exit, the result comes from an iteration that agrees with that reason.
func (p *Plan) result(t *Tally, reason StopReason) Result {
	finalizes := p.Finalizer() >= 0 && reason != ReasonCanceled && reason != ReasonError
	switch {
	case finalizes && t.FinalizerFailure == "":
		return Result{FromFinalizer, t.Iteration}
	case reason == ReasonTarget:
		return Result{FromBest, t.Iteration}
	case reason == ReasonCondition && t.Ended.Number != 0 && t.MetScore != nil:
		return Result{FromBest, t.Met}
	case reason == ReasonCondition, !p.BestOnExit && (reason == ReasonExit || reason == ReasonEscalated):
		return t.current(cmp.Or(t.metAtEnd(reason), t.Iteration))
	case t.Best != nil:
		return Result{FromBest, t.BestIteration}
	case t.LastComplete > 0:
		return Result{FromLast, t.LastComplete}
	}
	return Result{FromPartial, t.Iteration}
}

// proof returns how sure the reason is; nil if the reason does not depend on scores with noise.
func (p *Plan) proof(t *Tally, reason StopReason) *Proof {
	switch reason {
	case ReasonTarget:
		if p.Score.Target == nil {
			return nil
		}
		if share, e := p.chance(t); e > 0 && t.Ended.Samples > 0 {
			return &Proof{Chance: brief.Digits(share, 3)}
		}
	case ReasonConverged:
		still := p.findStandstill
		if !p.isConverged(t) {
			if t.Outlook != nil {
				return p.worthProof(t.Outlook)
			}
			still = p.cheap
		}
		if s := still(t); !s.plain && s.scores > 0 {
			return &Proof{Odds: brief.Digits(min(math.Exp(s.odds), mostOdds), 3), Scores: s.scores, Gain: brief.Digits(2*s.gain, 3)}
		}
	}
	return nil
}

// metAtEnd returns t.Met if the loop ends because of StopWhen at the end of an iteration, else 0.
func (t *Tally) metAtEnd(reason StopReason) int {
	if reason == ReasonCondition && t.Ended.Number != 0 {
		return t.Met
	}
	return 0
}

// current returns the result of iteration n, with the source that describes this iteration best.
func (t *Tally) current(n int) Result {
	switch n {
	case t.BestIteration:
		return Result{FromBest, n}
	case t.LastComplete:
		return Result{FromLast, n}
	}
	return Result{FromPartial, n}
}

// detail returns a text that explains the reason.
func (p *Plan) detail(t *Tally, reason StopReason) string {
	switch reason {
	case ReasonCanceled:
		return t.Canceled
	case ReasonError:
		return p.failure(t)
	case ReasonCondition:
		return p.StopWhen.String()
	case ReasonBudget:
		return p.budgetText(t)
	case ReasonTimeout:
		return p.timeText(t)
	case ReasonTarget:
		return p.targetText(t)
	case ReasonNoProgress:
		return p.NoProgress.evidence(&t.repetition)
	case ReasonConverged:
		if legs := p.legText(t); legs != "" {
			return p.plateau(t) + "; " + legs
		}
		return p.plateau(t)
	case ReasonMaxIterations:
		return "limit of " + count(p.MaxIterations, "iteration")
	}
	return cmp.Or(t.Exit.Reason, noReason(t.Exit.By))
}

func noReason(by string) string { return "no reason given by " + by }

// Request returns the reason that the agent By gave for ending the loop; "" if it gave none. ok is false if no agent asked for the end.
func (r *StopRecord) Request() (reason string, ok bool) {
	switch r.Reason {
	case ReasonExit, ReasonEscalated, ReasonImpossible, ReasonBlocked:
		if r.Detail != noReason(r.By) {
			reason = r.Detail
		}
		return reason, true
	}
	return "", false
}

// plateau returns a text that says why the loop has converged.
func (p *Plan) plateau(t *Tally) string {
	if !p.isConverged(t) {
		write := num
		if o := t.Outlook; o != nil && !o.Exact {
			write = short
		}
		return fmt.Sprintf("the next iteration is expected to gain %s per %s, less than %s", write(*t.Worth),
			p.NotWorth.per(), num(p.NotWorth.Gain))
	}
	if still := p.findStandstill(t); !still.plain || still.same > 0 {
		return convergence + still.String()
	}
	s := convergence + "Improvement < " + t.FlatBy
	if n := p.Score.patience(); n > 1 {
		s += fmt.Sprintf(", %d times running", n)
	}
	return s
}

// failure returns a text about the failure that ended the loop.
func (p *Plan) failure(t *Tally) string {
	f := t.Fatal
	switch {
	case f == nil && t.hasNoSuccess() && t.LastFailure != nil:
		return NoneSucceeded + "; the last failure: " + t.LastFailure.String()
	case f == nil && t.hasNoSuccess():
		return NoneSucceeded
	case f == nil:
		return "the plan has no step to run"
	case f.Running > 0:
		return fmt.Sprintf("%s failed one after another, the last: %s", count(f.Running, "step"), f)
	}
	return f.String()
}

// NoneSucceeded is the beginning of the detail of a loop that failed because all of its
// iterations failed.
const NoneSucceeded = "No iteration succeeded"
