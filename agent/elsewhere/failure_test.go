// SPDX-License-Identifier: Apache-2.0

package elsewhere_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/model"
)

// The errors of a task are known again where its result is read. Workers of other versions write and read the same.
func TestFailuresTravel(t *testing.T) {
	kinds := elsewhere.Kinds{elsewhere.Fields[*model.APIError]("provider"), elsewhere.As[*taskagent.LimitError]("limit"),
		elsewhere.Late, elsewhere.Is("not_found", exec.ErrNotFound)}
	for _, tt := range []struct {
		err  error
		sent string
		back func(error) bool
	}{
		{errors.New("no luck"), `{"text":"no luck"}`, func(err error) bool { return errors.Unwrap(err) == nil }},
		{fmt.Errorf("run it: %w", context.DeadlineExceeded), `{"late":true,"text":"run it: context deadline exceeded"}`,
			func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		{fmt.Errorf("run it: %w", exec.ErrNotFound), `{"not_found":true,"text":"run it: executable file not found in $PATH"}`,
			func(err error) bool { return errors.Is(err, exec.ErrNotFound) }},
		{&taskagent.LimitError{Stream: "stdout", Limit: 5},
			`{"limit":{"Stream":"stdout","Limit":5},"text":"stdout is longer than the limit of 5 bytes; raise the output limit if that is fine"}`,
			func(err error) bool {
				e, ok := errors.AsType[*taskagent.LimitError](err)
				return ok && *e == taskagent.LimitError{Stream: "stdout", Limit: 5}
			}},
		{&model.APIError{Provider: "openai", Status: 429, RequestID: "q", RetryAfter: time.Second, Retryable: true},
			`{"provider":"openai","request_id":"q","retry_after":1000000000,"retryable":true,"status":429,"text":"openai: status 429 (request q)"}`,
			func(err error) bool {
				e, ok := errors.AsType[*model.APIError](err)
				return ok && e.Status == 429 && e.RequestID == "q" && e.RetryAfter == time.Second && e.Retryable
			}},
	} {
		text, err := json.Marshal(kinds.Write(tt.err))
		if err != nil || string(text) != tt.sent {
			t.Errorf("%v travels as %s, %v, want %s", tt.err, text, err, tt.sent)
		}
		var f elsewhere.Failure
		if err := json.Unmarshal([]byte(tt.sent), &f); err != nil {
			t.Fatal(err)
		}
		if back := kinds.Read(f); back.Error() != tt.err.Error() || !tt.back(back) {
			t.Errorf("%s is read as %#v", tt.sent, back)
		}
	}
	if f := kinds.Write(nil); f != nil || kinds.Read(f) != nil {
		t.Errorf("no error travels as %v", f)
	}
}
