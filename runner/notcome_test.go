// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/session"
)

// LOOP 30: a run that is paused again before it has come to the step that was cut off
// goes on in that step all the same, however often.
func TestPausedBeforeItComesToTheStep(t *testing.T) {
	svc := session.InMemoryService()
	var pause *agent.Pause // before the outer loop comes to its step
	var cut *agent.Pause   // in the innermost step
	grow := func() agent.Agent {
		leaf := custom(t, "leaf", func(ctx agent.InvocationContext, yield yield) {
			if cut != nil {
				cut.Ask(agent.ErrPaused)
			}
			yield(says("done"), nil)
		})
		inner, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "inner",
			SubAgents: []agent.Agent{leaf, speaker(t, "more", "more")}}, MaxIterations: 4})
		if err != nil {
			t.Fatal(err)
		}
		outer, err := loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "outer", SubAgents: []agent.Agent{inner}}, MaxIterations: 1,
			BeforeIteration: []loopagent.BeforeIterationCallback{func(agent.Context, int) error {
				if pause != nil {
					pause.Ask(agent.ErrPaused)
				}
				return nil
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return outer
	}
	id := ""
	segment := func(cfg agent.RunConfig) (failed error) {
		r := newRunner(t, durable(grow(), svc))
		seq := r.Run(t.Context(), "ana", "s1", nil, cfg)
		if id != "" {
			seq = r.Resume(t.Context(), "ana", "s1", id, cfg)
		}
		for ev, err := range seq {
			if failed = err; ev != nil {
				id = ev.InvocationID
			}
		}
		return failed
	}
	for range 3 {
		cut, pause = new(agent.Pause), nil
		if err := segment(agent.RunConfig{Pause: cut}); !errors.Is(err, agent.ErrPaused) {
			t.Fatalf("in the step: %v", err)
		}
		cut, pause = nil, new(agent.Pause)
		if err := segment(agent.RunConfig{Pause: pause}); !errors.Is(err, agent.ErrPaused) {
			t.Fatalf("before it: %v", err)
		}
	}
	cut, pause = nil, nil
	if err := segment(agent.RunConfig{}); err != nil {
		t.Fatal(err)
	}
}
