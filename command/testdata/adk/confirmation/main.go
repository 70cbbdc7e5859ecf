// SPDX-License-Identifier: Apache-2.0

// Confirmation has a tool that runs when a person has agreed.
package main

import (
	"context"
	"fmt"

	"google.golang.org/genai"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/adk/tool/toolconfirmation"

	"example.com/programs/say"
)

type file struct {
	Name string `json:"name"`
}

func remove(_ agent.ToolContext, in file) (string, error) {
	fmt.Println("removed", in.Name)
	return "done", nil
}

func main() {
	ctx := context.Background()
	t := say.Must(functiontool.New(functiontool.Config{Name: "remove", Description: "Removes a file.", RequireConfirmation: true}, remove))
	root := say.Must(llmagent.New(llmagent.Config{Name: "cleaner", Model: say.Model(ctx), Instruction: "Clean up.", Tools: []tool.Tool{t}}))
	svc := session.InMemoryService()
	r := say.Must(runner.New(runner.Config{AppName: "programs", Agent: root, SessionService: svc}))
	made := say.Must(svc.Create(ctx, &session.CreateRequest{AppName: "programs", UserID: "ana"}))
	for _, yes := range []bool{false, true} {
		call := say.Turn(ctx, r, made.Session.ID(), genai.NewContentFromText("Remove a.txt.", genai.RoleUser))
		if call == nil || call.Name != toolconfirmation.FunctionCallName {
			panic("nobody was asked")
		}
		of := say.Must(toolconfirmation.OriginalCallFrom(call))
		fmt.Println("asked about", of.Name, of.Args["name"], "and answered", yes)
		answer := genai.NewPartFromFunctionResponse(call.Name, map[string]any{"confirmed": yes})
		answer.FunctionResponse.ID = call.ID
		say.Turn(ctx, r, made.Session.ID(), genai.NewContentFromParts([]*genai.Part{answer}, genai.RoleUser))
	}
}
