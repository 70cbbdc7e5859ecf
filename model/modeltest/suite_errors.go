// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
)

func testFailures(t *testing.T, o Options) {
	failure := func(status int, code string) scripted.Answer {
		return scripted.Answer{Error: &scripted.Failure{Status: status, Code: code, Message: "what is wrong"}}
	}
	for _, tt := range []struct {
		name   string
		answer scripted.Answer
		status int // want
		retry  bool
		after  time.Duration
		says   string
	}{
		{"too many requests", scripted.Answer{Error: &scripted.Failure{Status: 429, Code: "rate_limit_error", Message: "slow down", RetryAfter: 7 * time.Second}}, 429, true, 7 * time.Second, "slow down"},
		{"a fraction of a second", scripted.Answer{Error: &scripted.Failure{Status: 429, Code: "rate_limit_error", Message: "slow down", RetryAfter: 1500 * time.Millisecond}}, 429, true, 1500 * time.Millisecond, "slow down"},
		{"server error", failure(500, "api_error"), 500, true, 0, "what is wrong"},
		{"overloaded", failure(529, "overloaded_error"), 529, true, 0, "overloaded_error"},
		{"request timeout", failure(408, "timeout"), 408, true, 0, "what is wrong"},
		{"conflict", failure(409, "conflict"), 409, true, 0, "what is wrong"},
		{"bad request", failure(400, "invalid_request_error"), 400, false, 0, "what is wrong"},
		{"wrong key", failure(401, "authentication_error"), 401, false, 0, "what is wrong"},
		{"no such model", failure(404, "not_found_error"), 404, false, 0, "what is wrong"},
		{"lost connection", scripted.Answer{Error: &scripted.Failure{}}, 0, true, 0, ""},
		{"garbage", scripted.Answer{Text: "Once upon a time there was a loop.", Garbage: true}, 200, false, 0, "not understood"},
	} {
		both(t, tt.name, func(t *testing.T, stream bool) {
			llm, srv := o.Open(t, script(tt.answer))
			s := ask(t.Context(), t, llm, userSays("Say it."), stream)
			e, ok := errors.AsType[*model.APIError](s.err)
			if !ok {
				t.Fatalf("got %v, not an APIError; the answer is %v", s.err, s.final)
			}
			if e.Status != tt.status || e.Retryable != tt.retry || e.RetryAfter != tt.after || e.Provider == "" {
				t.Errorf("got %+v", e)
			}
			if after, retry := model.Retryable(s.err); after != tt.after || retry != tt.retry {
				t.Errorf("Retryable = %v, %v", after, retry)
			}
			if !strings.Contains(e.Error(), tt.says) || len(e.Error()) > 600 {
				t.Errorf("it says %q", e)
			}
			if srv != nil && len(srv.Requests()) != 1 {
				t.Errorf("%d requests: something retried", len(srv.Requests()))
			}
		})
	}
	for name, answer := range map[string]scripted.Answer{
		"cut in the text":      {Chunks: []string{"Once ", "upon ", "a ", "time."}},
		"cut before the calls": {Text: "Counting.", Calls: []scripted.Call{{Name: "count"}}},
		"cut in a call":        {Calls: []scripted.Call{{Name: "count", Args: map[string]any{"n": 5.0}}}},
		"cut after a thought":  {Thought: "Hm.", Text: "Yes."},
	} {
		answer.Cut = true
		both(t, name, func(t *testing.T, stream bool) {
			llm, _ := o.Open(t, script(answer))
			s := ask(t.Context(), t, llm, userSays("Tell it."), stream)
			if _, retry := model.Retryable(s.err); !retry || !errors.Is(s.err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v, answer %v; want a retryable io.ErrUnexpectedEOF", s.err, s.final)
			}
			if len(answer.Chunks) > 0 && stream && s.text != "Once upon " {
				t.Errorf("partial responses come to %q", s.text)
			}
		})
	}
}

var errUserLeft = errors.New("the user left")

func testCancelled(t *testing.T, o Options) {
	both(t, "before", func(t *testing.T, stream bool) {
		llm, srv := o.Open(t, script(scripted.Answer{Text: "Hello."}))
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		cancel(errUserLeft)
		checkCancelled(t, ask(ctx, t, llm, userSays("Say it."), stream))
		if srv != nil && len(srv.Requests()) > 0 {
			t.Error("it asked all the same")
		}
	})
	both(t, "while it waits", func(t *testing.T, stream bool) {
		llm, _ := o.Open(t, script(scripted.Answer{Text: "Hello.", Delay: time.Hour}))
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		timer := time.AfterFunc(20*time.Millisecond, func() { cancel(errUserLeft) })
		defer timer.Stop()
		checkCancelled(t, ask(ctx, t, llm, userSays("Say it."), stream))
	})
	both(t, "midway", func(t *testing.T, stream bool) {
		llm, _ := o.Open(t, script(scripted.Answer{Chunks: []string{"One. ", "Two."}, Hang: true}))
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if !stream {
			timer := time.AfterFunc(20*time.Millisecond, func() { cancel(errUserLeft) })
			defer timer.Stop()
			checkCancelled(t, ask(ctx, t, llm, userSays("Say it."), stream))
			return
		}
		var got reply
		for resp, err := range llm.GenerateContent(ctx, userSays("Count."), stream) {
			if got.err != nil || got.final != nil {
				t.Fatalf("yielded (%v, %v) after the end", resp, err)
			}
			if err != nil {
				got.err = err
				continue
			}
			if !resp.Partial {
				got.final = resp
			}
			cancel(errUserLeft)
		}
		checkCancelled(t, got)
	})
	both(t, "deadline", func(t *testing.T, stream bool) {
		llm, _ := o.Open(t, script(scripted.Answer{Text: "Hello.", Hang: true}))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		s := ask(ctx, t, llm, userSays("Say it."), stream)
		if _, retry := model.Retryable(s.err); retry || !errors.Is(s.err, context.DeadlineExceeded) {
			t.Errorf("got %v", s.err)
		}
	})
}

func checkCancelled(t *testing.T, s reply) {
	t.Helper()
	if !errors.Is(s.err, errUserLeft) {
		t.Errorf("got %v, answer %v; want the context's cause", s.err, s.final)
	}
	if _, retry := model.Retryable(s.err); retry {
		t.Errorf("%v is called retryable", s.err)
	}
}
