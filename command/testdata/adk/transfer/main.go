// SPDX-License-Identifier: Apache-2.0

// Transfer has an agent that hands the conversation to another one.
package main

import (
	"context"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/runner"

	"example.com/programs/say"
)

func main() {
	ctx := context.Background()
	llm := say.Model(ctx)
	bills := say.Must(llmagent.New(llmagent.Config{Name: "bills", Model: llm, Description: "Answers questions about bills.",
		Instruction: "Explain the bill."}))
	greeter := say.Must(llmagent.New(llmagent.Config{Name: "greeter", Model: llm, Instruction: "Find who can help.",
		SubAgents: []agent.Agent{bills}}))
	say.Run(ctx, runner.Config{}, greeter, "My bill is wrong.", "And the last one?")
}
