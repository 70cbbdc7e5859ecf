// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// LOOP 21, LOOP 31: a loop whose callbacks have used up its time goes on with more
// of it. What they took counts as it did, though they are quick when told again.
func TestContinueWhenCallbacksHaveTakenTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delay, told := 15*time.Second, 0
		root := func(limit time.Duration) agent.Agent {
			l, err := loopagent.New(loopagent.Config{
				AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{speaker(t, "step", "a", "b", "c", "d")}}, MaxIterations: 4, Rules: loop.Plan{Timeout: loop.Duration(limit)},
				BeforeIteration: []loopagent.BeforeIterationCallback{func(ctx agent.Context, _ int) error {
					if drive.At(ctx).IsReplay() {
						return nil
					}
					told++
					select {
					case <-time.After(delay):
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		svc := session.InMemoryService()
		id, start := "", time.Now()
		for ev, err := range newRunner(t, durable(root(40*time.Second), svc)).Run(t.Context(), "ana", "s1", nil, agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
			id = ev.InvocationID
		}
		if took := time.Since(start); took != 40*time.Second || told != 3 {
			t.Fatalf("the loop took %v, with %d callbacks", took, told)
		}
		start = time.Now()
		for _, err := range newRunner(t, durable(root(80*time.Second), svc)).Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}, runner.Continue()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > 40*time.Second {
			t.Errorf("the loop took %v more", took)
		}
		last := ""
		for ev := range get(t, svc).Events().All() {
			if ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped {
				var rec struct{ Reason, Elapsed string }
				if err := ev.Mark.Decode(&rec); err != nil {
					t.Fatal(err)
				}
				last = rec.Reason + " " + rec.Elapsed
			}
		}
		if diff := cmp.Diff("max_iterations 55s", last); diff != "" {
			t.Error(diff)
		}
	})
}
