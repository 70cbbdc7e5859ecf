// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/agenttest"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
)

// A loop keeps the promises of every agent, with ADK's two fields and with all.
func TestAgent(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		agenttest.TestAgent(t, func(t *testing.T) agent.Agent {
			return repeat(t, "refine", 3, says(t, "critic", "x"), says(t, "editor", "y", "z"))
		})
	})
	t.Run("nested", func(t *testing.T) {
		agenttest.TestAgent(t, func(t *testing.T) agent.Agent {
			return repeat(t, "outer", 2, sequence(t, "seq", repeat(t, "inner", 2, says(t, "a", "x")), says(t, "b", "y")))
		})
	})
	t.Run("everything", func(t *testing.T) {
		agenttest.TestAgent(t, func(t *testing.T) agent.Agent {
			return loopOf(t, "refine", 3, func(c *loopagent.Config) {
				c.Rules.Score = &loop.Score{Key: "score", Target: new(9.0)}
				c.Rules.StopWhen = &loop.Condition{Expr: "iteration > 8"}
				finalizeWith(c, "final")
				c.OutputKey, c.KeepStates = "result", true
				c.Rules.OnError = loop.SkipStep
				c.BeforeIteration = []loopagent.BeforeIterationCallback{func(ctx agent.Context, n int) error { return ctx.State().Set("n", n) }}
			}, says(t, "critic", "x"), says(t, "final", "the end"))
		})
	})
}
