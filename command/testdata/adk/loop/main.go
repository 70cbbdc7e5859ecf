// SPDX-License-Identifier: Apache-2.0

// Loop improves a text until its critic has no more to say.
package main

import (
	"context"
	"fmt"

	"google.golang.org/genai"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/agent/workflowagents/loopagent"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/exitlooptool"

	"example.com/programs/say"
)

func main() {
	ctx := context.Background()
	llm := say.Model(ctx)
	count := func(cc agent.CallbackContext) (*genai.Content, error) {
		n, _ := cc.State().Get("passes")
		text, _ := n.(string)
		return nil, cc.State().Set("passes", text+"I")
	}
	writer := say.Must(llmagent.New(llmagent.Config{Name: "writer", Model: llm, Instruction: "Improve: {draft?}",
		OutputKey: "draft", BeforeAgentCallbacks: []agent.BeforeAgentCallback{count}}))
	critic := say.Must(llmagent.New(llmagent.Config{Name: "critic", Model: llm, Instruction: "Judge: {draft?}",
		Tools: []tool.Tool{say.Must(exitlooptool.New())}}))
	root := say.Must(loopagent.New(loopagent.Config{MaxIterations: 5,
		AgentConfig: agent.Config{Name: "improve", SubAgents: []agent.Agent{writer, critic}}}))
	s := say.Run(ctx, runner.Config{}, root, "Write about a cat.")
	fmt.Println("draft:", say.Must(s.State().Get("draft")), "passes:", say.Must(s.State().Get("passes")))
}
