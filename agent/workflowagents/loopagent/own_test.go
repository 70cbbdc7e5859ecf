// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/loop"
)

// What the caller does with its config after New does not change the loop.
func TestLoopOwnsItsConfig(t *testing.T) {
	var rec *loop.StopRecord
	cfg := loopagent.Config{
		AgentConfig:   agent.Config{Name: "l", SubAgents: []agent.Agent{drafts(t, "w", "score", 1, 2, 3, 4, 5)}},
		MaxIterations: 5,
		Rules: loop.Plan{
			CanExit: []string{"w"}, Order: []string{"w"},
			StopWhen:    &loop.Condition{Any: []loop.Condition{{Not: &loop.Condition{Expr: "score < 3"}}}},
			Score:       &loop.Score{Key: "score", Target: new(9.0)},
			QualityGate: new(0.0), Budget: &loop.Budget{Cost: new(100.0)}, NoProgress: &loop.NoProgress{Keys: []string{"score"}},
			NotWorth: &loop.NotWorth{Gain: 0.001},
			Steps:    []loop.Step{{Name: "w", Timeout: loop.Duration(time.Hour), Retry: &loop.Retry{Attempts: 2}}},
		},
	}
	into(&rec)(&cfg)
	a := must(t)(loopagent.New(cfg))
	cfg.Rules.StopWhen.Any[0].Not.Expr = "true"
	*cfg.Rules.Score.Target, cfg.Rules.Score.Key, *cfg.Rules.QualityGate, *cfg.Rules.Budget.Cost = 1, "other", 99, 0
	cfg.Rules.NoProgress.Keys[0], cfg.Rules.NoProgress.Repeats, cfg.Rules.NotWorth.Gain = "none", 2, 1000
	cfg.Rules.CanExit[0], cfg.Rules.Order[0], cfg.Rules.Steps[0].Retry.Attempts = "x", "x", 0
	cfg.AgentConfig.SubAgents[0] = nil
	mustPlay(t, a)
	check(t, "reason", rec.Reason, loop.ReasonCondition)
	check(t, "iterations", rec.Iterations, 3)
	kept := a.(*loopagent.Agent).Config()
	if *kept.Rules.Score.Target != 9 || kept.Rules.Steps[0].Retry.Attempts != 2 || kept.AgentConfig.SubAgents[0] == nil {
		t.Errorf("the loop's config has changed: %+v", kept)
	}
}

// A loop that nobody has made is refused, and fails when it is run; it does not panic.
func TestZeroLoop(t *testing.T) {
	for _, zero := range []agent.Agent{&loopagent.Agent{}, (*loopagent.Agent)(nil)} {
		if _, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "s", SubAgents: []agent.Agent{zero}}}); err == nil {
			t.Errorf("%T is taken", zero)
		}
		if _, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "s", SubAgents: []agent.Agent{zero}}}); err == nil {
			t.Errorf("%T is taken", zero)
		}
	}
	zero := &loopagent.Agent{}
	if err := zero.GoesOn(nil, nil); err == nil {
		t.Error("it goes on")
	}
	for _, err := range zero.Run(nil) {
		if err == nil {
			t.Error("it runs")
		}
	}
}
