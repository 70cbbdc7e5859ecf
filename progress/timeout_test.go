// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// F4: a step that has run out of time has failed, and that is told once.
func TestStepThatRunsOutOfTimeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := must(agent.New(agent.Config{Name: "slow", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				<-ctx.Done()
				yield(nil, ctx.Err())
			}
		}}))
		root := must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{slow}}, MaxIterations: 1,
			Steps: map[string]loopagent.StepPolicy{"slow": {Timeout: time.Second, OnError: loop.SkipStep}},
		}))
		var lines []string
		if _, err := follow(t.Context(), root, func(l string) { lines = append(lines, l) }); err == nil || !strings.Contains(err.Error(), loop.NoneSucceeded) {
			t.Fatal(err)
		}
		failed := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.Contains(l, "Failed: ") })
		if len(failed) != 1 {
			t.Errorf("got %q", lines)
		}
	})
}
