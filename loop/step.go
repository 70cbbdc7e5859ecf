// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Step is one sub-agent's place in a plan.
type Step struct {
	Name string `json:"name"`
	// OnError overrides the plan's. "" means the plan's.
	OnError ErrorPolicy `json:"on_error,omitzero"`
	// Finalizer marks the step, at most one, that runs once after the last iteration
	// and writes the answer.
	Finalizer bool `json:"finalizer,omitzero"`
	// Retry runs a failed step again in the same iteration. nil: no retry.
	Retry *Retry `json:"retry,omitzero"`
	// Timeout limits one attempt. 0: no limit.
	Timeout Duration `json:"timeout,omitzero"`
	// AdaptiveTimeout takes Timeout's place once the step has run often enough.
	AdaptiveTimeout *AdaptiveTimeout `json:"adaptive,omitzero"`
	// Circuit stops running a step that fails again and again. nil: the step always runs.
	Circuit *Circuit `json:"circuit,omitzero"`
	// DelayBefore and DelayAfter are the delays before and after the step.
	DelayBefore Duration `json:"delay_before,omitzero"`
	DelayAfter  Duration `json:"delay_after,omitzero"`
}

// Retry says how often and when a failed step runs again. A permanent failure is not
// retried, nor is a failure because the iteration or the loop ran out of time, or
// because of the budget.
type Retry struct {
	// Attempts is the number of attempts in all. 0 means 1.
	Attempts uint `json:"attempts"`
	// Backoff is the wait before the second attempt; it doubles before each further one,
	// up to MaxBackoff. It is shortened by up to a fifth, depending on the start of the
	// run, so that runs that failed together do not retry together. 0: no wait.
	Backoff Duration `json:"backoff,omitzero"`
	// MaxBackoff is the longest wait. 0 means a minute, or Backoff if that is longer. A
	// failure may ask for a longer wait than Backoff gives; if it asks for more than
	// MaxBackoff, the step is not retried.
	MaxBackoff Duration `json:"max_backoff,omitzero"`
}

// AdaptiveTimeout computes a step's timeout from its own history: the 95th percentile of the
// times of its last 32 runs, times Factor, within Min and Max. A run that exceeded its timeout
// counts with that timeout, so that the limit can grow. A run that failed does not count.
type AdaptiveTimeout struct {
	// Factor is at least 1. 0 means 3.
	Factor float64 `json:"factor,omitzero"`
	// Min and Max are the bounds of the timeout. Max is required. It is the timeout before
	// there are After runs, unless the step has a Timeout.
	Min Duration `json:"min,omitzero"`
	Max Duration `json:"max"`
	// After is the number of runs that are needed, at most 32. 0 means 5.
	After uint `json:"after,omitzero"`
}

// stepRuns is what a tally knows of the runs of steps.
type stepRuns struct {
	// Started is when the first step started.
	Started time.Time `json:"started,omitzero"`
	// Steps is the number of steps that have run, without the finalizer. A step that was retried or sampled counts
	// once.
	Steps int `json:"steps,omitzero"`
	// Attempt is how often the step that is due has already failed. Retries counts all failures that were retried.
	Attempt int `json:"attempt,omitzero"`
	Retries int `json:"retries,omitzero"`
	// RetryAfter is the wait that the last such failure asks for, in nanoseconds.
	RetryAfter time.Duration `json:"retry_after_ns,omitzero"`
	// FailuresRunning counts the last steps that failed in a row.
	FailuresRunning uint `json:"failures_running,omitzero"`
	// Timeouts counts steps and iterations that ran out of time.
	Timeouts int `json:"timeouts,omitzero"`
	// CacheHits counts steps that did not run because their earlier outcome was used again.
	CacheHits int `json:"cache_hits,omitzero"`
	// Idle is the number of steps in a row that did not run because their circuits were open.
	Idle int `json:"idle,omitzero"`
	// PerStep has the histories of the steps, by index in Plan.Steps. It may be shorter than Plan.Steps.
	PerStep []stepTally `json:"per_step,omitzero"`
}

// retry counts a failure that is retried.
func (r *stepRuns) retry(f *Failure) {
	r.Attempt++
	r.Retries++
	r.RetryAfter = f.RetryAfter
}

// finishStep counts a step that is not run again. The next step begins with its first attempt.
func (r *stepRuns) finishStep() {
	r.Attempt = 0
	r.Steps++
}

// countIdle counts the outcome of a step that may not have run because its circuit was open.
func (r *stepRuns) countIdle(o *addedOutcome) {
	if o.Failure != nil && o.Failure.Kind == CircuitOpen {
		r.Idle++
	} else {
		r.Idle = 0
	}
}

// stepTally has the history of one step that timeouts and circuits need.
type stepTally struct {
	// Times are those of the last successful runs, in nanoseconds, oldest first.
	Times []time.Duration `json:"times_ns,omitzero"`
	// Failures is the number of failures of the step in a row. If several steps share a circuit, only the first of them
	// has the count.
	Failures uint `json:"failures,omitzero"`
	// OpenedAt is the loop's active time when the circuit opened, nil if it is closed.
	OpenedAt *time.Duration `json:"opened_at_ns,omitzero"`
}

const maxTimes = 32

// recordStep adds a run of a step to the step's history.
func (p *Plan) recordStep(t *Tally, o *addedOutcome) {
	if o.Step < 0 || o.Step >= len(p.Steps) {
		return
	}
	s := &p.Steps[o.Step]
	if s.AdaptiveTimeout == nil && s.Circuit == nil {
		return
	}
	kind := ""
	if o.Failure != nil {
		kind = o.Failure.Kind
	}
	if took := o.took(); s.AdaptiveTimeout != nil && took > 0 && !o.Cached && (o.Failure == nil || kind == Timeout) {
		st := t.stepTally(o.Step)
		times := make([]time.Duration, 0, maxTimes)
		times = append(times, st.Times[max(0, len(st.Times)-maxTimes+1):]...)
		st.Times = append(times, took)
		t.setStepTally(p, o.Step, st)
	}
	if s.Circuit != nil {
		p.countForCircuit(t, o, kind)
	}
}

// stepTally returns the history of a step.
func (r *stepRuns) stepTally(step int) stepTally {
	if step < len(r.PerStep) {
		return r.PerStep[step]
	}
	return stepTally{}
}

// setStepTally replaces the history of a step. It allocates a new list, because copies of the tally share the old one.
func (r *stepRuns) setStepTally(p *Plan, step int, st stepTally) {
	per := make([]stepTally, len(p.Steps))
	copy(per, r.PerStep)
	per[step] = st
	r.PerStep = per
}

// stepTimeout returns the time limit of the next attempt of a step; 0 means no limit.
func (p *Plan) stepTimeout(r *stepRuns, step int) time.Duration {
	s := &p.Steps[step]
	a := s.AdaptiveTimeout
	if a == nil {
		return time.Duration(s.Timeout)
	}
	after, factor := int(cmp.Or(a.After, 5)), cmp.Or(a.Factor, 3)
	if step >= len(r.PerStep) || len(r.PerStep[step].Times) < after {
		return time.Duration(cmp.Or(max(0, s.Timeout), a.Max))
	}
	var buf [maxTimes]time.Duration
	sorted := append(buf[:0], r.PerStep[step].Times...)
	slices.Sort(sorted)
	p95 := sorted[(len(sorted)*95+99)/100-1]
	return time.Duration(min(max(float64(p95)*factor, float64(a.Min)), float64(a.Max)))
}

// Retries reports whether the step of an outcome, which has not been added to t, has failed and
// will be retried.
func (p *Plan) Retries(t *Tally, o Outcome) bool {
	if o.Failure == nil || o.Canceled != "" || p.reason(t) != "" {
		return false
	}
	u := *t
	p.Add(&u, o)
	return u.Retries > t.Retries && p.reason(&u) == ""
}

// mayRetry reports whether a failed step is retried. attempt is the number of the attempt that has failed, from 1.
func (p *Plan) mayRetry(step, attempt int, f *Failure) bool {
	if step < 0 || step >= len(p.Steps) || f.Permanent {
		return false
	}
	switch f.Kind {
	case IterationTimeout, TotalTimeout, BudgetSpent, CircuitOpen, StateTooLarge:
		return false
	}
	r := p.Steps[step].Retry
	return r != nil && attempt < int(r.Attempts) && f.RetryAfter <= r.longest()
}

// retryDelayTooLong returns a failure with an extended message if the step is not retried only because f asks for a longer
// wait than the plan allows; else nil.
func (p *Plan) retryDelayTooLong(step, attempt int, f *Failure) *Failure {
	now := *f
	now.RetryAfter = 0
	if f.RetryAfter == 0 || p.mayRetry(step, attempt, f) || !p.mayRetry(step, attempt, &now) {
		return nil
	}
	now.Message = fmt.Sprintf("%s (not tried again: it asks to wait %s, and retry.max_backoff is %s)", f.Message,
		brief.Clock(f.RetryAfter), brief.Clock(p.Steps[step].Retry.longest()))
	return &now
}

// wait returns the wait before an attempt of a step. around is the part of it that belongs to no iteration. begins says
// that the step is the first of an iteration.
func (p *Plan) wait(t *Tally, d *Decision, begins bool) (w, around time.Duration) {
	s := &p.Steps[d.Step]
	if d.Attempt > 1 {
		return s.Retry.wait(&t.stepRuns, d), 0
	}
	if d.Sample > 1 {
		return 0, 0
	}
	if begins {
		around = addDelays(t.After, time.Duration(p.DelayBefore))
		return addDelays(around, time.Duration(s.DelayBefore)), around
	}
	return addDelays(t.After, time.Duration(s.DelayBefore)), 0
}

// wait returns the wait before a further attempt: the backoff, shortened by up to a fifth, or a longer wait that the
// failure asks for.
func (r *Retry) wait(runs *stepRuns, d *Decision) time.Duration {
	if r == nil { // a resumed run has another plan, without this retry
		return 0
	}
	longest := r.longest()
	w := min(time.Duration(r.Backoff), longest)
	for range d.Attempt - 2 {
		if w >= longest || w == 0 {
			break
		}
		w = min(w, longest-w) + w // no overflow
	}
	h := newHash.number(uint64(runs.Started.UnixNano())).number(uint64(d.Iteration)).number(uint64(d.Step)).number(uint64(d.Attempt))
	less := time.Duration(float64(w) * 0.2 * float64(h%1000) / 1000)
	if asked := runs.RetryAfter; asked > w-less {
		return asked + min(less, max(0, longest-asked))
	}
	return w - less
}

// longest returns the longest wait before a further attempt.
func (r *Retry) longest() time.Duration {
	if r.MaxBackoff == 0 {
		return max(time.Minute, time.Duration(r.Backoff))
	}
	return time.Duration(r.MaxBackoff)
}

// Circuit stops running a step after Failures failures in a row. The circuit is then open, and
// the step fails at once. After Cooldown of the loop's active time the step gets one more
// attempt. A loop that has nothing else to run waits for this attempt.
//
// An answer from the cache neither opens nor closes a circuit.
type Circuit struct {
	Failures uint     `json:"failures"`
	Cooldown Duration `json:"cooldown"`
	// Endpoint is a name for what the step depends on. Steps of a loop with the same Endpoint
	// share a circuit: their failures count together, a success of any of these steps closes
	// the circuit, and while it is open none of them runs. They must have the same Failures and
	// Cooldown. Empty means that the step has its own circuit.
	Endpoint string `json:"endpoint,omitzero"`
}

// circuit returns the step that has the counts of a step's circuit: the first step that shares the circuit.
func (p *Plan) circuit(step int) int {
	name := p.Steps[step].Circuit.Endpoint
	if name == "" {
		return step
	}
	for i := range step {
		if c := p.Steps[i].Circuit; c != nil && c.Endpoint == name {
			return i
		}
	}
	return step
}

// countForCircuit updates the circuit of a step after a run. kind is the kind of its failure, "" if it succeeded.
func (p *Plan) countForCircuit(t *Tally, o *addedOutcome, kind string) {
	at := p.circuit(o.Step)
	st := t.stepTally(at)
	switch {
	case kind == CircuitOpen || kind == BudgetSpent || kind == TotalTimeout:
		return // the step did not cause this failure
	case o.Cached, o.Failure == nil && st.Failures == 0 && st.OpenedAt == nil:
		return
	case o.Failure == nil:
		st.Failures, st.OpenedAt = 0, nil
	default:
		st.Failures++
		if st.Failures >= p.Steps[o.Step].Circuit.Failures {
			st.OpenedAt = new(t.Active)
		}
	}
	t.setStepTally(p, at, st)
}

// circuitWait reports whether the circuit of a step is open, and how long to wait until the step may run again.
func (p *Plan) circuitWait(t *Tally, step int) (wait time.Duration, open bool) {
	c := p.Steps[step].Circuit
	if c == nil {
		return 0, false
	}
	at := t.stepTally(p.circuit(step)).OpenedAt
	if at == nil {
		return 0, false
	}
	wait = time.Duration(c.Cooldown) - (t.Active - *at)
	return wait, wait > 0
}

// refusal returns the failure of a step that does not run because its circuit is open.
func (p *Plan) refusal(t *Tally, step int, wait time.Duration) *Failure {
	who := "it"
	if name := p.Steps[step].Circuit.Endpoint; name != "" {
		who = fmt.Sprintf("endpoint %q", truncate(name))
	}
	return &Failure{Kind: CircuitOpen, Message: fmt.Sprintf(
		"not run: %s failed %d times running and is tried again after %s", who, t.stepTally(p.circuit(step)).Failures,
		brief.Clock(wait))}
}
