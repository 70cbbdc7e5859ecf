// SPDX-License-Identifier: Apache-2.0

// Core is the smallest program with a loop of agents: .ci/check measures its size.
package main

import (
	"context"
	"fmt"
	"iter"
	"log"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain"
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/model"
)

type echo struct{}

func (echo) Name() string { return "echo" }

func (echo) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: genai.NewContentFromText("again", genai.RoleModel)}, nil)
	}
}

func main() {
	writer, err := llmagent.New(llmagent.Config{Name: "writer", Model: echo{}})
	if err != nil {
		log.Fatal(err)
	}
	refine, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{writer}}, MaxIterations: 3,
	})
	if err != nil {
		log.Fatal(err)
	}
	res, err := refrain.Run(context.Background(), refine, "Go.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text, res.Stop)
}
