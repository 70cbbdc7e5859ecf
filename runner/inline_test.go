// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/plugin"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// around returns trees in which agents of this project are around one that a user has written.
func around(t *testing.T, own func() agent.Agent, before loopagent.BeforeIterationCallback) map[string]agent.Agent {
	cfg := loopagent.Config{MaxIterations: 2, Rules: loop.Plan{Timeout: loop.Duration(time.Hour)}, BeforeIteration: []loopagent.BeforeIterationCallback{before}}
	return map[string]agent.Agent{
		"an agent":   own(),
		"a sequence": sequence(t, "line", own()),
		"branches":   branches(t, own()),
		"a loop":     cycle(t, cfg, "loop", own()),
		"all":        sequence(t, "line", branches(t, cycle(t, cfg, "outer", cycle(t, cfg, "loop", sequence(t, "inner", own()))))),
	}
}

// Code that a user has written is called in no goroutine that ranges over a run, whatever is around it: it may end
// its goroutine, and lock it to a thread, as the consumer may.
func TestUsersCodeIsNotInTheConsumersGoroutine(t *testing.T) {
	for _, marks := range []bool{false, true} {
		for _, ends := range []string{"", "step", "callback"} {
			me := here()
			calls := func(where string) {
				if here() == me {
					t.Errorf("%s is called in the consumer's goroutine", where)
				}
				if runtime.LockOSThread(); where == ends {
					runtime.Goexit()
				}
			}
			own := func() agent.Agent {
				return custom(t, "own", func(_ agent.InvocationContext, yield yield) {
					if yield(says("one"), nil) {
						calls("step")
					}
				})
			}
			for where, root := range around(t, own, func(agent.Context, int) error { calls("callback"); return nil }) {
				cfg := durable(root, session.InMemoryService())
				cfg.Durable = marks
				var failed error
				for _, err := range newRunner(t, cfg).Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
					me.hears(t)
					failed = err
				}
				if loops := where == "a loop" || where == "all"; (failed != nil) != (ends == "step" || ends == "callback" && loops) {
					t.Errorf("%s, marks %v, the %s ends its goroutine: %v", where, marks, ends, failed)
				}
			}
		}
	}
	for range 100 {
		runtime.UnlockOSThread()
	}
}

// A plugin and an observer are such code too: what calls them for each step is in no consumer's goroutine.
func TestPluginsAreNotInTheConsumersGoroutine(t *testing.T) {
	me, called := here(), 0
	on := func(ctx agent.InvocationContext, ev *session.Event) (*session.Event, error) {
		if called++; here() == me {
			t.Error("OnEvent is called in the consumer's goroutine")
		}
		return nil, nil
	}
	cfg := durable(sequence(t, "line", speaker(t, "a", "one")), session.InMemoryService())
	cfg.PluginConfig = runner.PluginConfig{Plugins: []*plugin.Plugin{newPlugin(t, plugin.Config{Name: "p", OnEventCallback: on})}}
	for _, err := range newRunner(t, cfg).Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Error(err)
		}
	}
	if called != 1 {
		t.Errorf("OnEvent was called %d times", called)
	}
}

// LOOP 22: a loop leaves a step behind after its own AbandonAfter, though the loop, sequence or parallel agent that
// the step is would wait longer for its own steps.
func TestOuterLoopGivesUpFirst(t *testing.T) {
	own := func() agent.Agent {
		return custom(t, "deaf", func(agent.InvocationContext, yield) { time.Sleep(time.Hour) })
	}
	nothing := func(agent.Context, int) error { return nil }
	for where := range around(t, own, nothing) {
		synctest.Test(t, func(t *testing.T) {
			root := cycle(t, loopagent.Config{MaxIterations: 1, Rules: loop.Plan{Timeout: loop.Duration(time.Minute)}, AbandonAfter: 100 * time.Millisecond}, "root",
				around(t, own, nothing)[where])
			start := time.Now()
			_, _ = through(begin(t.Context(), t, session.InMemoryService(), root, agent.RunConfig{}))
			if took := time.Since(start) - time.Minute; took < 100*time.Millisecond || took > 200*time.Millisecond {
				t.Errorf("%s: it took %v more than its time", where, took)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}
