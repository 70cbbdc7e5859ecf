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

// planTally is the part of a tally that only a plan reads, in parts by concept. Each part is in the file of its concept.
// JSON has the fields of all parts beside those of the tally.
type planTally struct {
	runningIteration // iteration.go: the iteration that runs
	endedIterations  // iteration.go: the iterations that have ended
	stepRuns         // step.go: runs of steps, attempts and circuits
	usageTotals      // usage.go: usage and costs of the loop
	refusals         // exit.go: refused requests to leave
	interruption     // reopen.go: a cancellation, or a limit that cut a step short
	finalPhase       // final.go: rollback and finalizer after the reason to stop

	lastScore  // score.go: score of the last iteration
	ranking    // accept.go: the accepted score and the best version
	baseline   // baseline.go: score before the first iteration
	judgement  // judge.go: answers of the judge
	legTally   // leg.go: what begins again with each leg
	plateau    // plateau.go: what counts towards convergence
	repetition // noprogress.go: results that repeat
	conditions // evaluate.go: results of StopWhen

	// Watched holds the values that findings are computed from.
	Watched findingValues `json:"watched,omitzero"`
}

// endedIterations returns the number of iterations that have ended.
func (t *Tally) endedIterations() int {
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
