// SPDX-License-Identifier: Apache-2.0

package loop

import "time"

// Action says what a driver does next.
type Action string

// The actions.
const (
	RunStep  Action = "run_step" // run Decision.Step in Decision.Iteration
	Rollback Action = "rollback" // restore the best state; not decided yet by any plan
	Finalize Action = "finalize" // run the finalizer, Decision.Step
	Stop     Action = "stop"     // hand back what Decision.Stop says
)

// Decision is what comes next.
type Decision struct {
	Action    Action `json:"action"`
	Iteration int    `json:"iteration"`
	// Step is an index into Plan.Steps, -1 if nothing runs.
	Step int `json:"step"`
	// Ended is set (its Number is not 0) if the outcome just added has ended
	// an iteration.
	Ended IterationRecord `json:"ended,omitzero"`
	// Stop is set for Finalize and Stop. Only that of Stop knows whether the
	// finalizer succeeded.
	Stop *StopRecord `json:"stop,omitzero"`
}

// Next says what to do after all that t has counted. It does not change t, and
// the same plan and tally give the same answer. now is for deadlines, which no
// plan has yet; all other times come from the tally, so that a replay decides
// as the run did.
//
// The first reason that holds is the stop reason, in the order canceled, error,
// exit, and at the end of an iteration stop_when, target, convergence, limit.
func (p *Plan) Next(t *Tally, now time.Time) Decision {
	_ = now
	reason := p.reason(t)
	final := p.Finalizer()
	switch {
	case reason == "":
		return p.step(t)
	case final >= 0 && !t.Finalized && reason != ReasonCanceled && reason != ReasonError:
		return Decision{Action: Finalize, Iteration: t.Iteration, Step: final, Ended: t.fresh(), Stop: p.record(t, reason)}
	}
	return Decision{Action: Stop, Iteration: t.Iteration, Step: -1, Ended: t.fresh(), Stop: p.record(t, reason)}
}

// fresh is the iteration that the last outcome has ended.
func (t *Tally) fresh() IterationRecord {
	if t.Fresh {
		return t.Ended
	}
	return IterationRecord{}
}

// step is the decision to go on.
func (p *Plan) step(t *Tally) Decision {
	d := Decision{Action: RunStep, Iteration: t.Iteration, Ended: t.fresh()}
	place := t.Place
	if p.between(t) {
		d.Iteration++
		place = 0
	}
	d.Step = p.stepAt(place)
	return d
}

// reason is why the loop stops now, "" if it goes on.
func (p *Plan) reason(t *Tally) StopReason {
	ended := t.Ended.Number != 0
	switch {
	case t.Canceled != "":
		return ReasonCanceled
	case t.Fatal != nil || !p.runnable(t):
		return ReasonError
	case t.Exit != nil:
		return t.Exit.reason()
	case t.Looked && len(t.Truths) > 0 && t.Truths[0].Holds && p.StopWhen != nil:
		return ReasonCondition
	case !ended:
		return ""
	case p.Score != nil && t.Score != nil && p.Score.reached(*t.Score):
		return ReasonTarget
	case p.Score != nil && t.Score != nil && t.Ended.Delta != nil && t.Ended.Failures == 0 && p.Score.converged(t):
		return ReasonConverged
	case p.MaxIterations > 0 && uint(t.Iteration) >= p.MaxIterations:
		return ReasonMaxIterations
	}
	return ""
}

// runnable is false for a plan that Check refuses because nothing would run.
func (p *Plan) runnable(t *Tally) bool {
	if len(p.Order) == 0 { // every place has a step
		return p.length() > 0
	}
	place := t.Place
	if p.between(t) {
		place = 0
	}
	return p.stepAt(place) >= 0
}

func (e *Exit) reason() StopReason {
	switch {
	case e.Status == StatusImpossible:
		return ReasonImpossible
	case e.Status == StatusBlocked:
		return ReasonBlocked
	case e.Escalated:
		return ReasonEscalated
	}
	return ReasonExit
}
