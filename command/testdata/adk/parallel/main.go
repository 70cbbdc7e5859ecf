// SPDX-License-Identifier: Apache-2.0

// Parallel asks two agents at the same time, and a third one for both answers.
package main

import (
	"context"
	"fmt"

	"google.golang.org/genai"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/agent/workflowagents/parallelagent"
	"google.golang.org/adk/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"

	"example.com/programs/say"
)

func main() {
	ctx := context.Background()
	llm := say.Model(ctx)
	ask := func(name string) agent.Agent {
		return say.Must(llmagent.New(llmagent.Config{Name: name, Model: llm, Instruction: "You are " + name + ".", OutputKey: name}))
	}
	both := say.Must(parallelagent.New(parallelagent.Config{
		AgentConfig: agent.Config{Name: "both", SubAgents: []agent.Agent{ask("left"), ask("right")}}}))
	judge := say.Must(llmagent.New(llmagent.Config{Name: "judge", Model: llm, Instruction: "Compare {left} and {right}",
		IncludeContents: llmagent.IncludeContentsNone}))
	root := say.Must(sequentialagent.New(sequentialagent.Config{
		AgentConfig: agent.Config{Name: "all", SubAgents: []agent.Agent{both, judge}}}))

	svc := session.InMemoryService()
	r := say.Must(runner.New(runner.Config{AppName: "programs", Agent: root, SessionService: svc}))
	made := say.Must(svc.Create(ctx, &session.CreateRequest{AppName: "programs", UserID: "ana"}))
	said := map[string]string{}
	hello := genai.NewContentFromText("Which way?", genai.RoleUser)
	for event, err := range r.Run(ctx, "ana", made.Session.ID(), hello, agent.RunConfig{}) {
		say.Must(event, err)
		if event.Content != nil && len(event.Content.Parts) > 0 {
			said[event.Branch+" "+event.Author] = event.Content.Parts[0].Text
		}
	}
	for _, who := range []string{"both.left left", "both.right right", " judge"} {
		fmt.Printf("%s: %s\n", who, said[who])
	}
}
