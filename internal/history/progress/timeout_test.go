// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// What ended an iteration is what it is shown as: it has failed if a step of it ran out of the loop's time, was cut off if the
// budget was spent between two steps, and is complete if a condition held in the middle of it.
func TestIterationCutShortIsNotCompleted(t *testing.T) {
	nothing := func(int, *session.Event) error { return nil }
	rest := must(agent.New(agent.Config{Name: "rest", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		drive.At(ctx).Budget().Book(budget.Usage{Calls: 2})
		return paced(func(int) time.Duration { return time.Second }, nothing)(ctx)
	}}))
	for name, c := range map[string]struct {
		cfg  loopagent.Config
		want []string
	}{
		"in a step":         {loopagent.Config{Rules: loop.Plan{Timeout: loop.Duration(1500 * time.Millisecond)}}, []string{"1 completed 1s", "2 failed 500ms"}},
		"between two steps": {loopagent.Config{Rules: loop.Plan{Budget: &loop.Budget{Calls: 1}}}, []string{"1 canceled 1s"}},
		"a condition holds": {loopagent.Config{Rules: loop.Plan{StopWhen: &loop.Condition{Expr: "iteration == 2"}}}, []string{"1 completed 1s", "2 completed 1s"}},
	} {
		var log []*session.Event
		synctest.Test(t, func(t *testing.T) {
			c.cfg.AgentConfig = agent.Config{Name: "l", SubAgents: []agent.Agent{rest, timed("last", 0, nothing)}}
			log = record(t, t.Context(), must(loopagent.New(c.cfg)))
		})
		var live progress.Live
		for _, ev := range log {
			live.Add(ev)
		}
		got := slices.DeleteFunc(sketch(live.Tree())[1:], func(l string) bool { return strings.HasPrefix(l, " ") })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

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
			Rules: loop.Plan{Steps: []loop.Step{{Name: "slow", Timeout: loop.Duration(time.Second), OnError: loop.SkipStep}}},
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
