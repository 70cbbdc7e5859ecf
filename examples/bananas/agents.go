// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// newLoop returns the loop of painter and counter. It ends when the number that
// was counted is the number wanted, whatever the models say about it.
func newLoop(llm model.LLM, tools []tool.Tool) (agent.Agent, error) {
	painter, err := llmagent.New(llmagent.Config{
		Name:        "painter",
		Description: "Paints a picture.",
		Model:       llm,
		Instruction: `Call generate_image once, for exactly {{wanted}} bananas.
{{^is_first_iteration}}The last picture had {{counted}}, so a new one is needed.{{/is_first_iteration}}
Then say in one short sentence that the picture is there.`,
		Tools:   tools[:1],
		Context: llmagent.ContextConfig{Policy: llmagent.ContextIteration},
	})
	if err != nil {
		return nil, fmt.Errorf("make the painter: %w", err)
	}
	counter, err := llmagent.New(llmagent.Config{
		Name:        "counter",
		Description: "Counts what is in the picture.",
		Model:       llm,
		Instruction: "Call count_food_items once, for the file " + pictureFile +
			". Then say in one short sentence whether there are {{wanted}} bananas.",
		Tools:   tools[1:],
		Context: llmagent.ContextConfig{Policy: llmagent.ContextIteration},
	})
	if err != nil {
		return nil, fmt.Errorf("make the counter: %w", err)
	}
	report, err := taskagent.NewText(taskagent.TextConfig{
		Config: taskagent.Config{Name: "report"},
		Text:   pictureFile + " has {{counted}} bananas, {{wanted}} were wanted.",
	})
	if err != nil {
		return nil, fmt.Errorf("make the report: %w", err)
	}
	return loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{
			Name:        "bananas",
			Description: "Paints bananas until there are as many as were wanted.",
			SubAgents:   []agent.Agent{painter, counter, report},
		},
		MaxIterations: 10,
		StopWhen:      &loop.Condition{Expr: "state.counted == state.wanted"},
		CanExit:       []string{},
		Finalizer:     "report",
	})
}
