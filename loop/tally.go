// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"encoding/json"
	"time"
)

// Bounds of a tally, whatever the number of iterations.
const (
	maxScores   = 64  // recent scores
	maxRefusals = 5   // recent refusals
	maxText     = 300 // bytes of a message
	maxSamples  = 32  // samples of a judge
	maxDims     = 32  // dimensions of a score
)

// Tally records what has happened in a loop so far, as counts and recent scores, without texts
// from the state. Its zero value is a loop in which nothing has happened yet. [Plan.Add]
// changes a Tally; an earlier copy stays as it was. The JSON includes the unexported fields.
type Tally struct {
	// Iteration is the running iteration, or the one that has just ended; 0 before
	// the first. Complete is the number of complete iterations.
	Iteration int `json:"iteration,omitzero"`
	Complete  int `json:"complete,omitzero"`
	// Ended is the record of the iteration if it has ended.
	Ended IterationRecord `json:"ended,omitzero"`
	// Scores are the last 64 scores, oldest first.
	Scores []float64 `json:"scores,omitzero"`
	// Best is the best score, nil if there is none, and BestIteration its iteration.
	Best          *float64 `json:"best,omitzero"`
	BestIteration int      `json:"best_iteration,omitzero"`
	// Leg is the number of the running leg, from 1; 0 before the first. See Plan.OnPlateau.
	Leg int `json:"leg,omitzero"`
	// Failures is the number of failed steps.
	Failures int `json:"failures,omitzero"`
	// Fatal is the failure that ends the loop, LastFailure the last failure of any.
	Fatal       *StepFailure `json:"fatal,omitzero"`
	LastFailure *StepFailure `json:"last_failure,omitzero"`
	// Exit is the exit that ends the loop.
	Exit *Exit `json:"exit,omitzero"`
	// Active is the time spent in steps, rollbacks and delays, and between them, in
	// nanoseconds.
	Active time.Duration `json:"active_ns,omitzero"`
	// Between is the time that the driver has used since the last outcome, in nanoseconds. The
	// next step's time is shorter by it; Outcome.Between reports it to Add.
	Between time.Duration `json:"between_ns,omitzero"`

	planTally
}

// planTally is the part of a tally that only a plan reads. Its fields are exported for
// JSON.
type planTally struct {
	// Started is when the first step started.
	Started time.Time `json:"started,omitzero"`
	// IterationActive is the time spent in the running iteration, without the delays
	// around it, in nanoseconds.
	IterationActive time.Duration `json:"iteration_active_ns,omitzero"`
	// After is the delay after the last step.
	After time.Duration `json:"after_ns,omitzero"`
	// Steps is the number of steps that have run, without the finalizer. A step that was retried or sampled counts
	// once.
	Steps int `json:"steps,omitzero"`
	// Place is the number of places of the iteration that are done.
	Place int `json:"place,omitzero"`
	// LastComplete is the last complete iteration.
	LastComplete int `json:"last_complete,omitzero"`
	// Worked is the number of steps of the iteration that have succeeded. Succeeded is the number of iterations that
	// were complete with at least one successful step, or were left by an exit. Barren is the number of other
	// iterations since the last such one.
	Worked    int `json:"worked,omitzero"`
	Succeeded int `json:"succeeded,omitzero"`
	Barren    int `json:"barren,omitzero"`
	// ExitWords is the name of the last step of the iteration that wrote a call of exit_loop as text instead of making
	// it; "" if there is none.
	ExitWords string `json:"exit_words,omitzero"`
	// Fresh says that the last outcome has ended the iteration.
	Fresh bool `json:"fresh,omitzero"`

	// Attempt is how often the step that is due has already failed. Retries counts all failures that were retried.
	Attempt int `json:"attempt,omitzero"`
	Retries int `json:"retries,omitzero"`
	// RetryAfter is the wait that the last such failure asks for, in nanoseconds.
	RetryAfter time.Duration `json:"retry_after_ns,omitzero"`
	// Timeouts counts steps and iterations that ran out of time.
	Timeouts int `json:"timeouts,omitzero"`
	// CacheHits counts steps that did not run because their earlier outcome was used again.
	CacheHits int `json:"cache_hits,omitzero"`
	// PerStep has the histories of the steps, by index in Plan.Steps. It may be shorter than Plan.Steps.
	PerStep []stepTally `json:"per_step,omitzero"`
	// Idle is the number of steps in a row that did not run because their circuits were open.
	Idle int `json:"idle,omitzero"`
	// TimedOut and Spent say which limit of time or budget ended the loop in the middle of a step.
	TimedOut string `json:"timed_out,omitzero"`
	Spent    string `json:"spent,omitzero"`
	// Bounds has the plan's limits at that time; see Reopen.
	Bounds *bounds `json:"bounds,omitzero"`

	// Scored counts all scores.
	Scored int `json:"scored,omitzero"`
	// Accepted is the last accepted score, from which the next improvement counts.
	Accepted *float64 `json:"accepted,omitzero"`
	// Rejections and Rollbacks count iterations. RollbackDue says that the driver must restore the state before
	// anything else, unless the loop ends by an error or a cancellation.
	Rejections  int  `json:"rejections,omitzero"`
	Rollbacks   int  `json:"rollbacks,omitzero"`
	RollbackDue bool `json:"rollback_due,omitzero"`
	// Undone says that the running iteration has been rolled back, so that the results of its steps are gone.
	Undone bool `json:"undone,omitzero"`
	// BestCount is the number of the judge's answers that Best is the mean of. Course has the last scores, from which
	// convergence is proved.
	BestCount int     `json:"best_count,omitzero"`
	Course    []point `json:"course,omitzero"`
	// Rejudge says that the judge must score the best version once more, because a rollback has restored its state.
	// Rejudged is its answer, until the next iteration ends.
	Rejudge  bool      `json:"rejudge,omitzero"`
	Rejudged *Rejudged `json:"rejudged,omitzero"`
	// BaselineOver says that the baseline has ended, with or without a score. Start is the score of the state before
	// the first iteration, the mean of StartCount answers. StartNote says why there is none.
	BaselineOver bool     `json:"baseline_over,omitzero"`
	Start        *float64 `json:"start,omitzero"`
	StartCount   int      `json:"start_count,omitzero"`
	StartNote    string   `json:"start_note,omitzero"`
	// LegScored is the number of scores before the running leg began. Own is the best version of a leg that began from
	// the loop's start.
	LegScored int  `json:"leg_scored,omitzero"`
	Own       best `json:"own,omitzero"`
	// Flat is the number of times in a row that the improvement was too small.
	Flat uint `json:"flat,omitzero"`
	// FlatBy is the threshold that the last improvement stayed below.
	FlatBy string `json:"flat_by,omitzero"`
	// Score is the score of the last iteration that ended, nil if it has none; ScoreNote then says why.
	Score     *float64 `json:"score,omitzero"`
	ScoreNote string   `json:"score_note,omitzero"`
	// Dimensions are those of that score, by name.
	Dimensions []Dimension `json:"dimensions,omitzero"`
	// ScoreWritten says that a step of the iteration has written a state key that the score is read from.
	ScoreWritten bool `json:"score_written,omitzero"`
	// Met is the best of the last consecutive iterations after which StopWhen held, without regard to its For; 0 if it
	// did not hold. MetScore is the score of that iteration.
	Met      int      `json:"met,omitzero"`
	MetScore *float64 `json:"met_score,omitzero"`
	// Watched holds the values that findings are computed from.
	Watched findingValues `json:"watched,omitzero"`
	// Judge has the judge's samples and their statistics.
	Judge judgeTally `json:"judge,omitzero"`
	// Rival is the version that the judge compares others with; zero if the judge gives marks.
	Rival rival `json:"rival,omitzero"`

	// Print is the fingerprint of the results of the running iteration. Prints has the fingerprints of the last two
	// iterations before it, the older first.
	Print  uint64   `json:"print,omitzero"`
	Prints []uint64 `json:"prints,omitzero"`
	// Repeats is the number of iterations in a row with the same result. Turns is the number of iterations in a row in
	// which two results alternate, and Swings is half of Turns.
	Repeats int `json:"repeats,omitzero"`
	Turns   int `json:"turns,omitzero"`
	Swings  int `json:"swings,omitzero"`
	// Worth is the expected gain of the next iteration, in the unit of NotWorth; nil if it is unknown. Outlook is where it
	// comes from; nil by the rules before version 4.
	Worth   *float64 `json:"worth,omitzero"`
	Outlook *outlook `json:"outlook,omitzero"`
	// StateSize is the state's size in bytes when the last iteration ended.
	StateSize int64 `json:"state_size,omitzero"`

	// Truths has the results of the last evaluation of StopWhen. Looked says that the last outcome caused it.
	Truths []conditionResult `json:"truths,omitzero"`
	Looked bool              `json:"looked,omitzero"`

	// IterationFailures counts the failed steps of this iteration. FailuresRunning counts the last steps that failed in
	// a row.
	IterationFailures int  `json:"iteration_failures,omitzero"`
	FailuresRunning   uint `json:"failures_running,omitzero"`
	// Canceled says why the run was canceled.
	Canceled string `json:"canceled,omitzero"`
	// Refusals counts the exits that were refused; Refused has the last 5 of them.
	Refusals int       `json:"refusals,omitzero"`
	Refused  []Refusal `json:"refused,omitzero"`

	Usage Usage `json:"usage,omitzero"`
	// CostUnknown says that some usage had no price, so that the total cost is unknown. KnownCost is the cost of the
	// rest, which the budget still counts.
	CostUnknown bool    `json:"cost_unknown,omitzero"`
	KnownCost   float64 `json:"known_cost,omitzero"`

	// Finalized says that the finalizer has run, FinalizerFailure how it failed.
	Finalized        bool   `json:"finalized,omitzero"`
	FinalizerFailure string `json:"finalizer_failure,omitzero"`
	// FinalUsage and FinalActive are the usage and the time, by a rollback and by the finalizer, since the loop has its
	// reason to stop. The limits of the iterations do not count them. The cost is the known part of it.
	FinalUsage  Usage         `json:"final_usage,omitzero"`
	FinalActive time.Duration `json:"final_active_ns,omitzero"`
}

// ended returns the number of iterations that have ended.
func (t *Tally) ended() int {
	if t.Ended.Number == 0 {
		return max(0, t.Iteration-1)
	}
	return t.Iteration
}

// UnmarshalJSON reads a tally. It allocates new lists, because those of t may be shared with a
// copy.
func (t *Tally) UnmarshalJSON(b []byte) error {
	type plain Tally
	var fresh plain
	if err := json.Unmarshal(b, &fresh); err != nil {
		return err
	}
	*t = Tally(fresh)
	return nil
}
