// SPDX-License-Identifier: Apache-2.0

// Package say is what the programs have in common: a model, and a conversation that they print.
package say

import (
	"context"
	"fmt"
	"log"

	"google.golang.org/genai"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/model/gemini"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
)

// Model is the model of all agents.
func Model(ctx context.Context) model.LLM {
	return Must(gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{}))
}

// Must returns v, or ends the program.
func Must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// Run says texts to an agent in a new session, which it returns.
func Run(ctx context.Context, cfg runner.Config, root agent.Agent, texts ...string) session.Session {
	cfg.AppName, cfg.Agent = "programs", root
	if cfg.SessionService == nil {
		cfg.SessionService = session.InMemoryService()
	}
	r := Must(runner.New(cfg))
	made := Must(cfg.SessionService.Create(ctx, &session.CreateRequest{AppName: "programs", UserID: "ana"}))
	for _, text := range texts {
		Turn(ctx, r, made.Session.ID(), genai.NewContentFromText(text, genai.RoleUser))
	}
	got := Must(cfg.SessionService.Get(ctx, &session.GetRequest{AppName: "programs", UserID: "ana", SessionID: made.Session.ID()}))
	return got.Session
}

// Turn prints what a run answers to a message. It returns the last call in it.
func Turn(ctx context.Context, r *runner.Runner, id string, message *genai.Content) (call *genai.FunctionCall) {
	for event, err := range r.Run(ctx, "ana", id, message, agent.RunConfig{StreamingMode: agent.StreamingModeNone}) {
		if err != nil {
			log.Fatal(err)
		}
		if event.Content == nil {
			continue
		}
		for _, part := range event.Content.Parts {
			switch {
			case part.FunctionCall != nil:
				call = part.FunctionCall
				fmt.Printf("[%s] calls %s\n", event.Author, call.Name)
			case part.FunctionResponse != nil:
				fmt.Printf("[%s] %s answers %v\n", event.Author, part.FunctionResponse.Name, part.FunctionResponse.Response)
			case part.Text != "":
				fmt.Printf("[%s] %s\n", event.Author, part.Text)
			}
		}
	}
	return call
}
