// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"encoding/json"
	"fmt"
	"time"
)

// StopReason says why a loop has stopped. Only ReasonError is a failure.
type StopReason string

// The stop reasons.
const (
	ReasonExit          StopReason = "exit_loop"      // a step called exit_loop
	ReasonEscalated     StopReason = "escalated"      // a step set Escalate without the tool
	ReasonImpossible    StopReason = "impossible"     // a step says that it cannot be done
	ReasonBlocked       StopReason = "blocked"        // a step cannot go on without help
	ReasonCondition     StopReason = "condition"      // StopWhen holds
	ReasonTarget        StopReason = "target_reached" // the score reached its target
	ReasonConverged     StopReason = "converged"      // the score hardly improves
	ReasonNoProgress    StopReason = "no_progress"    // the same again and again
	ReasonMaxIterations StopReason = "max_iterations" // the limit
	ReasonTimeout       StopReason = "timeout"        // the total time is over
	ReasonBudget        StopReason = "budget"         // the budget is spent
	ReasonError         StopReason = "error"          // a step failed, and policy says stop
	ReasonCanceled      StopReason = "canceled"       // from outside
)

// Failed reports whether the loop has failed: stopping is not failing.
func (r StopReason) Failed() bool { return r == ReasonError }

// Limit reports whether the loop ran into a limit: iterations, time or budget.
func (r StopReason) Limit() bool {
	return r == ReasonMaxIterations || r == ReasonTimeout || r == ReasonBudget
}

// Source says where a result comes from.
type Source string

// The sources of a result, the first that there is.
const (
	FromFinalizer Source = "finalizer" // the finalizer's answer
	FromBest      Source = "best"      // the iteration with the best score
	FromLast      Source = "last"      // the last complete iteration
	FromPartial   Source = "partial"   // whatever there is
)

// Result says which result a loop hands back.
type Result struct {
	Source Source `json:"source"`
	// Iteration is the one it comes from; for the finalizer the last one that ran.
	Iteration int `json:"iteration,omitzero"`
}

// StopRecord says why a loop has stopped and what it hands back.
type StopRecord struct {
	Loop   string     `json:"loop,omitzero"`
	Reason StopReason `json:"reason"`
	Detail string     `json:"detail,omitzero"` // for people
	// By is the agent that asked, or the step that failed.
	By string `json:"by,omitzero"`
	// Scope is what the exit wants to leave beyond this loop; see Exit.
	Scope string `json:"scope,omitzero"`
	// Iterations is how many are complete, Iteration the one it stopped in or after.
	Iterations int `json:"iterations"`
	Iteration  int `json:"iteration"`
	// Conditions lists every condition of the plan, at that moment.
	Conditions []ConditionRecord `json:"conditions"`
	// Nearest is the name of the condition that came closest without being
	// the reason; "" if none can be said to be close.
	Nearest string `json:"nearest,omitzero"`
	Result  Result `json:"result"`
	// BestScore and BestIteration are set if at least one iteration was scored.
	BestScore     *float64 `json:"best_score,omitzero"`
	BestIteration int      `json:"best_iteration,omitzero"`
	Usage         Usage    `json:"usage,omitzero"`
	// Elapsed is the time spent in steps, in JSON a text like "8m32s".
	Elapsed time.Duration `json:"-"`
	// Trend is where the scores were going.
	Trend Trend `json:"trend,omitzero"`
	// Rejections is how many iterations were not accepted, Rollbacks how many
	// of them were undone.
	Rejections int `json:"rejections,omitzero"`
	Rollbacks  int `json:"rollbacks,omitzero"`
	// Failures is how many steps have failed, Retries how many failures were
	// tried again, and Timeouts how many steps and iterations ran out of time.
	Failures int `json:"failures,omitzero"`
	Retries  int `json:"retries,omitzero"`
	Timeouts int `json:"timeouts,omitzero"`
	// CacheHits is how many steps were not run because their earlier outcome stood.
	CacheHits int `json:"cache_hits,omitzero"`
	// StateSize is the state's size in bytes at the end, 0 if unknown.
	StateSize int64 `json:"state_size,omitzero"`
	// Refusals is how many exits were refused, Refused the last few of them.
	Refusals int       `json:"refusals,omitzero"`
	Refused  []Refusal `json:"refused,omitzero"`
	// ScoreNote says why the last iteration has no score though the plan wants one.
	ScoreNote string `json:"score_note,omitzero"`
	// FinalizerFailure says how the finalizer failed; "": it did not.
	FinalizerFailure string `json:"finalizer_failure,omitzero"`
	// Events and Digest seal the log of the loop: how many events there were
	// before the record, and a hash over them and over the record. A driver
	// that keeps a log sets them.
	Events int    `json:"events,omitzero"`
	Digest string `json:"digest,omitzero"`
}

// ConditionRecord is one condition of a plan at the moment of the stop.
type ConditionRecord struct {
	Name      string `json:"name"` // exit_loop, stop_when, stop_when.any[0], target, converged, no_progress, not_worth, timeout, budget.calls, max_iterations, …
	Expr      string `json:"expr,omitzero"`
	Value     string `json:"value,omitzero"`
	Threshold string `json:"threshold,omitzero"`
	Holds     bool   `json:"holds"`
	Fired     bool   `json:"fired"` // it is the reason
	Note      string `json:"note,omitzero"`
}

type stopJSON struct {
	*plainStop
	Elapsed string `json:"elapsed"`
}

type plainStop StopRecord

// MarshalJSON writes Elapsed as a text.
func (r StopRecord) MarshalJSON() ([]byte, error) {
	return json.Marshal(stopJSON{plainStop: (*plainStop)(&r), Elapsed: r.Elapsed.String()})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *StopRecord) UnmarshalJSON(b []byte) error {
	*r = StopRecord{}
	j := stopJSON{plainStop: (*plainStop)(r)}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	if j.Elapsed == "" {
		return nil
	}
	d, err := time.ParseDuration(j.Elapsed)
	if err != nil {
		return fmt.Errorf("read elapsed: %w", err)
	}
	r.Elapsed = d
	return nil
}
