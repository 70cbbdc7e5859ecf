// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/internal/values/canonical"
)

// Kind says what a [Mark] records.
type Kind string

// The kinds of mark, with what their Data holds.
const (
	// KindStepStarted: a step begins. No data.
	KindStepStarted Kind = "step_started"
	// KindStepFinished: a step ended. Data is a [StepFinished].
	KindStepFinished Kind = "step_finished"
	// KindLoopStarted: a loop begins. Data is its loop.Plan.
	KindLoopStarted Kind = "loop_started"
	// KindLoopContinued: a loop that a limit had stopped continues. Data is its
	// loop.Plan, with the new limits.
	KindLoopContinued Kind = "loop_continued"
	// KindIterationFinished: an iteration of a loop ended. Data is a
	// loop.IterationRecord.
	KindIterationFinished Kind = "iteration_finished"
	// KindLegStarted: a loop that has converged goes on with other settings, and the event's state delta restores the
	// state from which it does. Data is a [LegStarted].
	KindLegStarted Kind = "leg_started"
	// KindHinted: an iteration of a loop begins, and its agents get what people have told the run. Data is a [Hinted].
	KindHinted Kind = "hinted"
	// KindRolledBack: an iteration was not accepted, and the event's state delta
	// undoes it. Data is a [RolledBack].
	KindRolledBack Kind = "rolled_back"
	// KindLoopStopped: a loop ended. Data is a loop.StopRecord.
	KindLoopStopped Kind = "loop_stopped"
	// KindRaceDecided: loops that ran side by side have ended, or come to the end of their slices, and the best is
	// known. Data is a [RaceDecided]. The event has the address of the agent that runs them.
	KindRaceDecided Kind = "race_decided"
	// KindDispatched: the step is about to make calls that must not be made twice.
	// Data is a [Dispatched].
	KindDispatched Kind = "dispatched"
	// KindRequested: the step is about to send a request to a model. Data is a [Requested].
	KindRequested Kind = "requested"
	// KindRunResumed: a run that was cut off continues. Data is a [RunResumed]. The
	// event's state delta undoes the changes of the superseded events.
	KindRunResumed Kind = "run_resumed"
	// KindReconciled: the step's Reconcile function reported whether an interrupted call took place. Data
	// is a [Reconciled]. The event has the step's address.
	KindReconciled Kind = "reconciled"
	// KindAsked: a step asks a person. Data is a [Question]. The event has the step's
	// address.
	KindAsked Kind = "asked"
	// KindAnswered: a person answered. Data is an [Answer].
	KindAnswered Kind = "answered"
	// KindLimited: the provider of the step accepts no requests for now, and the step waits. Data is a
	// [Limited]. KindLimitOver: that wait has ended. No data.
	KindLimited   Kind = "limited"
	KindLimitOver Kind = "limit_over"
)

// The kinds of mark of a run as a whole. A supervisor writes them; they have no address.
const (
	// KindRunStarted: the run begins. It is on the event with the user's message. Data
	// is a [RunStarted].
	KindRunStarted Kind = "run_started"
	// KindRunTaken: another process drives the run now. Data is a [RunTaken].
	KindRunTaken Kind = "run_taken"
	// KindRunPaused: the run stands still until it is resumed. Data is a [RunPaused].
	KindRunPaused Kind = "run_paused"
	// KindRunEnded: the run has ended. Data is a [RunEnded].
	KindRunEnded Kind = "run_ended"
)

// MetadataNotRun is a key of an event's CustomMetadata. On a [KindStepStarted] it says that the step does
// not run: the event that finishes it follows at once.
const MetadataNotRun = "refrain:notRun"

// DoingWaits begins a line of [MetadataDoing] about a provider that does not answer.
const DoingWaits = "waits: "

// MetadataDoing is a key of the CustomMetadata of a partial event, which is not logged. Its value says in one line
// what the step's program does, such as "runs go test ./...".
const MetadataDoing = "refrain:doing"

// MetadataWarning is a key of an event's CustomMetadata. Its value warns a person about the step, such as
// that the state is near its limit.
const MetadataWarning = "refrain:warning"

// Mark is a fact about the run itself, which a durable runner writes into the log.
// Progress, diagnosis and resuming read the marks.
type Mark struct {
	Kind Kind `json:"kind"`
	// Data is the kind's own record, as JSON.
	Data json.RawMessage `json:"data,omitempty"`
	// Batch says that the agent yields its next event at once after the mark, with no effect on the outside
	// world in between. A runner may store the two together. Batch is not stored.
	Batch bool `json:"-"`
	// Asks says of a start that joins that the event after it is a [KindRequested]. The start then waits for
	// that event also behind the end of a step that does more than compute. Asks is not stored.
	Asks bool `json:"-"`
}

// StepFinished is the data of [KindStepFinished].
type StepFinished struct {
	// Error is the text of the error with which the step failed; empty if it did not fail.
	Error string `json:"error,omitempty"`
	// Kind is the kind of the error, one of those below, or empty. Permanent says that another attempt
	// cannot succeed. Budget is the name of the exceeded budget; empty for the run's budget.
	Kind      FailureKind `json:"kind,omitempty"`
	Permanent bool        `json:"permanent,omitempty"`
	Budget    string      `json:"budget,omitempty"`
	// RetryAfter is the time that the error asks to wait before the next attempt, in
	// nanoseconds.
	RetryAfter time.Duration `json:"retry_after_ns,omitzero"`
	// Timeout says that the step exceeded its time limit.
	Timeout bool `json:"timeout,omitempty"`
	// Canceled says that the step was cut off because something around it was canceled
	// or ran out of time. The step has no outcome, and a resumed run repeats it.
	Canceled bool `json:"canceled,omitempty"`
	// Again says that the step's loop retries it.
	Again bool `json:"again,omitempty"`
	// At is the address of the step in which the error happened, which may be below this
	// step.
	At string `json:"at,omitempty"`
	// Seconds is how long the step took.
	Seconds float64 `json:"seconds"`
	// Outcome is the loop.Outcome of a loop's step, without the state, which the log has. It is nil for
	// steps of other agents.
	Outcome json.RawMessage `json:"outcome,omitempty"`
	// Usage is the budget.Usage of the model calls in the step; nil if it made none.
	Usage json.RawMessage `json:"usage,omitempty"`
}

// FailureKind is a kind of failure that the log distinguishes.
type FailureKind string

// The kinds of failure; an error of another kind has none.
const (
	FailurePanic      FailureKind = "panic"       // of the agent
	FailureBudget     FailureKind = "budget"      // a call did not fit the budget
	FailurePrice      FailureKind = "price"       // a model's price is unknown
	FailureModelCalls FailureKind = "model_calls" // too many model calls in one run
	FailureState      FailureKind = "state_limit" // the state would be too large
	FailureLog        FailureKind = "log_limit"   // the log of the run would be too large
	FailureDeadline   FailureKind = "deadline"    // context.DeadlineExceeded
	FailureCanceled   FailureKind = "canceled"    // context.Canceled
)

// Dispatched is the data of [KindDispatched].
type Dispatched struct {
	// Calls are the IDs of function calls; empty if the step itself is the call.
	Calls []string `json:"calls,omitempty"`
}

// Requested is the data of [KindRequested].
type Requested struct {
	// Usage is the budget.Usage that the request is expected to have. A resumed run counts it if the log has
	// neither the answer nor the end of the step.
	Usage json.RawMessage `json:"usage"`
	// Unanswered is the budget.Usage of the step's earlier requests of the same process for which the log has no
	// answer, such as failed ones; nil if there are none.
	Unanswered json.RawMessage `json:"unanswered,omitempty"`
	// At is the address of the step that sends the request, if that step runs in a tool call of the event's step;
	// otherwise empty.
	At string `json:"at,omitempty"`
}

// Limited is the data of [KindLimited].
type Limited struct {
	// Until is when the step asks again.
	Until time.Time `json:"until"`
	// Why is the program's message about the limit, in one line.
	Why string `json:"why,omitempty"`
}

// RunResumed is the data of [KindRunResumed].
type RunResumed struct {
	// Superseded lists the events of steps that were cut off and run again from their
	// beginning. These events no longer count.
	Superseded Spans `json:"superseded,omitempty"`
}

// RolledBack is the data of [KindRolledBack].
type RolledBack struct {
	// Iteration is the number of the undone iteration. The state after iteration To is
	// restored; 0 is the state at the loop's start.
	Iteration int `json:"iteration"`
	To        int `json:"to"`
	// Reason says why the iteration was not accepted.
	Reason string `json:"reason"`
}

// Hinted is the data of [KindHinted].
type Hinted struct {
	// Iteration is the number of the iteration that begins.
	Iteration int    `json:"iteration"`
	Hints     []Hint `json:"hints"`
}

// Hint is a text of a person for the next iteration of a run.
type Hint struct {
	// ID tells the hint from others with the same text.
	ID   string `json:"id"`
	Text string `json:"text"`
	// By names the person or process that gave the hint, and At is when.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at,omitzero"`
}

// RaceDecided is the data of [KindRaceDecided].
type RaceDecided struct {
	// Winner is the name of the loop with the best score. Continues says that it goes on with its own limits.
	Winner    string `json:"winner"`
	Continues bool   `json:"continues,omitempty"`
	// Chosen says that a person chose the winner, by a fork at a checkpoint of a loop that had lost.
	Chosen bool `json:"chosen,omitempty"`
	// Reason says for people why the loop has won.
	Reason string `json:"reason"`
	// Ties names the loops whose best score the judge does not tell from the winner's.
	Ties []string `json:"ties,omitempty"`
	// Standings has one element for each loop, in order.
	Standings []Standing `json:"standings"`
}

// Won returns the standing of the winner; nil if there is none.
func (d *RaceDecided) Won() *Standing {
	for i := range d.Standings {
		if d.Standings[i].Loop == d.Winner {
			return &d.Standings[i]
		}
	}
	return nil
}

// Standing is what a loop of a race had come to when the race was decided.
type Standing struct {
	Loop string `json:"loop"`
	// Score is the best score of the loop, nil if it has none. Error is its standard error, 0 if it is exact or unknown.
	Score *float64 `json:"score,omitempty"`
	Error float64  `json:"error,omitempty"`
	// Best is the iteration of that score, Iterations the number of complete iterations.
	Best       int `json:"best,omitempty"`
	Iterations int `json:"iterations"`
	// Stop is the loop.StopReason with which the loop, or its slice, ended. Failure is why the loop failed; empty if
	// it did not.
	Stop    string `json:"stop,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// LegStarted is the data of [KindLegStarted].
type LegStarted struct {
	// Leg is the number of the leg, from 1, and Does what it changes, for people.
	Leg  int    `json:"leg"`
	Does string `json:"does"`
	// Iteration is the last iteration before the leg. The state after iteration To is restored; 0 is the state at the
	// loop's start.
	Iteration int `json:"iteration"`
	To        int `json:"to"`
	// Reason says why the loop has converged.
	Reason string `json:"reason"`
}

// New returns a mark whose data is v as JSON; v may be nil.
func New(kind Kind, v any) (*Mark, error) {
	if v == nil {
		return &Mark{Kind: kind}, nil
	}
	data, err := canonical.AppendJSON(nil, v) // so that a seal can use it as it is
	if err != nil {
		return nil, fmt.Errorf("encode mark %s: %w", kind, err)
	}
	return &Mark{Kind: kind, Data: data}, nil
}

// Decode reads the mark's data into v.
func (m *Mark) Decode(v any) error {
	if err := json.Unmarshal(m.Data, v); err != nil {
		return fmt.Errorf("decode mark %s: %w", m.Kind, err)
	}
	return nil
}

// Supersedes returns the sequence numbers of the events that no longer count because of
// the mark, a [KindRunResumed]. It is nil for other marks and for a nil mark.
func (m *Mark) Supersedes() Spans {
	if m == nil || m.Kind != KindRunResumed {
		return nil
	}
	var r RunResumed
	if m.Decode(&r) != nil {
		return nil // as if nothing were superseded
	}
	return r.Superseded
}

// NamesCalls returns the ID of the session that is part of the run's call IDs from this
// mark on. It is empty for a mark that does not change it, and for a nil mark.
func (m *Mark) NamesCalls() (string, error) {
	if m == nil || m.Kind != KindRunStarted && m.Kind != KindRunPaused || m.Data == nil {
		return "", nil
	}
	var data struct{ Session string }
	err := m.Decode(&data)
	return data.Session, err
}
