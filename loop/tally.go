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

	tallied
}

// tallied is the part of a tally that only a plan reads. Its fields are exported for
// JSON.
type tallied struct {
	// Started is when the first step started.
	Started time.Time `json:"started,omitzero"`
	// IterationActive is the time spent in the running iteration, without the delays
	// around it, in nanoseconds.
	IterationActive time.Duration `json:"iteration_active_ns,omitzero"`
	// After is the delay that the last step has asked for.
	After time.Duration `json:"after_ns,omitzero"`
	// Steps is how many steps have run, the finalizer excluded; a retried or
	// sampled step is one.
	Steps int `json:"steps,omitzero"`
	// Place is how many places of the iteration are done.
	Place int `json:"place,omitzero"`
	// LastComplete is the last complete iteration.
	LastComplete int `json:"last_complete,omitzero"`
	// Worked is how many steps of the iteration have succeeded, Succeeded how many
	// iterations: those that are complete, or were left by an exit, and in which a
	// step succeeded. Barren is how many others came one after another up to now.
	Worked    int `json:"worked,omitzero"`
	Succeeded int `json:"succeeded,omitzero"`
	Barren    int `json:"barren,omitzero"`
	// ExitWords is the last step of the iteration that wrote a call of exit_loop in
	// words, and did not make it; empty if none did.
	ExitWords string `json:"exit_words,omitzero"`
	// Fresh says that the last outcome has ended the iteration.
	Fresh bool `json:"fresh,omitzero"`

	// Attempt is how often the step that is due has failed already; Retries
	// counts all such failures.
	Attempt int `json:"attempt,omitzero"`
	Retries int `json:"retries,omitzero"`
	// RetryAfter is how long the last such failure asks to wait, in nanoseconds.
	RetryAfter time.Duration `json:"retry_after_ns,omitzero"`
	// Timeouts counts steps and iterations that ran out of time.
	Timeouts int `json:"timeouts,omitzero"`
	// CacheHits counts steps whose earlier outcome stood.
	CacheHits int `json:"cache_hits,omitzero"`
	// PerStep is by index in Plan.Steps, as far as the plan needs it.
	PerStep []stepTally `json:"per_step,omitzero"`
	// Idle is how many steps one after another were not run, because their
	// circuits were open.
	Idle int `json:"idle,omitzero"`
	// TimedOut and Spent say which limit ended the loop from within a step.
	TimedOut string `json:"timed_out,omitzero"`
	Spent    string `json:"spent,omitzero"`
	// Bounds are what the plan's limits were then; see Reopen.
	Bounds *bounds `json:"bounds,omitzero"`

	// Scored counts all scores.
	Scored int `json:"scored,omitzero"`
	// Accepted is the last accepted score, from which the next improvement counts.
	Accepted *float64 `json:"accepted,omitzero"`
	// Rejections and Rollbacks count iterations; RollbackDue says that the state
	// is to be restored before anything else, if the loop is not broken off.
	Rejections  int  `json:"rejections,omitzero"`
	Rollbacks   int  `json:"rollbacks,omitzero"`
	RollbackDue bool `json:"rollback_due,omitzero"`
	// Undone says that the iteration under way has been rolled back: what its
	// steps had made is gone.
	Undone bool `json:"undone,omitzero"`
	// BestCount is how many of the judge's answers Best is the mean of. Course are the last scores by which
	// convergence is proved.
	BestCount int     `json:"best_count,omitzero"`
	Course    []point `json:"course,omitzero"`
	// Rejudge says that the judge is due once more, for the best, whose state a rollback has restored. Rejudged is what it
	// said, until the next iteration ends.
	Rejudge  bool      `json:"rejudge,omitzero"`
	Rejudged *Rejudged `json:"rejudged,omitzero"`
	// BaselineOver says that what was there before the first iteration has been scored, or cannot be. Start is that
	// score, of StartCount answers; StartNote says why there is none.
	BaselineOver bool     `json:"baseline_over,omitzero"`
	Start        *float64 `json:"start,omitzero"`
	StartCount   int      `json:"start_count,omitzero"`
	StartNote    string   `json:"start_note,omitzero"`
	// LegScored is how many scores there were when the running leg began. Own is the best of a leg from the loop's start.
	LegScored int  `json:"leg_scored,omitzero"`
	Own       best `json:"own,omitzero"`
	// Flat is how many times running the improvement was too small.
	Flat uint `json:"flat,omitzero"`
	// FlatBy is the threshold that the last improvement stayed below.
	FlatBy string `json:"flat_by,omitzero"`
	// Score is that of the last iteration that ended, nil if it has none.
	Score     *float64 `json:"score,omitzero"`
	ScoreNote string   `json:"score_note,omitzero"`
	// Dimensions are those of that score, by name.
	Dimensions []Dimension `json:"dimensions,omitzero"`
	// ScoreWritten says that a step of the iteration has written a key that the score
	// is read from.
	ScoreWritten bool `json:"score_written,omitzero"`
	// Met is the best of the iterations, one after another up to now, at whose end
	// StopWhen held, its For apart; 0 if it did not hold. MetScore is its score.
	Met      int      `json:"met,omitzero"`
	MetScore *float64 `json:"met_score,omitzero"`
	// Watched is what findings are made from.
	Watched watched `json:"watched,omitzero"`
	// Judge is what the judge's samples have shown.
	Judge judgeTally `json:"judge,omitzero"`
	// Rival is the version that the judge compares others with; zero if it marks them.
	Rival rival `json:"rival,omitzero"`

	// Print stands for what the running iteration has produced; Prints are
	// those of the last two iterations before, the older one first.
	Print  uint64   `json:"print,omitzero"`
	Prints []uint64 `json:"prints,omitzero"`
	// Repeats is how often running the same came out, Turns for how many
	// iterations running two results have taken turns, and Swings how often they
	// have: half of Turns.
	Repeats int `json:"repeats,omitzero"`
	Turns   int `json:"turns,omitzero"`
	Swings  int `json:"swings,omitzero"`
	// Worth is what the next iteration is expected to gain, as NotWorth measures
	// it; nil if that cannot be said.
	Worth *float64 `json:"worth,omitzero"`
	// StateSize is the state's size in bytes when the last iteration ended.
	StateSize int64 `json:"state_size,omitzero"`

	// Truths are those of the plan's conditions at the last look; Looked says
	// that it was at the last outcome.
	Truths []truth `json:"truths,omitzero"`
	Looked bool    `json:"looked,omitzero"`

	// IterationFailures counts the failed steps of this iteration, FailuresRunning
	// those that failed one after another up to now.
	IterationFailures int  `json:"iteration_failures,omitzero"`
	FailuresRunning   uint `json:"failures_running,omitzero"`
	// Canceled says why the run was canceled.
	Canceled string `json:"canceled,omitzero"`
	// Refusals counts the exits that were not allowed; Refused are the last few.
	Refusals int       `json:"refusals,omitzero"`
	Refused  []Refusal `json:"refused,omitzero"`

	Usage Usage `json:"usage,omitzero"`
	// CostUnknown says that some usage had no price; the total then has none.
	// KnownCost is that of the rest, which the budget counts nonetheless.
	CostUnknown bool    `json:"cost_unknown,omitzero"`
	KnownCost   float64 `json:"known_cost,omitzero"`

	// Finalized says that the finalizer has run, FinalizerFailure how it failed.
	Finalized        bool   `json:"finalized,omitzero"`
	FinalizerFailure string `json:"finalizer_failure,omitzero"`
	// FinalUsage and FinalActive are what has been used since the loop has its
	// reason to stop, by a rollback and by the finalizer: no limit of the
	// iterations counts it. The cost is what is known of it.
	FinalUsage  Usage         `json:"final_usage,omitzero"`
	FinalActive time.Duration `json:"final_active_ns,omitzero"`
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

// StepFailure is a failure with the name of the step.
type StepFailure struct {
	Step string `json:"step,omitzero"`
	Failure
	// Running is the number of steps that failed in a row, if that was too many.
	Running uint `json:"running,omitzero"`
}

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
	// Baseline is the score of what was there before the first iteration, in the record of that iteration. nil if the
	// plan asks for none, or if there is none.
	Baseline *float64 `json:"baseline,omitzero"`
	// Rejudged is what the judge said about the best before this iteration, after a rollback; nil if it was not asked.
	Rejudged *Rejudged `json:"rejudged,omitzero"`
	// Best says that the score is the best so far. Met says that it is
	// Tally.Met.
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
