// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"encoding/json"
	"fmt"
	"time"
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
	// KindLoopContinued: a loop that a limit had stopped goes on. Data is its
	// loop.Plan, with the new limits.
	KindLoopContinued Kind = "loop_continued"
	// KindIterationFinished: a pass of a loop ended. Data is a
	// loop.IterationRecord.
	KindIterationFinished Kind = "iteration_finished"
	// KindRolledBack: an iteration was not accepted, and the event's state delta
	// undoes it. Data is a [RolledBack].
	KindRolledBack Kind = "rolled_back"
	// KindLoopStopped: a loop ended. Data is a loop.StopRecord.
	KindLoopStopped Kind = "loop_stopped"
	// KindDispatched: calls that must not be made twice are about to be made.
	// Data is a [Dispatched].
	KindDispatched Kind = "dispatched"
	// KindRunResumed: a run that was cut off goes on. Data is a [RunResumed], and
	// the event's state delta undoes what the events did that it names.
	KindRunResumed Kind = "run_resumed"
	// KindReconciled says what was found out about a call that was cut off and must
	// not be made twice. Data is a [Reconciled]. It has the address of the step that
	// makes the call.
	KindReconciled Kind = "reconciled"
	// KindAsked is on the event with which a step asks a person. Data is a
	// [Question]. It has the step's address.
	KindAsked Kind = "asked"
	// KindAnswered is the answer of a person. Data is an [Answer].
	KindAnswered Kind = "answered"
)

// The kinds of mark of a run as a whole. Whoever owns runs, such as a supervisor,
// writes them; they have no address.
const (
	// KindRunStarted is on the event with the user's message. Data is a
	// [RunStarted].
	KindRunStarted Kind = "run_started"
	// KindRunTaken: somebody drives the run that nobody drove. Data is a [RunTaken].
	KindRunTaken Kind = "run_taken"
	// KindRunPaused: nothing of the run is running, until it is resumed. Data
	// is a [RunPaused].
	KindRunPaused Kind = "run_paused"
	// KindRunEnded: the run is over. Data is a [RunEnded].
	KindRunEnded Kind = "run_ended"
)

// MetadataNotRun is the key of an event's CustomMetadata that says of a
// [KindStepStarted] that the step is not run: its end follows at once, made by
// whoever did not run it.
const MetadataNotRun = "refrain:notRun"

// Mark is a fact about the run itself, written into the log by a runner that
// is told to be durable. Progress, diagnosis and resumption are read off marks.
type Mark struct {
	Kind Kind `json:"kind"`
	// Data is the kind's own record, as JSON.
	Data json.RawMessage `json:"data,omitempty"`
}

// StepFinished is the data of [KindStepFinished].
type StepFinished struct {
	// Error is why the step failed; empty if it did not.
	Error string `json:"error,omitempty"`
	// Kind says what kind of error it is, where somebody may want to know: one of
	// those below. Permanent says that it is no use to try again, and Budget
	// names the budget that is spent; empty is that of the run.
	Kind      FailureKind `json:"kind,omitempty"`
	Permanent bool        `json:"permanent,omitempty"`
	Budget    string      `json:"budget,omitempty"`
	// RetryAfter is how long the error asks to wait before the step is tried again, in
	// nanoseconds.
	RetryAfter time.Duration `json:"retry_after_ns,omitzero"`
	// Timeout says that the step had no more time.
	Timeout bool `json:"timeout,omitempty"`
	// Canceled says that the step was cut off, because what it is part of was
	// canceled or ran out of time: it has no outcome, and a resumed run makes it
	// again.
	Canceled bool `json:"canceled,omitempty"`
	// Again says that the step's loop tries it again: it has not failed for good.
	Again bool `json:"again,omitempty"`
	// At is the address of the step that the error comes from, which may be further
	// down.
	At string `json:"at,omitempty"`
	// Seconds is how long the step took.
	Seconds float64 `json:"seconds"`
	// Outcome is what a loop makes of its step: a loop.Outcome without the
	// state, which the log has. nil for steps of other agents.
	Outcome json.RawMessage `json:"outcome,omitempty"`
	// Usage is what the model calls in the step used: a budget.Usage. nil if there
	// were none.
	Usage json.RawMessage `json:"usage,omitempty"`
}

// FailureKind is a kind of failure that a log tells apart.
type FailureKind string

// The kinds of failure; an error of another kind has none.
const (
	FailurePanic      FailureKind = "panic"       // of the agent
	FailureBudget     FailureKind = "budget"      // a call did not fit
	FailurePrice      FailureKind = "price"       // a model's price is unknown
	FailureModelCalls FailureKind = "model_calls" // too many in one run
	FailureDeadline   FailureKind = "deadline"    // context.DeadlineExceeded
	FailureCanceled   FailureKind = "canceled"    // context.Canceled
)

// Dispatched is the data of [KindDispatched].
type Dispatched struct {
	// Calls are the IDs of function calls; empty for the step itself.
	Calls []string `json:"calls,omitempty"`
}

// RunResumed is the data of [KindRunResumed].
type RunResumed struct {
	// Superseded are the events that no longer count: of steps that were cut off,
	// and are made again from their beginning.
	Superseded Spans `json:"superseded,omitempty"`
}

// RolledBack is the data of [KindRolledBack].
type RolledBack struct {
	// Iteration is the one that is undone, To the one whose state is restored;
	// 0 is the state in which the loop began.
	Iteration int `json:"iteration"`
	To        int `json:"to"`
	// Reason says why the iteration was not accepted.
	Reason string `json:"reason"`
}

// New returns a mark whose data is v as JSON; v may be nil.
func New(kind Kind, v any) (*Mark, error) {
	if v == nil {
		return &Mark{Kind: kind}, nil
	}
	data, err := json.Marshal(v)
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

// Supersedes are the events that no longer count because of the mark, which is a
// [KindRunResumed]; nil for others, and for no mark.
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

// NamesCalls returns the ID of the session by which a run names, from the mark on,
// what it does to the outside; empty for a mark that does not say, and for no mark.
func (m *Mark) NamesCalls() (string, error) {
	if m == nil || m.Kind != KindRunStarted && m.Kind != KindRunPaused || m.Data == nil {
		return "", nil
	}
	var data struct{ Session string }
	err := m.Decode(&data)
	return data.Session, err
}
