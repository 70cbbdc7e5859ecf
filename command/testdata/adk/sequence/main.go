// SPDX-License-Identifier: Apache-2.0

// Sequence writes a text and translates it.
package main

import (
	"context"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/runner"

	"example.com/programs/say"
)

func main() {
	ctx := context.Background()
	llm := say.Model(ctx)
	polite := func(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
		temperature := float32(0.5)
		req.Config.Temperature = &temperature
		return nil, nil
	}
	writer := say.Must(llmagent.New(llmagent.Config{Name: "writer", Model: llm, Instruction: "Write.", OutputKey: "text"}))
	translator := say.Must(llmagent.New(llmagent.Config{Name: "translator", Model: llm, Instruction: "Translate: {text}",
		IncludeContents: llmagent.IncludeContentsNone, BeforeModelCallbacks: []llmagent.BeforeModelCallback{polite}}))
	root := say.Must(sequentialagent.New(sequentialagent.Config{
		AgentConfig: agent.Config{Name: "both", Description: "Writes, then translates.", SubAgents: []agent.Agent{writer, translator}}}))
	say.Run(ctx, runner.Config{}, root, "Write about a cat.")
}
