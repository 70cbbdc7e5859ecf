// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
)

// LOOP 23: a request whose process is killed before the answer is in the log counts in the budget of the resumed run.
func TestRequestThatWasCutOffCounts(t *testing.T) {
	var asked counting
	start := func() agent.Agent {
		a, err := llmagent.New(llmagent.Config{Name: "a", Model: &asked})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	store, cfg := crashed(t, nil, nil, 0), agent.RunConfig{Budget: &budget.Limits{Calls: 3}}
	dies := &failing{Service: store, onAppend: func(ev *session.Event) error {
		if ev.Mark == nil && ev.Author == "a" {
			return errors.New("killed")
		}
		return nil
	}}
	for range newRunner(t, durable(start(), dies)).Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), cfg) {
	}
	log := slices.Collect(get(t, store).Events().All())
	var last error
	for range 6 {
		for _, err := range newRunner(t, durable(start(), dies)).Resume(t.Context(), "ana", "s1", log[0].InvocationID, cfg) {
			last = err
		}
	}
	if n := asked.calls.Load(); n != 3 || last == nil {
		t.Errorf("%d requests; %v", n, last)
	}
}
