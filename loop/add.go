// SPDX-License-Identifier: Apache-2.0

package loop

import "time"

// Add adds an outcome to the tally. It reads o.State and does not keep it. Once the loop has a
// reason to stop, an outcome changes only usage and time, unless it is that of the finalizer or
// of a rollback.
func (p *Plan) Add(t *Tally, o Outcome) {
	in := addedOutcome{&o}
	stopped, leg := p.reason(t) != "", p.legDue(t)
	p.add(t, &in, stopped, leg)
	if p.OnRegression == RollbackOnWorse && !stopped && t.Ended.Number == 0 && t.Iteration > 0 {
		switch p.reason(t) { // in the middle of an iteration
		case ReasonBudget, ReasonTimeout:
			t.Rejections++
			t.RollbackDue = true
		}
	}
}

// add adds an outcome to the part of the tally that it belongs to. stopped says that the loop already had its reason to
// stop, leg that the next leg was due.
func (p *Plan) add(t *Tally, o *addedOutcome, stopped, leg bool) {
	took := t.count(o, stopped)
	t.Fresh = false
	_, baseline := p.scoresStart(t)
	final := p.Finalizer()
	isFinal := o.Step >= 0 && o.Step == final
	restored := o.RolledBack || o.Canceled != "" || o.Failure != nil
	switch {
	case t.RollbackDue && restored:
		p.addRollback(t, o)
	case leg && restored:
		p.beginLeg(t, o)
	case t.Rejudge && !stopped && (o.Canceled != "" || p.judges(o.Step)):
		p.addRejudged(t, o)
	case stopped || isFinal:
		if stopped && final >= 0 && !t.Finalized && (isFinal || o.Canceled != "") {
			t.finalize(o)
		}
	case baseline:
		p.addBaseline(t, o)
	default:
		p.addStep(t, o, took)
	}
}

// addStep adds the outcome of a step of an iteration. took is its time.
func (p *Plan) addStep(t *Tally, o *addedOutcome, took time.Duration) {
	if o.Canceled == "" || o.Step >= 0 {
		p.begin(t, o, took)
	}
	if o.Canceled != "" {
		t.Canceled = truncate(o.Canceled)
		p.evaluateOnce(t, o)
		return
	}
	p.recordStep(t, o)
	if p.repeatsStep(t, o) {
		return
	}
	if p.Score != nil && !t.ScoreWritten {
		t.ScoreWritten = p.Score.writtenBy(o.Wrote)
	}
	p.noteWritten(t, o)
	t.finishStep()
	t.Place = p.placeAfter(t, o.Step)
	skip := p.fail(t, o)
	if t.Fatal != nil || t.isLimit() {
		if t.Fatal == nil {
			p.exit(t, o) // the exit cannot be the stop reason now, but the record says which agent asked
		}
		p.evaluateOnce(t, o)
		return
	}
	if o.ExitWords && o.Exit == nil {
		t.ExitWords = p.nameOf(o.Step)
	}
	p.addToFingerprints(t, o)
	t.After = p.delayAfter(o.Step, false)
	p.exit(t, o)
	complete := t.Place >= p.length() && !skip
	switch {
	case complete || t.Exit != nil:
		p.end(t, o, complete, true)
	case skip || p.iterationTimedOut(t, o):
		p.end(t, o, false, false)
	case p.StopWhen != nil && p.StopCheck == EachStep:
		p.evaluate(t, o, false)
	}
}

// repeatsStep reports whether the same step is due once more, because it has failed and may be retried, or because it is a
// judge that must give more samples.
func (p *Plan) repeatsStep(t *Tally, o *addedOutcome) bool {
	t.RetryAfter = 0
	if o.Failure != nil {
		if f := p.retryDelayTooLong(o.Step, t.Attempt+1, o.Failure); f != nil {
			o.setFailure(f)
			return false
		}
		if !p.mayRetry(o.Step, t.Attempt+1, o.Failure) {
			return false
		}
		if p.iterationIsOutOfTime(t) {
			o.setFailure(&Failure{Kind: IterationTimeout, Message: "no time to try again: " + o.Failure.Message})
			return false
		}
		t.retry(o.Failure)
		if o.Failure.Kind == Timeout {
			t.Timeouts++
		}
		return true
	}
	if o.Exit != nil && (o.Exit.Waits || p.MayExit(p.asker(o))) {
		p.sample(t, o)
		return false
	}
	if !p.sample(t, o) || p.iterationIsOutOfTime(t) {
		return false
	}
	t.Attempt = 0
	return true
}

// addRollback adds the outcome of a rollback. A rollback that fails ends the loop; it is still due if the loop is
// reopened.
func (p *Plan) addRollback(t *Tally, o *addedOutcome) {
	switch {
	case o.Canceled != "":
		t.Canceled = truncate(o.Canceled)
	case o.Failure != nil:
		t.Fatal = &StepFailure{Failure: Failure{Kind: o.Failure.Kind, Message: truncate("roll back: " + o.Failure.Message)}}
	default:
		t.RollbackDue = false
		t.Rollbacks++
		t.Accepted, t.Rival.Ahead = p.rollbackTarget(t).Score, t.Rival.BestAhead
		t.IsRolledBack = t.Ended.Number == 0
		p.rejudge(t)
	}
}
