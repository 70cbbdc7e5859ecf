// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// APIError is a provider's refusal, or a failure to reach or to understand it.
// Every adapter below this package returns its failures as *APIError, except
// two: a context's end comes as the context's own cause, and a request that
// cannot be put in the provider's words as an ordinary error.
type APIError struct {
	// Provider is the adapter's name: "openai", "anthropic", "gemini",
	// "scripted".
	Provider string
	// Status is the HTTP status; 0 if no answer came at all. An error inside
	// a stream has the status that the provider gives to its kind.
	Status int
	// Code is the provider's word for the error, such as "rate_limit_error";
	// empty if it gave none.
	Code string
	// Message says what went wrong, for people.
	Message string
	// RequestID is the provider's name for the request, which its support asks
	// for; empty if it gave none.
	RequestID string
	// RetryAfter is how long the provider asks to wait; 0 if it did not say.
	RetryAfter time.Duration
	// Retryable reports whether the same request may succeed later.
	Retryable bool
	// Err is the cause, if there is one below HTTP; else nil.
	Err error
}

// Error names the provider, the status, the provider's code, its message and its
// name for the request.
func (e *APIError) Error() string {
	var b strings.Builder
	b.WriteString(e.Provider)
	if e.Status != 0 {
		fmt.Fprintf(&b, ": status %d", e.Status)
	}
	if e.Code != "" {
		fmt.Fprintf(&b, " (%s)", e.Code)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", e.RequestID)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *APIError) Unwrap() error { return e.Err }

// Permanent reports whether it is no use to send the request again. A loop that
// retries its steps asks.
func (e *APIError) Permanent() bool { return !e.Retryable }

// RetryDelay is RetryAfter. A loop that retries its steps asks.
func (e *APIError) RetryDelay() time.Duration { return e.RetryAfter }

// Retryable reports whether a failed request is worth sending again, and how
// long its provider asks to wait first: 0 if it did not say. Only an *APIError
// that says so is; a context's end never is.
func Retryable(err error) (after time.Duration, ok bool) {
	e, ok := errors.AsType[*APIError](err)
	if !ok || !e.Retryable {
		return 0, false
	}
	return e.RetryAfter, true
}

// RetryableStatus reports whether a request that was answered with an HTTP
// status may succeed later: 408, 409, 429 and 5xx, but not 501.
func RetryableStatus(status int) bool {
	switch status {
	case 408, 409, 429:
		return true
	case 501:
		return false
	}
	return status >= 500
}
