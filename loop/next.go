// SPDX-License-Identifier: Apache-2.0

package loop

import "time"

// Action says what a driver does next.
type Action string

// The actions.
const (
	RunStep  Action = "run_step"  // run Decision.Step in Decision.Iteration
	Rollback Action = "rollback"  // restore the state after iteration Decision.To
	Finalize Action = "finalize"  // run the finalizer, Decision.Step
	BeginLeg Action = "begin_leg" // restore the state after iteration Decision.To, and go on with the settings of Decision.Leg
	Stop     Action = "stop"      // hand back the result that Decision.Stop names
)

// Decision says what the driver does next.
type Decision struct {
	Action Action `json:"action"`
	// Iteration is 0 for a step that scores the state before the first iteration; see Score.Baseline.
	Iteration int `json:"iteration"`
	// Step is an index into Plan.Steps, -1 if nothing runs.
	Step int `json:"step"`
	// Attempt is the attempt of the step in this iteration, from 1. Sample is the sample
	// of a judge, from 1; 0 if the step is not a judge.
	Attempt int `json:"attempt,omitzero"`
	Sample  int `json:"sample,omitzero"`
	// Wait is the delay before the step, in nanoseconds.
	Wait time.Duration `json:"wait_ns,omitzero"`
	// Timeout is the time limit of the step after the delay, in nanoseconds; 0 if it has
	// none. TimeoutKind is the kind of failure if it takes longer.
	Timeout     time.Duration `json:"timeout_ns,omitzero"`
	TimeoutKind string        `json:"timeout_kind,omitzero"`
	// Refuse is set if the step must not run; its outcome is this failure.
	Refuse *Failure `json:"refuse,omitzero"`
	// To is the iteration whose state a Rollback or BeginLeg restores; 0: the state at the loop's
	// start.
	To int `json:"to,omitzero"`
	// Leg is the number of the leg that begins, from 1; 0 if none does.
	Leg int `json:"leg,omitzero"`
	// Why says why the loop begins a leg, for people.
	Why string `json:"why,omitzero"`
	// Ended is set (its Number is not 0) if the outcome just added has ended
	// an iteration.
	Ended IterationRecord `json:"ended,omitzero"`
	// Stop is set for Finalize and Stop. Only with the action Stop does it say whether the
	// finalizer succeeded.
	Stop *StopRecord `json:"stop,omitzero"`
}

// Next returns the decision that follows from t. It does not change t, and the same plan and
// tally give the same decision. All times come from the tally, so that a replay decides as the
// run did.
//
// A loop that has converged begins its next leg, if it has one; see Plan.OnPlateau. Otherwise
// the first reason that holds is the stop reason, in the order canceled, error,
// budget exceeded, time over, exit, stop_when, and at the end of an iteration
// target, convergence, no progress, not worth it, budget spent, limit.
func (p *Plan) Next(t *Tally) (d Decision) {
	d = Decision{Iteration: t.Iteration, Step: -1}
	if t.Fresh {
		d.Ended = t.Ended
	}
	reason := p.reason(t)
	switch fails := reason == ReasonCanceled || reason == ReasonError; {
	case t.RollbackDue && !fails:
		d.Action, d.To = Rollback, p.rollbackTarget(t).Iteration
	case p.legDue(t):
		p.decideLeg(t, &d)
	case reason == "":
		p.step(t, &d)
	case !fails && !t.Finalized && p.Finalizer() >= 0:
		d.Action, d.Step, d.Attempt = Finalize, p.Finalizer(), 1
		d.Stop = p.record(t, reason)
		p.bound(t, &d, false, 0)
	default:
		d.Action, d.Stop = Stop, p.record(t, reason)
	}
	return d
}

// step turns a decision into one that runs the step that is due.
func (p *Plan) step(t *Tally, d *Decision) {
	d.Action = RunStep
	begins := p.isBetweenIterations(t)
	step, start := p.scoresStart(t)
	switch {
	case start:
		begins, d.Step = false, step
	case t.Rejudge:
		begins, d.Step = false, p.judgeStep()
	case begins:
		d.Iteration++
		d.Step = p.stepAt(0)
	default:
		d.Step = p.stepAt(t.Place)
	}
	d.Attempt = 1
	if !begins {
		d.Attempt += t.Attempt
	}
	if p.judges(d.Step) && p.Score.Judge.Most() > 1 {
		d.Sample = 1
		if !begins {
			d.Sample += t.Judge.Runs
		}
	}
	if t.Rejudge { // a number that differs from the samples of the iteration
		d.Sample = 2 + t.Judge.Runs
	}
	w, around := p.wait(t, d, begins)
	d.Wait = w
	if wait, open := p.circuitWait(t, d.Step); open && t.Idle+1 < p.length() {
		d.Wait = 0
		d.Refuse = p.refusal(t, d.Step, wait)
		return
	} else if open {
		d.Wait = max(d.Wait, wait)
	}
	p.bound(t, d, begins || t.Rejudge, around)
}

// reason returns why the loop stops now, "" if it continues. If no iteration has succeeded, the result is ReasonError
// instead of any reason except an exit and a cancellation.
func (p *Plan) reason(t *Tally) StopReason {
	r := p.firstReason(t)
	switch r {
	case ReasonBudget, ReasonTimeout, ReasonCondition, ReasonTarget, ReasonConverged, ReasonNoProgress,
		ReasonMaxIterations:
		if t.hasNoSuccess() {
			return ReasonError
		}
	}
	return r
}

// hasNoSuccess reports whether at least one iteration has ended, no iteration has succeeded, and no step of a running
// iteration has succeeded.
func (t *Tally) hasNoSuccess() bool {
	return t.Succeeded == 0 && t.FailedIterations > 0 && (t.Ended.Number != 0 || t.StepsSucceeded == 0)
}

// firstReason returns the first reason that holds, "" if the loop begins another leg instead of stopping.
func (p *Plan) firstReason(t *Tally) StopReason {
	if p.legDue(t) {
		return ""
	}
	return p.reasonWithoutLegs(t)
}

// reasonWithoutLegs returns the first reason that holds, without regard to legs.
func (p *Plan) reasonWithoutLegs(t *Tally) StopReason {
	ended := t.Ended.Number != 0
	full, over := false, t.Spent != ""
	if p.Budget != nil {
		full, over = p.budgetUsed(t)
	}
	switch {
	case t.Canceled != "":
		return ReasonCanceled
	case t.Fatal != nil || !p.runnable(t):
		return ReasonError
	case over:
		return ReasonBudget
	case p.isOutOfTime(t):
		return ReasonTimeout
	case t.Exit != nil:
		return t.Exit.reason()
	case t.Looked && len(t.Truths) > 0 && t.Truths[0].Holds && p.StopWhen != nil:
		return ReasonCondition
	case !ended:
		return ""
	case p.Score != nil && t.Ended.Rejected == "" && p.Score.isReached(t):
		return ReasonTarget
	case p.isConverged(t):
		return ReasonConverged
	case p.NoProgress != nil && p.NoProgress.isCircling(&t.repetition):
		return ReasonNoProgress
	case p.notWorth(t):
		return ReasonConverged
	case full:
		return ReasonBudget
	case p.MaxIterations > 0 && uint(t.Iteration) >= p.MaxIterations:
		return ReasonMaxIterations
	}
	return ""
}

// isConverged reports whether the improvements were too small often enough, and the last improvement is reliable because
// no step of the iteration failed.
func (p *Plan) isConverged(t *Tally) bool {
	return p.Score != nil && t.Score != nil && t.Ended.Delta != nil && t.Ended.Failures == 0 && p.isSettled(t)
}

// runnable reports whether the plan has a step to run. It is false only for a plan that Check refuses.
func (p *Plan) runnable(t *Tally) bool {
	if len(p.Order) == 0 { // without Order, every place has a step
		return len(p.Steps) > 0 && !p.Steps[0].Finalizer || p.length() > 0
	}
	place := t.Place
	if p.isBetweenIterations(t) {
		place = 0
	}
	return p.stepAt(place) >= 0
}
