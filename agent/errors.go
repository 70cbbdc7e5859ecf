// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// StepError is the failure of a step. Unwrap returns the agent's own error.
type StepError struct {
	// Address is the step that failed. If nested steps failed, Address is the innermost one.
	Address session.Address
	Err     error
}

// Error names the step and its address, and includes the agent's own error.
func (e *StepError) Error() string {
	return fmt.Sprintf("agent %q (%s): %v", e.Address.Agent(), e.Address, e.Err)
}

// Unwrap returns the agent's own error.
func (e *StepError) Unwrap() error { return e.Err }

// LogError says that the store could not store an event. It ends the whole run. The run can be
// resumed when the store works again. No loop retries or skips a step because of it.
type LogError struct{ Err error }

// Error returns the text of the store's error.
func (e *LogError) Error() string { return e.Err.Error() }

// Unwrap returns the store's error.
func (e *LogError) Unwrap() error { return e.Err }

// PanicError is an agent's panic, as an error.
type PanicError struct {
	// Value is what the agent panicked with.
	Value any
	// Stack is the stack of the panic. The error's text does not include it.
	Stack []byte
}

// Error returns the value as text, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Where returns the function, the file and the line of the panic, such as main.measure, /home/ana/kennel/main.go:42; "" if the
// stack does not tell.
func (e *PanicError) Where() string {
	panicked := false
	function := ""
	for line := range strings.Lines(string(e.Stack)) {
		file, isFile := strings.CutPrefix(strings.TrimRight(line, "\n"), "\t")
		switch {
		case !isFile:
			function = line[:max(strings.LastIndexByte(line, '('), 0)]
			panicked = panicked || function == "panic"
		case panicked && function != "panic" && !strings.HasPrefix(function, "runtime."):
			file, _, _ = strings.Cut(file, " +0x")
			return function + ", " + file
		}
	}
	return ""
}

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// PanicOf returns v, the result of recover, as an error with the stack of the panic. Call PanicOf in the
// deferred function that has called recover. It returns a *PanicError that was raised again unchanged.
func PanicOf(v any) *PanicError {
	if p, ok := v.(*PanicError); ok {
		return p
	}
	return &PanicError{Value: v, Stack: debug.Stack()}
}

// Recover sets err to a [*PanicError] if the function that defers it panics:
//
//	defer agent.Recover(&err)
func Recover(err *error) {
	if v := recover(); v != nil {
		*err = PanicOf(v)
	}
}

// ErrDiverged matches every [*DivergedError] in errors.Is.
var ErrDiverged = errors.New("the run diverged from its log")

// DivergedError reports that a resumed run did something other than its log records. Its agents
// have changed, or they depend on something that is not in the log, such as the time or chance.
type DivergedError struct {
	// Address is the step that differs.
	Address session.Address
	// Want describes what the log has, and Got what the run did now. If only the content
	// of an event differs, both are the event as JSON.
	Want, Got string
}

// Error says what the log has, what the run did instead, and how to continue.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("%v: at %s the log has %s; now there is: %s. Resume it with the agents that it was started "+
		"with, or start a new run", ErrDiverged, e.Address, e.Want, e.Got)
}

// Is reports whether target is [ErrDiverged].
func (e *DivergedError) Is(target error) bool { return target == ErrDiverged }

// InDoubtError reports that a step has failed, and that its failure cut off parallel calls that
// must not be repeated. They may have taken place. The agent that made the calls in parallel fails
// with it.
type InDoubtError struct {
	// Err is the failure of the step.
	Err   error
	Calls []Doubt
}

// Doubt is a call that may or may not have taken place.
type Doubt struct {
	// Address is the step that made the call, and ID is the call's ID: see drive.Place.CallID
	// and drive.Place.ToolCallID.
	Address session.Address
	ID      string
	// Call is the ID that a model gave its call of a tool; Tool and Args are the tool's name
	// and its arguments. All are empty for a step. An [InDoubtError] has only Call.
	Call string
	Tool string
	Args map[string]any
}

// Error lists the calls and says how to find out whether they took place.
func (e *InDoubtError) Error() string {
	var calls []string
	for _, c := range e.Calls {
		calls = append(calls, fmt.Sprintf("%s (its call ID is %s)", c.Address, c.ID))
	}
	return fmt.Sprintf("%v. This cut off steps that must not be done twice, and it is unknown whether they took "+
		"place: %s. Look them up by their IDs. They are not repeated automatically: refrain resume RUN --retry first "+
		"asks whether they took place (refrain resolve RUN)",
		e.Err, strings.Join(calls, ", "))
}

// Unwrap returns the failure of the step.
func (e *InDoubtError) Unwrap() error { return e.Err }

// Errors of an agent that asks a person; compare with errors.Is.
var (
	// ErrWaiting ends a run that waits for a person's answer. The error is a [*WaitingError].
	ErrWaiting = errors.New("the run waits for a person")
	// ErrCannotAsk fails a step that asks a person in a run that cannot wait for the answer.
	ErrCannotAsk = errors.New("cannot ask a person, as this run cannot wait for an answer: run it with a supervisor, " +
		"as refrain run does, or with a durable runner and RunConfig.Pause")
)

// WaitingError describes the question that a run waits for.
type WaitingError struct {
	// Address is the step that asks.
	Address  session.Address
	Question mark.Question
}

// Error includes the question, and its deadline in RFC 3339 if it has one.
func (e *WaitingError) Error() string {
	s := fmt.Sprintf("%v: %s asks: %s", ErrWaiting, e.Address, e.Question.Text)
	if !e.Question.Deadline.IsZero() {
		s += " (until " + e.Question.Deadline.Format(time.RFC3339) + ")"
	}
	return s
}

// Is reports whether target is [ErrWaiting].
func (e *WaitingError) Is(target error) bool { return target == ErrWaiting }

// DefaultMaxLLMCalls is the limit of model calls of a run whose [RunConfig] sets none.
const DefaultMaxLLMCalls = 500

// ErrTooManyModelCalls ends a run whose agents have made more model calls than
// [RunConfig.MaxLLMCalls].
var ErrTooManyModelCalls = errors.New("too many model calls in one run")
