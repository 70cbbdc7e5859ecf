// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/model"
)

// otherError is the name that the semantic conventions give an error without a type.
const otherError = "_OTHER"

// mostText limits the text of an error in a span, in bytes.
const mostText = 1024

// refusal is the error for a request that a provider refused.
type refusal struct{ code, message string }

func (r *refusal) Error() string { return strings.TrimSuffix(r.code+": "+r.message, ": ") }

// secret replaces a key or a password in the text of an error.
const secret = "[secret]"

// note records on a span how the work ended. Work that waits, is paused or was canceled has not failed.
func note(span trace.Span, err error) {
	if err == nil {
		return
	}
	if outcome := outcomeOf(err); outcome != "" {
		span.SetAttributes(attribute.String(keyOutcome, outcome))
		return
	}
	words := err.Error()
	if e, ok := errors.AsType[interface {
		error
		Brief() string
	}](err); ok { // the output of a program counts as content
		words = strings.Replace(words, e.Error(), e.Brief(), 1)
	}
	words, _ = credential.Cleaned(words, secret)
	words = brief.ClipBytes(brief.Clean(credential.WithoutTokens(words, secret)), mostText)
	span.SetAttributes(attribute.String(keyErrorType, errorType(err)))
	span.SetStatus(codes.Error, words)
}

// outcomeOf returns waiting, paused or canceled for work that ended in one of these ways, and "" for any other.
func outcomeOf(err error) string {
	switch {
	case errors.Is(err, agent.ErrWaiting):
		return "waiting"
	case errors.Is(err, agent.ErrPaused):
		return "paused"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return ""
}

// errorType returns the type of a failure, from a small set, or "" if err is no failure.
func errorType(err error) string {
	if err == nil || outcomeOf(err) != "" {
		return ""
	}
	if late, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && late.Timeout() {
		return "timeout"
	}
	if api, ok := errors.AsType[*model.APIError](err); ok {
		switch {
		case api.Status != 0:
			return strconv.Itoa(api.Status)
		case api.Code != "":
			return api.Code
		}
	}
	if no, ok := errors.AsType[*refusal](err); ok {
		return no.code
	}
	if _, ok := errors.AsType[*agent.PanicError](err); ok {
		return "panic"
	}
	return failureName(err)
}

// failureName returns the type of the first error in a chain that has a type of its own.
func failureName(err error) string {
	for err != nil {
		switch e := err.(type) {
		case *agent.StepError:
			err = e.Err
			continue
		case interface{ Unwrap() []error }:
			all := e.Unwrap()
			if len(all) == 0 {
				return otherError
			}
			err = all[0]
			continue
		}
		if name := fmt.Sprintf("%T", err); !strings.HasPrefix(name, "*fmt.") && !strings.HasPrefix(name, "*errors.") {
			return strings.TrimPrefix(name, "*")
		}
		err = errors.Unwrap(err)
	}
	return otherError
}
