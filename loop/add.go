// SPDX-License-Identifier: Apache-2.0

package loop

import "slices"

// Add folds one outcome into the tally. It reads o.State and keeps nothing of
// it. An outcome that comes after the loop has its reason to stop changes
// nothing but usage and time, the finalizer's excepted.
func (p *Plan) Add(t *Tally, o Outcome) {
	t.count(&o)
	t.Fresh = false
	final := p.Finalizer()
	if stopped := p.reason(t) != ""; stopped || final >= 0 && o.Step == final {
		if stopped && final >= 0 && (o.Step == final || o.Canceled != "") {
			t.finalize(&o)
		}
		return
	}
	if o.Canceled == "" || o.Step >= 0 {
		p.begin(t)
	}
	if o.Canceled != "" {
		t.Canceled = clip(o.Canceled)
		p.lookOnce(t, &o)
		return
	}
	t.Steps++
	t.Place = p.placeAfter(t, o.Step)
	skip := p.fail(t, &o)
	if t.Fatal != nil {
		p.lookOnce(t, &o)
		return
	}
	p.exit(t, &o)
	complete := t.Place >= p.length() && !skip
	switch {
	case complete || t.Exit != nil:
		p.end(t, &o, complete, true)
	case skip:
		p.end(t, &o, false, false)
	case p.StopWhen != nil && p.StopCheck == EachStep:
		p.look(t, &o, false)
	}
}

// begin opens the next iteration if the one before has ended.
func (p *Plan) begin(t *Tally) {
	if p.between(t) {
		t.Iteration++
		t.Place, t.IterationFailures = 0, 0
	}
	t.Ended = IterationRecord{}
	t.Looked = false
	t.Finalized, t.FinalizerFailure = false, ""
}

// between reports whether no iteration is open. A plan that has become shorter
// since, as when a run goes on with another one, closes it too.
func (p *Plan) between(t *Tally) bool {
	return t.Iteration == 0 || t.Ended.Number != 0 || t.Place >= p.length()
}

// placeAfter is the place that follows a step: normally the one that was due.
func (p *Plan) placeAfter(t *Tally, step int) int {
	if p.stepAt(t.Place) != step {
		if place, ok := p.placeOf(step); ok {
			return place + 1
		}
	}
	return t.Place + 1
}

// count adds up time and usage.
func (t *Tally) count(o *Outcome) {
	if t.Started.IsZero() {
		t.Started = o.Started
	}
	if !o.Started.IsZero() && o.Finished.After(o.Started) {
		t.Active += o.Finished.Sub(o.Started)
	}
	u := o.Usage
	t.Usage.Calls += u.Calls
	t.Usage.InputTokens += u.InputTokens
	t.Usage.OutputTokens += u.OutputTokens
	switch {
	case u.Cost == nil:
		t.CostUnknown = t.CostUnknown || u.Calls != 0 || u.InputTokens != 0 || u.OutputTokens != 0
	case t.Usage.Cost == nil:
		t.Usage.Cost = new(*u.Cost)
	default:
		t.Usage.Cost = new(*t.Usage.Cost + *u.Cost)
	}
	if t.CostUnknown {
		t.Usage.Cost = nil
	}
}

// fail counts a failure and applies the policy; skip says that the rest of
// the iteration is skipped.
func (p *Plan) fail(t *Tally, o *Outcome) (skip bool) {
	if o.Failure == nil {
		t.FailuresRunning = 0
		return false
	}
	t.Failures++
	t.IterationFailures++
	t.FailuresRunning++
	policy := p.policy(o.Step, o.Failure.Kind)
	tooMany := p.MaxConsecutiveFailures > 0 && t.FailuresRunning >= p.MaxConsecutiveFailures
	if policy != SkipStep && policy != NextIteration || tooMany {
		t.Fatal = &StepFailure{Step: p.nameOf(o.Step), Failure: Failure{Kind: o.Failure.Kind, Message: clip(o.Failure.Message)}}
		if tooMany {
			t.Fatal.Running = t.FailuresRunning
		}
	}
	return policy == NextIteration
}

// exit takes a wish to leave, or refuses it.
func (p *Plan) exit(t *Tally, o *Outcome) {
	if o.Exit == nil {
		return
	}
	e := *o.Exit
	if e.By == "" {
		e.By = p.nameOf(o.Step)
	}
	e.Reason = clip(e.Reason)
	if p.MayExit(e.By) {
		t.Exit = &e
		return
	}
	t.Refusals++
	r := append(slices.Clone(t.Refused), Refusal{Iteration: t.Iteration, By: e.By, Reason: e.Reason})
	t.Refused = r[max(0, len(r)-maxRefusals):]
}

// end closes the iteration. One that a failure has cut short is not scored:
// what state holds would be the score of the iteration before.
func (p *Plan) end(t *Tally, o *Outcome, complete, scored bool) {
	t.Ended = IterationRecord{Number: t.Iteration, Complete: complete, Failures: t.IterationFailures}
	t.Fresh = true
	if complete {
		t.Complete++
		t.LastComplete = t.Iteration
	}
	t.Score, t.ScoreNote = nil, ""
	switch {
	case p.Score == nil:
	case scored:
		p.Score.take(t, o)
	default:
		t.ScoreNote = "not read: a failure cut the iteration short"
	}
	if p.StopWhen != nil {
		p.look(t, o, true)
	}
}

// lookOnce brings the conditions up to date for the stop record.
func (p *Plan) lookOnce(t *Tally, o *Outcome) {
	if p.StopWhen != nil && o.State != nil {
		p.look(t, o, false)
	}
}

// look evaluates the conditions.
func (p *Plan) look(t *Tally, o *Outcome, ended bool) {
	l := looker{vals: t.values(o), prev: t.Truths, ended: ended}
	l.look(p.StopWhen)
	t.Truths, t.Looked = l.next, true
}

// finalize takes the finalizer's outcome.
func (t *Tally) finalize(o *Outcome) {
	t.Finalized = true
	switch {
	case o.Canceled != "":
		t.FinalizerFailure = clip("canceled: " + o.Canceled)
	case o.Failure != nil:
		t.FinalizerFailure = clip(o.Failure.Message)
		if t.FinalizerFailure == "" {
			t.FinalizerFailure = Failed
		}
	}
}
