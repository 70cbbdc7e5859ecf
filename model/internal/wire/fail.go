// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/model"
)

// Fail returns why a request failed: ctx's cause, an *model.APIError, or err, which the client or
// the SDK returned, if nothing was sent.
func (x *Exchange) Fail(ctx context.Context, err error) error {
	if broken := x.Broken(ctx); broken != nil {
		return broken
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.status == 0:
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // an address may have secrets in it
		}
		return fmt.Errorf("ask %s: %w", x.provider, x.secrets.Error(err))
	case x.status < 200 || x.status > 299:
		return x.refusal()
	}
	return x.garbage(x.head, err)
}

// Broken returns why no answer came or why it ended early: ctx's cause or an *model.APIError; nil
// if neither happened.
func (x *Exchange) Broken(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask %s: %w", x.provider, context.Cause(ctx))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.status == 0 && x.sendErr != nil {
		_, untrusted := errors.AsType[*tls.CertificateVerificationError](x.sendErr)
		return &model.APIError{Provider: x.provider, Message: "no answer", Err: x.secrets.Error(x.sendErr),
			Retryable: !untrusted}
	}
	if x.readErr == errTooLong && x.status < 300 {
		return &model.APIError{
			Provider: x.provider, Status: x.status, Code: "garbage", RequestID: x.requestID(),
			Message: "an answer without an end", Err: x.readErr,
		}
	}
	if x.readErr != nil && x.status < 300 {
		return &model.APIError{
			Provider: x.provider, Status: x.status, RequestID: x.requestID(), Retryable: true,
			Message: "the answer broke off", Err: x.secrets.Error(x.readErr),
		}
	}
	return nil
}

// Cut returns the error of a stream that ended before its answer did.
func (x *Exchange) Cut(ctx context.Context) error {
	if broken := x.Broken(ctx); broken != nil {
		return broken
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return &model.APIError{
		Provider: x.provider, Status: x.status, RequestID: x.requestID(), Retryable: true,
		Message: "the stream ended before the answer did", Err: io.ErrUnexpectedEOF,
	}
}

// Garbage returns the error of an answer, or a piece of a stream, that cannot be read. The error is
// not retryable, because another request would cost the same and fail the same way. Err may be nil.
func (x *Exchange) Garbage(ctx context.Context, data []byte, err error) error {
	if broken := x.Broken(ctx); broken != nil {
		return broken
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.garbage(data, err)
}

// requestID returns the ID that a provider's support asks for: X-Request-Id of OpenAI and most
// others, Request-Id of Anthropic. The caller holds the lock.
func (x *Exchange) requestID() string {
	id := x.header.Get("X-Request-Id")
	if id == "" {
		id = x.header.Get("Request-Id")
	}
	return excerpt(x.said(id))
}

func (x *Exchange) garbage(data []byte, err error) error {
	what := "an empty answer"
	switch {
	case tooLong(err):
		what = "an event without an end"
	case len(data) > 0:
		what = fmt.Sprintf("an answer that is not understood: %q", excerpt(x.secrets.Strike(string(data))))
	}
	return &model.APIError{
		Provider: x.provider, Status: x.status, Code: "garbage", RequestID: x.requestID(),
		Message: what, Err: x.secrets.Error(err),
	}
}

// refusal is the error of an answer whose status is not 2xx.
func (x *Exchange) refusal() error {
	e := &model.APIError{
		Provider: x.provider, Status: x.status, RequestID: x.requestID(), Retryable: model.RetryableStatus(x.status),
	}
	p := parseProblem(x.head)
	e.Code, e.Message, e.RetryAfter = x.said(p.code), x.said(p.message), p.retryAfter
	switch {
	case x.moved != "":
		e.Message = fmt.Sprintf("it redirects to another server, %s, which does not get the request and its key: "+
			"make that the base URL if it is right", x.moved)
	case e.Message == "":
		e.Message = http.StatusText(x.status)
		if len(x.head) > 0 {
			e.Message += ": " + x.said(excerpt(x.secrets.Strike(string(x.head))))
		}
	}
	if after := model.RetryAfter(x.header, time.Now()); after > 0 {
		e.RetryAfter = after
	}
	switch x.header.Get("X-Should-Retry") { // OpenAI and Anthropic
	case "true":
		e.Retryable = true
	case "false":
		e.Retryable = false
	}
	if e.Code == "insufficient_quota" { // a 429 that waiting does not cure
		e.Retryable = false
	}
	return e
}

// Problem returns the error that a provider reported inside a stream, as JSON.
func (x *Exchange) Problem(data []byte) error {
	p := parseProblem(data)
	if p.message == "" {
		p.message = excerpt(x.secrets.Strike(string(data)))
	}
	return x.Reported(p.status, p.code, p.message)
}

// Reported returns the error that a provider reported inside a stream. An unknown status, 0,
// follows from the code; an unknown code means that the provider broke down, which may pass.
func (x *Exchange) Reported(status int, code, message string) error {
	if status == 0 {
		status = kinds[code]
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return &model.APIError{
		Provider: x.provider, Status: status, Code: x.said(code), Message: x.said(message),
		Retryable: status == 0 || model.RetryableStatus(status), RequestID: x.requestID(),
	}
}

// kinds gives the statuses of errors that were reported in a stream, after
// the 200 had been sent.
var kinds = map[string]int{
	"invalid_request_error": 400,
	"authentication_error":  401,
	"billing_error":         402,
	"insufficient_quota":    402,
	"permission_error":      403,
	"not_found_error":       404,
	"request_too_large":     413,
	"rate_limit_error":      429,
	"rate_limit_exceeded":   429,
	"api_error":             500,
	"server_error":          500,
	"timeout_error":         504,
	"overloaded_error":      529,
}

// said returns a text of a provider or a proxy for an error: without the request's credentials,
// which servers and proxies repeat, without control characters, and shortened.
func (x *Exchange) said(text string) string {
	return brief.Clip(brief.CleanText(x.secrets.Strike(text)), 2000)
}

// excerpt returns the beginning of a text on one line, for an error message.
func excerpt(s string) string { return brief.Line(s, 160) }
