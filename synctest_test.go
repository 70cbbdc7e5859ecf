// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain"
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
)

func TestNightStopsInTheMorning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		llm, err := scripted.New(scripted.Script{Answers: []scripted.Answer{
			{Text: "a draft", Delay: 5 * time.Hour},
			{Text: "a better draft", Delay: 5 * time.Hour},
		}})
		if err != nil {
			t.Fatal(err)
		}
		writer, err := llmagent.New(llmagent.Config{Name: "writer", Model: llm, OutputKey: "draft"})
		if err != nil {
			t.Fatal(err)
		}
		night, err := loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "night", SubAgents: []agent.Agent{writer}},
			Rules:       loop.Plan{Timeout: loop.Duration(8 * time.Hour)},
		})
		if err != nil {
			t.Fatal(err)
		}
		res, err := refrain.Run(t.Context(), night, "Write until the morning.")
		if err != nil {
			t.Fatal(err)
		}
		if res.Stop.Reason != loop.ReasonTimeout || res.Best.Text != "a draft" {
			t.Errorf("%v, best %q", res.Stop, res.Best.Text)
		}
	})
}
