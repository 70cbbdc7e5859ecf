// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/model"
)

func ExampleRetryable() {
	err := fmt.Errorf("critic: %w", &model.APIError{
		Provider: "openai", Status: 429, Code: "rate_limit_exceeded", Message: "slow down", Retryable: true, RetryAfter: 2 * time.Second,
	})
	fmt.Println(err)
	if after, ok := model.Retryable(err); ok {
		fmt.Println("again in", after)
	}
	// Output:
	// critic: openai: status 429 (rate_limit_exceeded): slow down
	// again in 2s
}

func TestRetryable(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("something"), false},
		{context.Canceled, false},
		{fmt.Errorf("ask openai: %w", context.DeadlineExceeded), false},
		{&model.APIError{Status: 400}, false},
		{&model.APIError{Status: 200, Retryable: true, Err: io.ErrUnexpectedEOF}, true},
		// A time out of the network's, not of whoever asked.
		{&model.APIError{Retryable: true, Err: context.DeadlineExceeded}, true},
	} {
		if _, got := model.Retryable(tt.err); got != tt.want {
			t.Errorf("%v: got %v", tt.err, got)
		}
	}
}

func TestRetryableStatus(t *testing.T) {
	for status, want := range map[int]bool{
		0: false, 200: false, 400: false, 401: false, 403: false, 404: false, 408: true, 409: true, 413: false, 422: false,
		429: true, 500: true, 501: false, 502: true, 503: true, 504: true, 529: true,
	} {
		if got := model.RetryableStatus(status); got != want {
			t.Errorf("%d: got %v", status, got)
		}
	}
}

func TestAPIErrorUnwraps(t *testing.T) {
	err := error(&model.APIError{Provider: "gemini", Message: "no answer", Err: io.ErrUnexpectedEOF})
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "gemini: no answer: unexpected EOF" {
		t.Errorf("got %v", err)
	}
}
