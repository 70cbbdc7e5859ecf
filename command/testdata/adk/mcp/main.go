// SPDX-License-Identifier: Apache-2.0

// Mcp has an agent with the tools of an MCP server.
package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/mcptoolset"

	"example.com/programs/say"
)

type book struct {
	Title string `json:"title"`
}

type place struct {
	Shelf int `json:"shelf"`
}

func main() {
	ctx := context.Background()
	here, there := mcp.NewInMemoryTransports()
	server := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "find", Description: "Finds a book."},
		func(context.Context, *mcp.CallToolRequest, book) (*mcp.CallToolResult, place, error) {
			return nil, place{4}, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "burn", Description: "Burns a book."},
		func(context.Context, *mcp.CallToolRequest, book) (*mcp.CallToolResult, place, error) {
			panic("burnt")
		})
	say.Must(server.Connect(ctx, there, nil))

	tools := say.Must(mcptoolset.New(mcptoolset.Config{Transport: here}))
	root := say.Must(llmagent.New(llmagent.Config{Name: "librarian", Model: say.Model(ctx), Instruction: "Find books.",
		Toolsets: []tool.Toolset{tool.FilterToolset(tools, tool.StringPredicate([]string{"find"}))}}))
	say.Run(ctx, runner.Config{}, root, "Where is Emma?")
}
