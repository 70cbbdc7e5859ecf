// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// APIError is an error of a provider, or a failure to reach it or to read its answer. Every
// provider package returns its failures as [*APIError], with two exceptions: the end of a context
// is returned as the context's cause, and a request that the provider's format cannot express as an
// ordinary error.
type APIError struct {
	// Provider is the adapter's name: "openai", "anthropic", "gemini",
	// "scripted".
	Provider string `json:"provider"`
	// Status is the HTTP status; 0 if no answer came. An error within a stream has the status that
	// the provider uses for such errors.
	Status int `json:"status,omitempty"`
	// Code is the provider's error code, such as "rate_limit_error"; empty if it gave none.
	Code string `json:"code,omitempty"`
	// Message describes the failure for people.
	Message string `json:"message,omitempty"`
	// RequestID is the provider's ID of the request, for its support; empty if it gave none.
	RequestID string `json:"request_id,omitempty"`
	// RetryAfter is the time that the provider asks to wait; 0 if it does not ask.
	RetryAfter time.Duration `json:"retry_after,omitempty"`
	// Retryable reports whether the same request may succeed later.
	Retryable bool `json:"retryable,omitempty"`
	// CacheRefused reports that the server refused the request because it asks for a cache of the prompt. The
	// model has noted that: sent again, the request does not ask for one.
	CacheRefused bool `json:"cache_refused,omitempty"`
	// Err is the cause of a failed connection; nil if there is none.
	Err error `json:"-"`
}

// Error returns the provider, the status, and the provider's code, message and request ID.
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

// Permanent reports whether a retry is useless. A loop that retries its steps uses it.
func (e *APIError) Permanent() bool { return !e.Retryable }

// RetryDelay returns RetryAfter. A loop that retries its steps uses it.
func (e *APIError) RetryDelay() time.Duration { return e.RetryAfter }

// Retryable reports whether a failed request may succeed when it is sent again, and how long the
// provider asks to wait first, 0 if it does not ask. This holds only for an [*APIError] with
// Retryable set; never for the end of a context.
func Retryable(err error) (after time.Duration, ok bool) {
	e, ok := errors.AsType[*APIError](err)
	if !ok || !e.Retryable {
		return 0, false
	}
	return e.RetryAfter, true
}

// RetryableStatus reports whether a request that got this HTTP status may succeed later: 408, 409,
// 429 and 5xx except 501.
func RetryableStatus(status int) bool {
	switch status {
	case 408, 409, 429:
		return true
	case 501:
		return false
	}
	return status >= 500
}
