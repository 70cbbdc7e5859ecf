// SPDX-License-Identifier: Apache-2.0

// Custom has an agent whose Run is its own: it makes events, and runs one of its sub-agents.
package main

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/genai"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"

	"example.com/programs/say"
)

func main() {
	ctx := context.Background()
	yes := say.Must(llmagent.New(llmagent.Config{Name: "yes", Model: say.Model(ctx), Instruction: "Agree."}))
	no := say.Must(llmagent.New(llmagent.Config{Name: "no", Model: say.Model(ctx), Instruction: "Refuse."}))
	after := func(cc agent.CallbackContext) (*genai.Content, error) {
		return genai.NewContentFromText("that was "+cc.AgentName(), genai.RoleModel), nil
	}
	root := say.Must(agent.New(agent.Config{Name: "router", Description: "Decides who answers.", Run: route,
		SubAgents: []agent.Agent{yes, no}, AfterAgentCallbacks: []agent.AfterAgentCallback{after}}))
	s := say.Run(ctx, runner.Config{}, root, "yes", "no")
	fmt.Println("asked:", say.Must(s.State().Get("asked")), "events:", s.Events().Len())
}

func route(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		want := ctx.UserContent().Parts[0].Text
		event := session.NewEvent(ctx.InvocationID())
		event.Author = ctx.Agent().Name()
		event.Content = genai.NewContentFromText("I ask "+want, genai.RoleModel)
		event.Actions.StateDelta["asked"] = want
		if !yield(event, nil) {
			return
		}
		for event, err := range ctx.Agent().FindSubAgent(want).Run(ctx) {
			if !yield(event, err) {
				return
			}
		}
	}
}
