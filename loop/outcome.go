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

// Exit is a step's request to leave the loop.
type Exit struct {
	// By is the name of the agent that asks; "" means the step.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Status is "" if the work is done, else StatusImpossible or StatusBlocked.
	Status string `json:"status,omitzero"`
	// Scope says which loops to leave: "" for the nearest one, a loop's name for that loop, or
	// "all".
	Scope string `json:"scope,omitzero"`
	// Score is the agent's own score of the iteration, which replaces the plan's.
	Score *float64 `json:"score,omitzero"`
	// Waits says that the step waits for a person's answer. Such an exit needs no
	// permission.
	Waits bool `json:"waits,omitzero"`
	// Escalated is true for a plain Escalate flag without a call of exit_loop.
	Escalated bool `json:"escalated,omitzero"`
}

// The statuses of an exit that gives up.
const (
	StatusImpossible = "impossible"
	StatusBlocked    = "blocked"
)

// Usage is the usage of model calls.
type Usage struct {
	Calls        int64 `json:"calls,omitzero"`
	InputTokens  int64 `json:"input_tokens,omitzero"`
	OutputTokens int64 `json:"output_tokens,omitzero"`
	// EstimatedTokens is the part of the tokens that is estimated, because no provider has
	// reported it.
	EstimatedTokens int64 `json:"estimated_tokens,omitzero"`
	// CachedTokens is the part of the input tokens that came from the provider's cache. CacheSaved is how
	// much less the input has cost than without a cache. It is negative if writing to the cache cost more
	// than reading from it saved.
	CachedTokens int64   `json:"cached_tokens,omitzero"`
	CacheSaved   float64 `json:"cache_saved,omitzero"`
	// Cost is in the currency of the price list. nil means unknown, not zero.
	Cost *float64 `json:"cost,omitzero"`
}

func (u *Usage) tokens() int64 { return u.InputTokens + u.OutputTokens }

func (u *Usage) cost() float64 {
	if u.Cost == nil {
		return 0
	}
	return *u.Cost
}

// Refusal is an exit that was not allowed.
type Refusal struct {
	Iteration int    `json:"iteration"`
	By        string `json:"by"`
	Reason    string `json:"reason,omitzero"`
}

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
