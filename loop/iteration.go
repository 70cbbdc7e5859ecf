// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"math"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// IterationRecord is the result of an iteration.
type IterationRecord struct {
	// Number is the iteration, from 1; 0 means no record.
	Number int `json:"number"`
	// Leg is the number of the leg that the iteration belongs to; 0 before the first.
	Leg int `json:"leg,omitzero"`
	// Score is nil if the iteration has none.
	Score *float64 `json:"score,omitzero"`
	// Delta is the improvement over the previous score; a positive Delta is better, even if a
	// lower score is. Percent is Delta in percent of the previous score. Both are nil without a
	// previous score; Percent is nil if that score is zero.
	Delta   *float64 `json:"delta,omitzero"`
	Percent *float64 `json:"percent,omitzero"`
	// Baseline is the score of the state before the first iteration. Only the record of the first iteration has it. It
	// is nil if the plan has no baseline, or if the baseline gave no score.
	Baseline *float64 `json:"baseline,omitzero"`
	// Rejudged is what the judge said about the best before this iteration, after a rollback; nil if it was not asked.
	Rejudged *Rejudged `json:"rejudged,omitzero"`
	// Best says that the score is the best so far. Met says that the iteration is the best of those after which
	// StopWhen held.
	Best bool `json:"best,omitzero"`
	Met  bool `json:"met,omitzero"`
	// Unscored says why the iteration has no score although the plan has one.
	Unscored string `json:"unscored,omitzero"`
	// Dimensions are the parts of the score, by name.
	Dimensions []Dimension `json:"dimensions,omitzero"`
	// Samples is the number of the judge's samples. Noise is the smallest difference
	// between two scores that means something; 0 if unknown.
	Samples int     `json:"samples,omitzero"`
	Noise   float64 `json:"noise,omitzero"`
	// Error is the standard error of a judge's score: the score is off by ± Error, by chance. 0 if unknown.
	Error float64 `json:"error,omitzero"`
	// Rejected says why the iteration was rejected; "" if it was accepted.
	Rejected string `json:"rejected,omitzero"`
	// Complete is false if the iteration was cut short.
	Complete bool `json:"complete,omitzero"`
	// Failures is the number of its failed steps.
	Failures int `json:"failures,omitzero"`
	// StateSize is the state's size in bytes, 0 if unknown. Warning says that it is
	// near its limit, or that nothing in the iteration has succeeded.
	StateSize int64  `json:"state_size,omitzero"`
	Warning   string `json:"warning,omitzero"`
	// Findings are facts because of which the score may be too good; see [Watch].
	Findings []Finding `json:"findings,omitzero"`
}

// warn adds a warning to the record.
func (r *IterationRecord) warn(text string) {
	if r.Warning != "" {
		text = r.Warning + "; " + text
	}
	r.Warning = text
}

// kinds returns the kinds of the findings.
func (r *IterationRecord) kinds() []string {
	kinds := make([]string, len(r.Findings))
	for i, f := range r.Findings {
		kinds[i] = string(f.Kind)
	}
	return kinds
}

// runningIteration is what a tally knows of the iteration that runs. Its zero value is an iteration of which no step has
// run. The fields of an iteration that has ended stay until the next one begins.
type runningIteration struct {
	// Place is the number of places of the iteration that are done.
	Place int `json:"place,omitzero"`
	// IterationActive is the time spent in the iteration, without the delays around it, in nanoseconds.
	IterationActive time.Duration `json:"iteration_active_ns,omitzero"`
	// After is the delay after the last step.
	After time.Duration `json:"after_ns,omitzero"`
	// StepsSucceeded is the number of its steps that have succeeded, and IterationFailures the number of those that have failed.
	StepsSucceeded    int `json:"worked,omitzero"`
	IterationFailures int `json:"iteration_failures,omitzero"`
	// ScoreWritten says that one of its steps has written a state key that the score is read from.
	ScoreWritten bool `json:"score_written,omitzero"`
	// ExitWords is the name of its last step that wrote a call of exit_loop as text instead of making it; "" if there
	// is none.
	ExitWords string `json:"exit_words,omitzero"`
	// IsRolledBack says that the iteration has been rolled back, so that the results of its steps are gone.
	IsRolledBack bool `json:"undone,omitzero"`
}

// endedIterations is what a tally knows of the iterations that have ended.
type endedIterations struct {
	// LastComplete is the last complete iteration.
	LastComplete int `json:"last_complete,omitzero"`
	// Succeeded is the number of iterations that were complete with at least one successful step, or were left by an
	// exit. FailedIterations is the number of other iterations since the last such one.
	Succeeded        int `json:"succeeded,omitzero"`
	FailedIterations int `json:"barren,omitzero"`
	// Fresh says that the last outcome has ended an iteration.
	Fresh bool `json:"fresh,omitzero"`
	// StateSize is the state's size in bytes when the last iteration ended.
	StateSize int64 `json:"state_size,omitzero"`
}

// begin opens the next iteration if the previous one has ended. It does not count the delays around iterations as time
// of an iteration.
func (p *Plan) begin(t *Tally, o *addedOutcome, took time.Duration) {
	around := addDelays(t.After, time.Duration(p.DelayBefore))
	t.After = 0
	if p.isBetweenIterations(t) {
		t.Iteration++
		t.runningIteration = runningIteration{}
		t.Attempt, t.Print, t.Judge.Runs, t.Watched.Wrote = 0, 0, 0, nil
		took -= min(o.Waited, around)
	}
	t.countIdle(o)
	t.IterationActive += max(0, took-o.Limited)
	if t.Ended.Number != 0 {
		t.Ended = IterationRecord{}
	}
	t.Looked, t.IsRolledBack = false, false
	t.finalPhase = finalPhase{}
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
	p.countSuccess(t, complete)
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

// countSuccess counts the iteration that has ended as succeeded or not. If it has not succeeded and the plan has no limit of
// iterations, succeed adds a pause before the next one. Without the pause, steps that fail at once would run hundreds
// of times a second.
func (p *Plan) countSuccess(t *Tally, complete bool) {
	if t.Exit != nil || complete && t.StepsSucceeded > 0 {
		t.Succeeded++
		t.FailedIterations = 0
		return
	}
	t.FailedIterations++
	if p.MaxIterations > 0 {
		return
	}
	pause := longestPause
	if t.FailedIterations <= 16 {
		pause = min(pause, firstPause<<(t.FailedIterations-1))
	}
	t.After = addDelays(t.After, pause)
	t.Ended.warn(fmt.Sprintf("%s failed one after another: the next begins %s later", count(t.FailedIterations, "iteration"),
		pause))
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
