// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

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

func (p *Plan) add(t *Tally, o *addedOutcome, stopped, leg bool) {
	took := t.count(o, stopped)
	t.Fresh = false
	if t.RollbackDue && (o.RolledBack || o.Canceled != "" || o.Failure != nil) {
		p.rolledBack(t, o)
		return
	}
	if leg && (o.RolledBack || o.Canceled != "" || o.Failure != nil) {
		p.beginLeg(t, o)
		return
	}
	if t.Rejudge && !stopped && (o.Canceled != "" || p.judges(o.Step)) {
		p.addRejudged(t, o)
		return
	}
	if final := p.Finalizer(); stopped || o.Step >= 0 && o.Step == final {
		if stopped && final >= 0 && !t.Finalized && (o.Step == final || o.Canceled != "") {
			t.finalize(o)
		}
		return
	}
	if _, due := p.scoresStart(t); due {
		p.addBaseline(t, o)
		return
	}
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
	t.Attempt = 0
	t.Steps++
	t.Place = p.placeAfter(t, o.Step)
	skip := p.fail(t, o)
	if t.Fatal != nil || t.TimedOut != "" || t.Spent != "" {
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
		t.Attempt++
		t.Retries++
		t.RetryAfter = o.Failure.RetryAfter
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

// iterationTimedOut reports whether the iteration has run out of time between two steps, and records the timeout.
func (p *Plan) iterationTimedOut(t *Tally, o *addedOutcome) bool {
	if !p.iterationIsOutOfTime(t) {
		return false
	}
	t.Timeouts++
	t.LastFailure = &StepFailure{Step: p.nameOf(o.Step), Failure: Failure{Kind: IterationTimeout,
		Message: "the iteration took longer than " + brief.Clock(time.Duration(p.IterationTimeout))}}
	if p.policy(o.Step, IterationTimeout) == StopOnError {
		t.Fatal = t.LastFailure
	}
	return true
}

// rolledBack adds the outcome of a rollback. A rollback that fails ends the loop; it is still due if the loop is
// reopened.
func (p *Plan) rolledBack(t *Tally, o *addedOutcome) {
	switch {
	case o.Canceled != "":
		t.Canceled = truncate(o.Canceled)
	case o.Failure != nil:
		t.Fatal = &StepFailure{Failure: Failure{Kind: o.Failure.Kind, Message: truncate("roll back: " + o.Failure.Message)}}
	default:
		t.RollbackDue = false
		t.Rollbacks++
		t.Accepted, t.Rival.Ahead = p.rollbackTarget(t).Score, t.Rival.BestAhead
		t.Undone = t.Ended.Number == 0
		p.rejudge(t)
	}
}

// begin opens the next iteration if the previous one has ended. It does not count the delays around iterations as time
// of an iteration.
func (p *Plan) begin(t *Tally, o *addedOutcome, took time.Duration) {
	around := addDelays(t.After, time.Duration(p.DelayBefore))
	t.After = 0
	if p.isBetweenIterations(t) {
		t.Iteration++
		t.Place, t.IterationFailures, t.Attempt = 0, 0, 0
		t.IterationActive = 0
		t.Worked, t.ScoreWritten, t.ExitWords = 0, false, ""
		t.Print, t.Judge.Runs = 0, 0
		t.Watched.Wrote = nil
		took -= min(o.Waited, around)
	}
	if o.Failure != nil && o.Failure.Kind == CircuitOpen {
		t.Idle++
	} else {
		t.Idle = 0
	}
	t.IterationActive += max(0, took-o.Limited)
	if t.Ended.Number != 0 {
		t.Ended = IterationRecord{}
	}
	t.Looked, t.Undone = false, false
	t.Finalized, t.FinalizerFailure = false, ""
	t.FinalUsage, t.FinalActive = Usage{}, 0
}

// isBetweenIterations reports whether no iteration is open. A resumed run may have a shorter plan than before; an open iteration
// that has already done all places of the new plan also counts as closed.
func (p *Plan) isBetweenIterations(t *Tally) bool {
	return t.Iteration == 0 || t.Ended.Number != 0 || t.Place >= p.length()
}

// placeAfter returns the place after the given step. Normally this is the place after t.Place.
func (p *Plan) placeAfter(t *Tally, step int) int {
	if p.stepAt(t.Place) != step {
		if place, ok := p.placeOf(step); ok {
			return place + 1
		}
	}
	return t.Place + 1
}

// count adds the time and the usage of an outcome to the tally and returns the time. after says that the loop already
// has its reason to stop; count then also adds them to FinalActive and FinalUsage, which no limit counts.
func (t *Tally) count(o *addedOutcome, after bool) (took time.Duration) {
	took = o.active()
	if t.Started.IsZero() && !o.Started.IsZero() {
		t.Started = o.Started
	}
	between := max(0, o.Between)
	t.Active += took + between
	t.Between = 0
	if o.Cached {
		t.CacheHits++
	}
	u := &o.Usage
	t.Usage.add(u)
	if after {
		t.FinalActive += took + between
		t.FinalUsage.add(u)
	}
	switch cost := u.Cost; {
	case cost == nil || !(*cost >= 0) || math.IsInf(*cost, 1):
		t.CostUnknown = t.CostUnknown || u.Calls != 0 || u.InputTokens != 0 || u.OutputTokens != 0
	case *cost > 0 || t.Usage.Cost == nil && !t.CostUnknown:
		t.KnownCost += *cost
		t.Usage.Cost = new(t.KnownCost)
		if after {
			t.FinalUsage.Cost = new(t.FinalUsage.cost() + *cost)
		}
	}
	if t.CostUnknown {
		t.Usage.Cost = nil
	}
	return took
}

// add adds v to u, except for the cost.
func (u *Usage) add(v *Usage) {
	u.Calls += v.Calls
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.EstimatedTokens += v.EstimatedTokens
	u.CachedTokens += v.CachedTokens
	u.CacheSaved += v.CacheSaved
}

// fail counts a failure and applies the error policy. skip reports whether the rest of the iteration is skipped.
func (p *Plan) fail(t *Tally, o *addedOutcome) (skip bool) {
	if o.Failure == nil {
		t.FailuresRunning = 0
		t.Worked++
		return false
	}
	switch o.Failure.Kind {
	case TotalTimeout:
		t.TimedOut, t.Bounds = cmp.Or(truncate(o.Failure.Message), "out of time"), p.bounds()
		return false
	case BudgetSpent:
		t.Spent, t.Bounds = cmp.Or(truncate(o.Failure.Message), "a call did not fit"), p.bounds()
		return false
	case Timeout, IterationTimeout:
		t.Timeouts++
	}
	t.Failures++
	t.IterationFailures++
	t.FailuresRunning++
	policy := p.policy(o.Step, o.Failure.Kind)
	tooMany := p.MaxConsecutiveFailures > 0 && t.FailuresRunning >= p.MaxConsecutiveFailures
	t.LastFailure = &StepFailure{Step: p.nameOf(o.Step), Failure: Failure{Kind: o.Failure.Kind,
		Message: truncate(o.Failure.Message)}}
	if policy != SkipStep && policy != NextIteration || tooMany {
		fatal := *t.LastFailure
		if tooMany {
			fatal.Running = t.FailuresRunning
		}
		t.Fatal = &fatal
	}
	return policy == NextIteration
}

// exit accepts a request to leave the loop, or refuses it if the agent may not leave.
func (p *Plan) exit(t *Tally, o *addedOutcome) {
	if o.Exit == nil {
		return
	}
	e := *o.Exit
	e.By = p.asker(o)
	e.Reason, e.Scope, e.Status = truncate(e.Reason), truncate(e.Scope), truncate(e.Status)
	if e.Score != nil && !isFinite(*e.Score) {
		e.Score = nil // JSON has no such number
	}
	if e.Waits || p.MayExit(e.By) {
		t.Exit = &e
		return
	}
	t.Refusals++
	r := append(slices.Clone(t.Refused), Refusal{Iteration: t.Iteration, By: e.By, Reason: e.Reason})
	t.Refused = r[max(0, len(r)-maxRefusals):]
}

// asker returns the name of the agent that asks to leave.
func (p *Plan) asker(o *addedOutcome) string {
	if o.Exit.By != "" {
		return o.Exit.By
	}
	return p.nameOf(o.Step)
}

// end closes the iteration. It scores the iteration only if scored is true; scored is false if a failure cut it short.
func (p *Plan) end(t *Tally, o *addedOutcome, complete, scored bool) {
	t.Ended = IterationRecord{Number: t.Iteration, Leg: t.Leg, Complete: complete, Failures: t.IterationFailures,
		StateSize: o.StateSize}
	t.Fresh = true
	p.weighState(t, o)
	p.compare(t)
	t.Ended.Rejudged, t.Rejudged = t.Rejudged, nil
	if t.ExitWords != "" {
		t.Ended.warn(t.ExitWords + " wrote exit_loop() in words and did not call the tool, so the loop did not end")
	}
	t.After = p.delayAfter(o.Step, true)
	if complete {
		t.Complete++
		t.LastComplete = t.Iteration
	}
	p.succeed(t, complete)
	t.Score = nil
	if t.Judge.Runs == 0 {
		t.ScoreNote, t.Dimensions = "", nil
	}
	waits := t.Exit != nil && t.Exit.Waits
	switch {
	case p.Score == nil:
	case waits: // the iteration continues after the answer, so the loop neither scores nor undoes it now
		t.ScoreNote = "not read: a step waits for an answer"
	case scored:
		p.scoreIteration(t, o)
	default:
		t.ScoreNote = "not read: a failure cut the iteration short"
		t.Ended.Unscored = t.ScoreNote
	}
	var now findingValues
	if !waits {
		now = p.recordFindings(t, o)
	}
	p.countRepeats(t, o)
	if p.StopWhen != nil {
		p.evaluate(t, o, true)
	}
	if p.Score != nil && !waits {
		p.accept(t, scored)
	}
	p.updateWorth(t)
	if !waits {
		p.updateBaseline(t, now)
	}
	p.noteMet(t)
}

// succeed counts the iteration that has ended as succeeded or not. If it has not succeeded and the plan has no limit of
// iterations, succeed adds a pause before the next one. Without the pause, steps that fail at once would run hundreds
// of times a second.
func (p *Plan) succeed(t *Tally, complete bool) {
	if t.Exit != nil || complete && t.Worked > 0 {
		t.Succeeded++
		t.Barren = 0
		return
	}
	t.Barren++
	if p.MaxIterations > 0 {
		return
	}
	pause := longestPause
	if t.Barren <= 16 {
		pause = min(pause, firstPause<<(t.Barren-1))
	}
	t.After = addDelays(t.After, pause)
	t.Ended.warn(fmt.Sprintf("%s failed one after another: the next begins %s later", count(t.Barren, "iteration"),
		pause))
}

// warn adds a warning to the record.
func (r *IterationRecord) warn(text string) {
	if r.Warning != "" {
		text = r.Warning + "; " + text
	}
	r.Warning = text
}

// The pause after failed iterations is firstPause after the first one, and doubles with each further one up to longestPause.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = time.Minute
)

// addDelays adds two delays. The sum is at most the largest Duration.
func addDelays(a, b time.Duration) time.Duration {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// weighState compares the state's size with its limit. A larger state ends the loop; above 80 % of the limit, the
// record of the iteration gets a warning.
func (p *Plan) weighState(t *Tally, o *addedOutcome) {
	t.StateSize = o.StateSize
	switch limit := p.StateLimit; {
	case limit <= 0:
	case o.StateSize > limit:
		t.Fatal = &StepFailure{Failure: Failure{
			Kind: StateTooLarge,
			Message: fmt.Sprintf("the state has %d bytes, state_limit is %d: keep less in it, or raise state_limit",
				o.StateSize, limit),
		}}
	case o.StateSize > limit-limit/5:
		t.Ended.Warning = fmt.Sprintf("the state has %d of %d bytes", o.StateSize, limit)
	}
}

// delayAfter returns the delay after a step, plus the delay after the iteration if the step ended it.
func (p *Plan) delayAfter(step int, ended bool) time.Duration {
	var w time.Duration
	if step >= 0 && step < len(p.Steps) {
		w = time.Duration(p.Steps[step].DelayAfter)
	}
	if ended {
		w = addDelays(w, time.Duration(p.DelayAfter))
	}
	return w
}

// finalize records the outcome of the finalizer.
func (t *Tally) finalize(o *addedOutcome) {
	t.Finalized = true
	switch {
	case o.Canceled != "":
		t.FinalizerFailure = truncate("canceled: " + o.Canceled)
	case o.Failure != nil:
		t.FinalizerFailure = truncate(o.Failure.Message)
		t.FinalizerFailure = cmp.Or(t.FinalizerFailure, Failed)
	}
}
