// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"runtime/debug"

	"github.com/refrain-dev/refrain/session"
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

func newPanicError(v any) *PanicError {
	return &PanicError{Value: v, Stack: debug.Stack()}
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
