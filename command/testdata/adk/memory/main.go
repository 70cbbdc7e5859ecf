// SPDX-License-Identifier: Apache-2.0

// Memory has agents that remember an earlier conversation, and read and write files.
package main

import (
	"context"
	"fmt"

	"google.golang.org/genai"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/artifact"
	"google.golang.org/adk/memory"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/adk/tool/loadartifactstool"
	"google.golang.org/adk/tool/loadmemorytool"
	"google.golang.org/adk/tool/preloadmemorytool"

	"example.com/programs/say"
)

type note struct {
	Text string `json:"text"`
}

func save(tc agent.ToolContext, in note) (map[string]any, error) {
	saved, err := tc.Artifacts().Save(tc, "note.txt", genai.NewPartFromText(in.Text))
	if err != nil {
		return nil, err
	}
	return map[string]any{"version": saved.Version}, nil
}

func main() {
	ctx := context.Background()
	llm := say.Model(ctx)
	files, memories := artifact.InMemoryService(), memory.InMemoryService()
	config := runner.Config{ArtifactService: files, MemoryService: memories}

	writer := say.Must(llmagent.New(llmagent.Config{Name: "writer", Model: llm, Instruction: "Take notes.", Tools: []tool.Tool{
		say.Must(functiontool.New(functiontool.Config{Name: "save", Description: "Saves a note."}, save)),
		loadartifactstool.New(),
	}}))
	first := say.Run(ctx, config, writer, "My cat is called Mimi. Note it.", "Read the note.")
	if err := memories.AddSessionToMemory(ctx, first); err != nil {
		panic(err)
	}
	found := say.Must(files.Load(ctx, &artifact.LoadRequest{AppName: "programs", UserID: "ana", SessionID: first.ID(), FileName: "note.txt"}))
	fmt.Println("file:", found.Part.Text)

	reader := say.Must(llmagent.New(llmagent.Config{Name: "reader", Model: llm, Instruction: "Remember.",
		Tools: []tool.Tool{loadmemorytool.New(), preloadmemorytool.New()}}))
	say.Run(ctx, config, reader, "What is my cat called?")
}
