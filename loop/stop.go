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
	ReasonImpossible    StopReason = "impossible"     // a step reports that the work cannot be done
	ReasonBlocked       StopReason = "blocked"        // a step cannot continue without help
	ReasonCondition     StopReason = "condition"      // StopWhen holds
	ReasonTarget        StopReason = "target_reached" // the score reached its target
	ReasonConverged     StopReason = "converged"      // the score hardly improves
	ReasonNoProgress    StopReason = "no_progress"    // the results repeat
	ReasonMaxIterations StopReason = "max_iterations" // the limit of iterations is reached
	ReasonTimeout       StopReason = "timeout"        // the total time limit is reached
	ReasonBudget        StopReason = "budget"         // the budget is spent
	ReasonError         StopReason = "error"          // a step failed, and the error policy stops the loop
	ReasonCanceled      StopReason = "canceled"       // the run was canceled
)

// Failed reports whether the loop has failed, which only [ReasonError] means.
func (r StopReason) Failed() bool { return r == ReasonError }

// Limit reports whether the loop reached a limit of iterations, time or budget.
func (r StopReason) Limit() bool {
	return r == ReasonMaxIterations || r == ReasonTimeout || r == ReasonBudget
}

// Source says which step or iteration a result comes from.
type Source string

// The sources of a result, in the order of precedence.
const (
	FromFinalizer Source = "finalizer" // the finalizer's answer
	FromBest      Source = "best"      // the iteration with the best score
	FromLast      Source = "last"      // the last complete iteration
	FromPartial   Source = "partial"   // an incomplete iteration
)

// Result says which result a loop hands back.
type Result struct {
	Source Source `json:"source"`
	// Iteration is the iteration that the result comes from; for the finalizer the last one
	// that ran.
	Iteration int `json:"iteration,omitzero"`
}

// StopRecord says why a loop has stopped and what it hands back. JSON has the fields of its parts beside its own.
type StopRecord struct {
	Loop   string     `json:"loop,omitzero"`
	Reason StopReason `json:"reason"`
	Detail string     `json:"detail,omitzero"` // for people
	// By is the agent that asked, or the step that failed.
	By string `json:"by,omitzero"`
	// NoneSucceeded is true if the loop ended without a fatal error, and failed because none of its iterations succeeded.
	NoneSucceeded bool `json:"none_succeeded,omitzero"`
	// Scope is the scope of an exit that leaves more than this loop; see Exit.
	Scope string `json:"scope,omitzero"`
	// Iterations is the number of complete iterations. The loop stopped in or after
	// Iteration.
	Iterations int `json:"iterations"`
	Iteration  int `json:"iteration"`
	// Conditions lists every condition of the plan, at that moment.
	Conditions []ConditionRecord `json:"conditions"`
	// Nearest is the name of the condition that was closest to being the reason; "" if
	// none was close.
	Nearest string `json:"nearest,omitzero"`
	Result  Result `json:"result"`
	// Answer is the text of the result, for a loop that does not yield it as an event, because the loop was canceled or
	// has only the features of ADK's loops. It is "" if the last event of the loop has the result.
	Answer string `json:"answer,omitzero"`
	BestVersion
	// Proof says how sure the reason is. It is nil if the reason does not depend on scores with noise, for example at a
	// limit.
	Proof *Proof `json:"proof,omitzero"`
	Usage Usage  `json:"usage,omitzero"`
	// Leg is the number of the leg in which the loop stopped; 0 before the first. See Plan.OnPlateau.
	Leg int `json:"leg,omitzero"`
	// Elapsed is the time spent in steps. In JSON it is a text like "8m32s".
	Elapsed time.Duration `json:"-"`
	// Trend is the direction of the scores.
	Trend Trend `json:"trend,omitzero"`
	StopHistory
	StopSeal
}

// BestVersion is the best version of a loop, as its stop record has it.
type BestVersion struct {
	// BestScore and BestIteration are set if at least one iteration was scored.
	BestScore     *float64 `json:"best_score,omitzero"`
	BestIteration int      `json:"best_iteration,omitzero"`
	// BestError is the standard error of a judge's BestScore: the score is off by ± BestError, by chance. It is 0 if that
	// is unknown, and for exact scores.
	BestError float64 `json:"best_error,omitzero"`
}

// StopHistory is what has happened in a loop before its end, as its stop record has it.
type StopHistory struct {
	// Rejections is the number of rejected iterations, Rollbacks the number of those that
	// were undone.
	Rejections int `json:"rejections,omitzero"`
	Rollbacks  int `json:"rollbacks,omitzero"`
	// Failures is the number of failed steps, Retries the number of retried failures,
	// and Timeouts the number of steps and iterations that ran out of time.
	Failures int `json:"failures,omitzero"`
	Retries  int `json:"retries,omitzero"`
	Timeouts int `json:"timeouts,omitzero"`
	// CacheHits is the number of steps that did not run because their earlier outcome was
	// used again.
	CacheHits int `json:"cache_hits,omitzero"`
	// StateSize is the state's size in bytes at the end, 0 if unknown.
	StateSize int64 `json:"state_size,omitzero"`
	// Refusals is the number of refused exits, and Refused lists the last few of them.
	Refusals int       `json:"refusals,omitzero"`
	Refused  []Refusal `json:"refused,omitzero"`
	// ScoreNote says why the last iteration has no score although the plan has one.
	ScoreNote string `json:"score_note,omitzero"`
	// FinalizerFailure says how the finalizer failed; "" if it did not fail.
	FinalizerFailure string `json:"finalizer_failure,omitzero"`
}

// StopSeal is the seal of a stop record.
type StopSeal struct {
	// Events and Digest are the seal of the log: the number of events of the run before the
	// record, and a hash over them and the record; see package seal. In logs of older versions
	// they cover only the events of the loop. A driver that keeps a log sets them.
	Events int    `json:"events,omitzero"`
	Digest string `json:"digest,omitzero"`
}

// Proof says how sure the stop reason is, if scores with noise led to it.
type Proof struct {
	// Odds says how many times better the last Scores scores fit a loop that has stopped gaining than one that gains
	// Gain in every iteration. It is at most a million, and 0 unless the loop has converged.
	Odds   float64 `json:"odds,omitzero"`
	Scores int     `json:"scores,omitzero"`
	Gain   float64 `json:"gain,omitzero"`
	// Chance is a probability from 0 to 1: for ReasonTarget that the mean of very many answers also reaches the target;
	// for NotWorth, which sets Scores and Gain too, that an iteration gains less than Gain, its price. It is 0 for other
	// reasons.
	Chance float64 `json:"chance,omitzero"`
}

// ConditionRecord is one condition of a plan at the moment of the stop. Value, Threshold and Note are for people; Unit, Have, Bound,
// Who and Circles say the same to programs. Records of older versions have only the texts.
type ConditionRecord struct {
	Name      string `json:"name"` // exit_loop, stop_when, stop_when.any[0], target, converged, no_progress, not_worth, timeout, budget.calls, max_iterations, …
	Expr      string `json:"expr,omitzero"`
	Value     string `json:"value,omitzero"`
	Threshold string `json:"threshold,omitzero"`
	Holds     bool   `json:"holds"`
	Fired     bool   `json:"fired"` // the condition is the stop reason
	Note      string `json:"note,omitzero"`
	// Unit is the unit of Have and Bound. Without a Unit these are absent.
	Unit Unit `json:"unit,omitzero"`
	// Have is the value, and Bound the value at which the condition holds. A nil Have means unknown, not zero.
	Have  *float64 `json:"have,omitzero"`
	Bound *float64 `json:"bound,omitzero"`
	// Who lists the agents that may ask to leave; nil means any step, and an empty list none. Only exit_loop has it.
	Who []string `json:"who,omitzero"`
	// Circles has the counts of no_progress; nil for any other condition.
	Circles *Circles `json:"circles,omitzero"`
}

// Circles counts the repetitions that [NoProgress] looks for.
type Circles struct {
	// Repeats is how often in a row the last result came. The loop ends at MaxRepeats.
	Repeats    int `json:"repeats"`
	MaxRepeats int `json:"max_repeats"`
	// Swings is how often in a row two results alternated. The loop ends at MaxSwings.
	Swings    int `json:"swings"`
	MaxSwings int `json:"max_swings"`
}

// Repeating reports whether the last result came MaxRepeats times in a row.
func (c *Circles) Repeating() bool { return c.Repeats >= c.MaxRepeats }

// Swinging reports whether two results alternated MaxSwings times in a row.
func (c *Circles) Swinging() bool { return c.Swings >= c.MaxSwings }

type stopJSON struct {
	*plainStop
	Elapsed string `json:"elapsed"`
}

type plainStop StopRecord

// MarshalJSON writes Elapsed as a text.
func (r StopRecord) MarshalJSON() ([]byte, error) {
	return json.Marshal(stopJSON{plainStop: (*plainStop)(&r), Elapsed: r.Elapsed.String()})
}

// UnmarshalJSON reads the form that MarshalJSON writes.
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
