// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// StepError is the failure of a step: which one, and why. Unwrap gives the
// agent's own error.
type StepError struct {
	// Address is the step that failed, the innermost if several are on the way.
	Address session.Address
	Err     error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("agent %q (%s): %v", e.Address.Agent(), e.Address, e.Err)
}

// Unwrap returns the agent's own error.
func (e *StepError) Unwrap() error { return e.Err }

// LogError says that an event could not be stored. It ends the whole run, which can be
// resumed when the store works again. No policy of a loop applies to it: no step is
// tried again or skipped because of it.
type LogError struct{ Err error }

func (e *LogError) Error() string { return e.Err.Error() }

// Unwrap is the store's error.
func (e *LogError) Unwrap() error { return e.Err }

// PanicError is a panic of an agent, as an error.
type PanicError struct {
	// Value is what the agent panicked with.
	Value any
	// Stack is where; it is not part of the error's text.
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrDiverged is what every [*DivergedError] is, for errors.Is.
var ErrDiverged = errors.New("the run diverged from its log")

// DivergedError says where a resumed run would go another way than its log: its
// agents are others than those that the log was written by, or what they do
// depends on something else than the log, such as the time or chance.
type DivergedError struct {
	// Address is the step that is not as it was.
	Address session.Address
	// Recorded is what the log has, and Said what the run has now; in JSON,
	// where they are two versions of one thing.
	Recorded, Said string
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("%v: at %s the log has %s; now there is: %s. Resume it with the agents that it was started with, or start a new run", ErrDiverged, e.Address, e.Recorded, e.Said)
}

// Is reports whether target is [ErrDiverged].
func (e *DivergedError) Is(target error) bool { return target == ErrDiverged }

// InDoubtError says that a step has failed, and that calls beside it were cut off by
// that which must not be made twice: nobody knows whether they took place. It is the
// error of the agent that ran them side by side.
type InDoubtError struct {
	// Err is how the step failed.
	Err   error
	Calls []Doubt
}

// Doubt is a call of which nobody knows whether it took place.
type Doubt struct {
	// Address is the step that made it, and ID what the call was made with: see
	// drive.Place.CallID and drive.Place.ToolCallID.
	Address session.Address
	ID      string
	// Call is the ID that a model gave its call of a tool, with the tool's name and
	// the arguments; all empty for a step, and Tool and Args in an [InDoubtError].
	Call string
	Tool string
	Args map[string]any
}

func (e *InDoubtError) Error() string {
	var calls []string
	for _, c := range e.Calls {
		calls = append(calls, fmt.Sprintf("%s (its call ID is %s)", c.Address, c.ID))
	}
	return fmt.Sprintf("%v. This cut off what must not be done twice, and may have been done: %s. Look it up by that ID. Nothing of it is done again by itself: whoever has the run tried again (refrain resume RUN --retry) is asked first what became of it (refrain resolve RUN)",
		e.Err, strings.Join(calls, ", "))
}

// Unwrap is how the step failed.
func (e *InDoubtError) Unwrap() error { return e.Err }

// Errors of an agent that asks a person; compare with errors.Is.
var (
	// ErrWaiting: the run has ended because it waits for a person. The error is a
	// [*WaitingError].
	ErrWaiting = errors.New("the run waits for a person")
	// ErrCannotAsk: the run cannot wait.
	ErrCannotAsk = errors.New("nobody can be asked: the run cannot wait for an answer. Run it by a supervisor, as refrain run does, or by a durable runner with RunConfig.Pause")
)

// WaitingError says what a run waits for.
type WaitingError struct {
	// Address is the step that asks.
	Address  session.Address
	Question mark.Question
}

func (e *WaitingError) Error() string {
	s := fmt.Sprintf("%v: %s asks: %s", ErrWaiting, e.Address, e.Question.Text)
	if !e.Question.Deadline.IsZero() {
		s += " (until " + e.Question.Deadline.Format(time.RFC3339) + ")"
	}
	return s
}

// Is reports whether target is [ErrWaiting].
func (e *WaitingError) Is(target error) bool { return target == ErrWaiting }

// DefaultMaxLLMCalls is how often the agents of one run may ask a model if
// [RunConfig] does not say.
const DefaultMaxLLMCalls = 500

// ErrTooManyModelCalls ends a run whose agents ask models without end.
var ErrTooManyModelCalls = errors.New("too many model calls in one run")
