// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"maps"
	"time"
)

// Outcome is the outcome of a step. The driver makes one for each decision to run
// something, and passes it to [Plan.Add].
type Outcome struct {
	// Iteration and Step are those of the decision. Step is -1 if no step ran, because the
	// context ended before.
	Iteration int `json:"iteration"`
	Step      int `json:"step"`
	// Started and Finished are the beginning and the end of the step.
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	// Waited is the part of that time spent on the decision's Wait, in nanoseconds.
	Waited time.Duration `json:"waited_ns,omitzero"`
	// Limited is the part of that time in which the step waited until its provider accepted requests
	// again, in nanoseconds. It counts only as time of the loop.
	Limited time.Duration `json:"limited_ns,omitzero"`
	// Between is the driver's own time before the step, in nanoseconds, such as that of
	// callbacks around iterations. It counts as time of the loop, but not of an iteration.
	Between time.Duration `json:"between_ns,omitzero"`
	// Failure is set if the step failed.
	Failure *Failure `json:"failure,omitzero"`
	// Canceled says why the run was canceled during or before the step; "" if it was not.
	Canceled string `json:"canceled,omitzero"`
	// Exit is set if the step asked to leave the loop.
	Exit *Exit `json:"exit,omitzero"`
	// ExitWords says that the step wrote a call of exit_loop as text instead of making it. The
	// iteration's record reports this, and the loop continues.
	ExitWords bool `json:"exit_words,omitzero"`
	// State is the run's state after the step. Add reads it and does not keep it.
	State map[string]any `json:"state,omitzero"`
	// Left lists the keys of State with values from an earlier run or an earlier iteration
	// around a nested loop. Conditions and scores do not see them.
	Left []string `json:"left,omitzero"`
	// Wrote lists the keys of State that the step has written. nil means unknown; then every
	// key counts as written.
	Wrote []string `json:"wrote,omitzero"`
	// Usage is the usage of this step alone.
	Usage Usage `json:"usage,omitzero"`
	// Fingerprint identifies what the step produced; "" if unknown.
	Fingerprint string `json:"fingerprint,omitzero"`
	// StateSize is the state's size in bytes; 0 if unknown.
	StateSize int64 `json:"state_size,omitzero"`
	// Cached says that the step did not run and its earlier outcome is used again.
	Cached bool `json:"cached,omitzero"`
	// RolledBack says that the state has been restored, as Rollback or BeginLeg asked; Leg is the number of the
	// leg that begins, 0 after a Rollback. Step is -1 then.
	RolledBack bool `json:"rolled_back,omitzero"`
	Leg        int  `json:"leg,omitzero"`
}

// active returns the time of the step, including its delay.
func (o *Outcome) active() time.Duration {
	if o.Started.IsZero() || !o.Finished.After(o.Started) {
		return 0
	}
	return o.Finished.Sub(o.Started)
}

// took returns the time of the step without its delay and without the wait for a provider's limit.
func (o *Outcome) took() time.Duration { return max(0, o.active()-o.Waited-o.Limited) }

// addedOutcome is an outcome that Add is adding to a tally. Copies of a tally share the memory that their pointers and
// slices refer to, so this package never writes to that memory; it allocates new values instead.
type addedOutcome struct{ *Outcome }

// setFailure replaces the failure of the outcome. The caller's Outcome does not change.
func (o *addedOutcome) setFailure(f *Failure) {
	o.Outcome = new(*o.Outcome)
	o.Failure = f
}

// scope returns what expressions see of the tally and the outcome.
func (o *addedOutcome) scope(t *Tally) *scope { return &scope{t, o.visibleState()} }

// visibleState returns the state without the keys in Left.
func (o *addedOutcome) visibleState() map[string]any {
	if o.State == nil || len(o.Left) == 0 {
		return o.State
	}
	own := maps.Clone(o.State)
	for _, k := range o.Left {
		delete(own, k)
	}
	return own
}
