// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// RecordedError is the error of a step in an earlier part of the run, as the log has it.
// errors.Is and errors.As find in it [*agent.StepError], [*agent.PanicError],
// [agent.ErrTooManyModelCalls], [session.ErrStateLimit], the errors of package budget and those of a context. Other
// types of error are not in the log.
type RecordedError struct {
	text string
	fin  mark.StepFinished
}

// note writes an error into the record of a step's end.
func note(fin *mark.StepFinished, err error) {
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
	fin.Kind = kindOf(err, fin)
}

func kindOf(err error, fin *mark.StepFinished) mark.FailureKind {
	if _, ok := errors.AsType[*agent.PanicError](err); ok {
		return mark.FailurePanic
	}
	if spent, ok := errors.AsType[*budget.ExceededError](err); ok {
		fin.Budget = spent.Budget
		return mark.FailureBudget
	}
	if _, ok := errors.AsType[*budget.UnknownPriceError](err); ok {
		return mark.FailurePrice
	}
	switch {
	case errors.Is(err, agent.ErrTooManyModelCalls):
		return mark.FailureModelCalls
	case errors.Is(err, session.ErrStateLimit):
		return mark.FailureState
	case errors.Is(err, context.DeadlineExceeded):
		return mark.FailureDeadline
	case errors.Is(err, context.Canceled):
		return mark.FailureCanceled
	}
	return ""
}

// errorOf is the error that a step ended with; nil if it ended well.
func errorOf(fin *mark.StepFinished) error {
	if fin.Error == "" {
		return nil
	}
	e := &RecordedError{text: fin.Error, fin: *fin}
	if fin.At == "" {
		return e
	}
	// What is around the address is the step error's own.
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

// Timeout reports whether the step had no more time.
func (e *RecordedError) Timeout() bool { return e.fin.Timeout }

// Permanent reports whether a retry is useless.
func (e *RecordedError) Permanent() bool {
	return e.fin.Permanent || e.fin.Kind == mark.FailurePrice || e.fin.Kind == mark.FailureModelCalls
}

// RetryDelay returns how long to wait before a retry.
func (e *RecordedError) RetryDelay() time.Duration { return e.fin.RetryAfter }

// Is reports whether the log has an error that equals target.
func (e *RecordedError) Is(target error) bool {
	switch e.fin.Kind {
	case mark.FailureModelCalls:
		return target == agent.ErrTooManyModelCalls
	case mark.FailureBudget:
		return target == budget.ErrExceeded
	case mark.FailureState:
		return target == session.ErrStateLimit
	case mark.FailureDeadline:
		return target == context.DeadlineExceeded
	case mark.FailureCanceled:
		return target == context.Canceled
	}
	return false
}

// As sets target to an error of its type, if the log has one.
func (e *RecordedError) As(target any) bool {
	switch t := target.(type) {
	case **agent.StepError:
		if e.fin.At == "" {
			return false
		}
		*t = &agent.StepError{Address: session.Address(e.fin.At), Err: errors.New(e.text)}
	case **agent.PanicError:
		if e.fin.Kind != mark.FailurePanic {
			return false
		}
		*t = &agent.PanicError{Value: strings.TrimPrefix(e.text, "panic: ")}
	case **budget.ExceededError:
		if e.fin.Kind != mark.FailureBudget {
			return false
		}
		*t = &budget.ExceededError{Budget: e.fin.Budget}
	case **budget.UnknownPriceError:
		if e.fin.Kind != mark.FailurePrice {
			return false
		}
		*t = &budget.UnknownPriceError{}
	default:
		return false
	}
	return true
}
