// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/session"
)

// README's line resumes a run without a Pause. If a call is in doubt that must not be made twice, that is refused, and
// the run does not end: resumed with a Pause it asks.
func TestResumeThatCannotAskEndsNothing(t *testing.T) {
	var calls atomic.Int64
	paying := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		calls.Add(1)
		paying <- struct{}{}
		<-req.Context().Done()
	}))
	defer server.Close()
	grow := func() agent.Agent {
		pay, err := taskagent.NewHTTP(taskagent.HTTPConfig{Config: taskagent.Config{Name: "pay", Effect: agent.AtMostOnce}, URL: server.URL, Method: "POST"})
		if err != nil {
			t.Fatal(err)
		}
		return loopOf(t, "loop", 2, pay)
	}
	svc := session.InMemoryService()
	ctx, cut := context.WithCancel(t.Context())
	go func() { <-paying; cut() }()
	for range newRunner(t, durable(grow(), svc)).Run(ctx, "ana", "s1", nil, agent.RunConfig{}) {
	}
	for range 2 {
		var failed error
		for _, err := range newRunner(t, durable(grow(), svc)).Resume(t.Context(), "ana", "s1", "", agent.RunConfig{}) {
			failed = err
		}
		if !errors.Is(failed, agent.ErrCannotAsk) {
			t.Errorf("without a Pause: %v", failed)
		}
	}
	if err := resumed(t, grow(), svc, "", nil); !errors.Is(err, agent.ErrWaiting) || calls.Load() != 1 {
		t.Errorf("with a Pause: %v, after %d calls", err, calls.Load())
	}
}
