// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// RecordedError is the error of a step that ran in an earlier part of the run, as the log records it.
// errors.Is and errors.As find in it [*agent.StepError], [*agent.PanicError],
// [agent.ErrTooManyModelCalls], [session.ErrStateLimit], [session.ErrLogLimit], the errors of package budget and those of a context. Other
// types of error are not in the log.
type RecordedError struct {
	text string
	fin  mark.StepFinished
}

// encodeError writes an error into the data of the mark at a step's end.
func encodeError(fin *mark.StepFinished, err error) {
	fin.Error = err.Error()
	if failed, ok := errors.AsType[*agent.StepError](err); ok {
		fin.At = string(failed.Address)
	}
	late, ok := errors.AsType[TimeoutError](err)
	fin.Timeout = ok && late.Timeout()
	final, ok := errors.AsType[PermanentError](err)
	fin.Permanent = ok && final.Permanent()
	if asks, ok := errors.AsType[RetryError](err); ok {
		fin.RetryAfter = max(0, asks.RetryDelay())
	}
	for _, k := range kinds {
		if k.fits(err) {
			fin.Kind = k.kind
			break
		}
	}
	if spent, ok := errors.AsType[*budget.ExceededError](err); ok && fin.Kind == mark.FailureBudget {
		fin.Budget = spent.Budget
	}
}

// kinds lists the kinds of errors that the log distinguishes. The first that fits an error is its kind.
var kinds = []struct {
	kind  mark.FailureKind
	fits  func(error) bool
	again func(*RecordedError) error
}{
	{mark.FailurePanic, hasType[*agent.PanicError], func(e *RecordedError) error {
		return &agent.PanicError{Value: strings.TrimPrefix(e.text, "panic: ")}
	}},
	{mark.FailureBudget, hasType[*budget.ExceededError], func(e *RecordedError) error {
		return &budget.ExceededError{Budget: e.fin.Budget}
	}},
	{mark.FailurePrice, hasType[*budget.UnknownPriceError], constantError(new(budget.UnknownPriceError))},
	{mark.FailureModelCalls, isError(agent.ErrTooManyModelCalls), constantError(agent.ErrTooManyModelCalls)},
	{mark.FailureState, isError(session.ErrStateLimit), constantError(session.ErrStateLimit)},
	{mark.FailureLog, isError(session.ErrLogLimit), constantError(session.ErrLogLimit)},
	{mark.FailureDeadline, isError(context.DeadlineExceeded), constantError(context.DeadlineExceeded)},
	{mark.FailureCanceled, isError(context.Canceled), constantError(context.Canceled)},
}

func hasType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isError(known error) func(error) bool {
	return func(err error) bool { return errors.Is(err, known) }
}

func constantError(known error) func(*RecordedError) error {
	return func(*RecordedError) error { return known }
}

// ErrorOf returns the error with which a step ended, a [*RecordedError]; nil if the step succeeded.
func ErrorOf(fin *mark.StepFinished) error {
	if fin.Error == "" {
		return nil
	}
	e := &RecordedError{text: fin.Error, fin: *fin}
	if fin.At == "" {
		return e
	}
	// The error text begins with that of a StepError; the rest is the text of its cause.
	step := &agent.StepError{Address: session.Address(fin.At), Err: errors.New("")}
	if text, ok := strings.CutPrefix(fin.Error, step.Error()); ok {
		e.text, e.fin.At = text, ""
		step.Err = e
		return step
	}
	return e
}

// Error returns the text of the error.
func (e *RecordedError) Error() string { return e.text }

// Timeout reports whether the step exceeded its timeout.
func (e *RecordedError) Timeout() bool { return e.fin.Timeout }

// Permanent reports whether a retry is useless.
func (e *RecordedError) Permanent() bool {
	return e.fin.Permanent || e.fin.Kind == mark.FailurePrice || e.fin.Kind == mark.FailureModelCalls || e.fin.Kind == mark.FailureLog
}

// RetryDelay returns how long to wait before a retry.
func (e *RecordedError) RetryDelay() time.Duration { return e.fin.RetryAfter }

// LoopKind returns the kind of the failure that a loop recorded for its own step, such as loop.Timeout; empty for a step of
// another agent.
func (e *RecordedError) LoopKind() string {
	var o struct{ Failure struct{ Kind string } }
	if len(e.fin.Outcome) == 0 || json.Unmarshal(e.fin.Outcome, &o) != nil {
		return ""
	}
	return o.Failure.Kind
}

// Unwrap returns the errors that the log has: the [*agent.StepError], and the error of its kind.
func (e *RecordedError) Unwrap() (all []error) {
	if e.fin.At != "" {
		all = append(all, &agent.StepError{Address: session.Address(e.fin.At), Err: errors.New(e.text)})
	}
	for _, k := range kinds {
		if k.kind == e.fin.Kind {
			all = append(all, k.again(e))
		}
	}
	return all
}
