// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"time"
)

// Failure says how a step failed.
type Failure struct {
	Kind    string `json:"kind,omitzero"` // one of the kinds below
	Message string `json:"message"`
	// Permanent says that another attempt cannot succeed.
	Permanent bool `json:"permanent,omitzero"`
	// RetryAfter is the time that the failure asks to wait before the next attempt, in
	// nanoseconds; see Retry.
	RetryAfter time.Duration `json:"retry_after_ns,omitzero"`
}

// The kinds of failure.
const (
	Failed           = "error"
	Timeout          = "timeout"           // the step exceeded its own time limit
	IterationTimeout = "iteration_timeout" // the iteration exceeded its time limit
	TotalTimeout     = "total_timeout"     // the loop exceeded its time limit, and stops with reason timeout
	BudgetSpent      = "budget"            // a call was refused, and the loop stops with reason budget
	CircuitOpen      = "circuit_open"      // the step was not run; see Circuit
	StateTooLarge    = "state_too_large"   // see Plan.StateLimit; a step's change of the state was refused
	Panicked         = "panic"
)

// StepFailure is a failure with the name of the step.
type StepFailure struct {
	Step string `json:"step,omitzero"`
	Failure
	// Running is the number of steps that failed in a row, if that was too many.
	Running uint `json:"running,omitzero"`
}

// String writes the failure on one line.
func (f *StepFailure) String() string {
	s := f.Message
	if f.Kind != "" && f.Kind != Failed {
		s = f.Kind + ": " + s
	}
	if f.Step != "" {
		s = f.Step + ": " + s
	}
	return s
}

// fail counts a failure and applies the error policy. skip reports whether the rest of the iteration is skipped.
func (p *Plan) fail(t *Tally, o *addedOutcome) (skip bool) {
	if o.Failure == nil {
		t.FailuresRunning = 0
		t.StepsSucceeded++
		return false
	}
	if p.interrupt(t, o.Failure) {
		return false
	}
	if o.Failure.Kind == Timeout || o.Failure.Kind == IterationTimeout {
		t.Timeouts++
	}
	t.Failures++
	t.IterationFailures++
	t.FailuresRunning++
	policy := p.policy(o.Step, o.Failure.Kind)
	tooMany := p.MaxConsecutiveFailures > 0 && t.FailuresRunning >= p.MaxConsecutiveFailures
	t.LastFailure = p.stepFailure(o)
	if policy != SkipStep && policy != NextIteration || tooMany {
		fatal := *t.LastFailure
		if tooMany {
			fatal.Running = t.FailuresRunning
		}
		t.Fatal = &fatal
	}
	return policy == NextIteration
}

// stepFailure returns the failure of an outcome with the name of its step.
func (p *Plan) stepFailure(o *addedOutcome) *StepFailure {
	return &StepFailure{Step: p.nameOf(o.Step), Failure: Failure{Kind: o.Failure.Kind, Message: truncate(o.Failure.Message)}}
}

// failApart counts the failure of a step outside of the iterations. Such a failure does not end the loop. over is false
// if a limit of the loop cut the step short.
func (p *Plan) failApart(t *Tally, o *addedOutcome) (over bool) {
	if p.interrupt(t, o.Failure) {
		return false
	}
	t.Failures++
	t.LastFailure = p.stepFailure(o)
	return true
}
