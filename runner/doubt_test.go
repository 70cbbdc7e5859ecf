// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// E5: a step that fails in a parallel agent cuts off a payment beside it; the error
// names that, with its call ID, wherever it is, and a retry asks what became of it.
func TestFailureNamesThePaymentThatItCutOff(t *testing.T) {
	for _, tt := range []struct {
		name  string
		wrap  func(pay agent.Agent) agent.Agent
		at    session.Address
		other bool // the payment ends before the failure
	}{
		{"beside it", func(pay agent.Agent) agent.Agent { return pay }, "branches/pay", false},
		{"in a sequence", func(pay agent.Agent) agent.Agent { return sequence(t, "line", pay, speaker(t, "more", "more")) }, "branches/line/pay", false},
		{"in a loop", func(pay agent.Agent) agent.Agent { return loopOf(t, "loop", 2, pay) }, "branches/loop[1]/pay", false},
		{"that has ended", func(pay agent.Agent) agent.Agent { return pay }, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls atomic.Int64
			ids, paid := make(chan string, 10), make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				calls.Add(1)
				ids <- req.Header.Get("Idempotency-Key")
				if tt.other {
					_, _ = w.Write([]byte("paid"))
					return
				}
				<-req.Context().Done() // the answer never comes
			}))
			defer server.Close()
			grow := func() agent.Agent {
				pay, err := taskagent.NewHTTP(taskagent.HTTPConfig{Config: taskagent.Config{Name: "pay", Effect: agent.AtMostOnce}, URL: server.URL, Method: "POST"})
				if err != nil {
					t.Fatal(err)
				}
				fails := custom(t, "fails", func(_ agent.InvocationContext, yield yield) {
					id := <-ids
					if tt.other {
						<-paid
					}
					ids <- id
					yield(nil, errBroken)
				})
				return branches(t, tt.wrap(pay), fails)
			}
			svc := session.InMemoryService()
			var failed error
			id := ""
			for ev, err := range ask(t.Context(), newRunner(t, durable(grow(), svc)), "go") {
				if failed = err; ev == nil {
					continue
				}
				id = ev.InvocationID
				if ev.Author == "pay" && ev.Mark == nil {
					close(paid)
				}
			}
			if !errors.Is(failed, errBroken) {
				t.Fatalf("got error %v", failed)
			}
			doubt, named := errors.AsType[*agent.InDoubtError](failed)
			if tt.other {
				if named {
					t.Errorf("what has ended is in doubt: %v", failed)
				}
				return
			}
			want := []agent.Doubt{{Address: tt.at, ID: <-ids}}
			if !named {
				t.Fatalf("the error does not name the payment: %v", failed)
			}
			if diff := cmp.Diff(want, doubt.Calls); diff != "" {
				t.Error(diff)
			}
			if text := failed.Error(); !strings.Contains(text, string(tt.at)+" (its call ID is "+want[0].ID) ||
				strings.Count(text, want[0].ID) != 1 || !strings.Contains(text, "resume RUN --retry") {
				t.Errorf("the error says %s", text)
			}
			ids <- want[0].ID // the other one can fail again

			p := &process{TB: t, world: new(world), store: svc, Runner: newRunner(t, durable(grow(), svc))}
			_, err := p.retried(id)
			waiting, ok := errors.AsType[*agent.WaitingError](err)
			if calls.Load() != 1 {
				t.Fatalf("paid %d times", calls.Load())
			}
			if ok && waiting.Address == tt.at {
				answer(t, svc, id, mark.Answer{ID: waiting.Question.ID, Value: json.RawMessage(`{"action": "skip"}`)})
			} else if !errors.Is(err, errBroken) { // it fails again before the question is asked
				t.Errorf("the retry: %v", err)
			}
		})
	}
}
