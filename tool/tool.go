// SPDX-License-Identifier: Apache-2.0

// Package tool defines tools, the functions that a model may call. Names and signatures are those
// of ADK for Go.
//
// [functiontool.New] makes a tool from a Go function. A type that has the methods of [Function]
// is a tool too.
//
//	type clock struct{}
//
//	func (clock) Name() string        { return "clock" }
//	func (clock) Description() string { return "Tells the time." }
//	func (clock) IsLongRunning() bool { return false }
//	func (c clock) Declaration() *genai.FunctionDeclaration {
//		return &genai.FunctionDeclaration{Name: c.Name(), Description: c.Description()}
//	}
//	func (clock) Run(ctx tool.Context, args any) (map[string]any, error) {
//		return map[string]any{"now": time.Now().String()}, nil
//	}
//
// An agent gives a tool to its model with [Process] and calls it with [Call].
//
// [functiontool.New]: https://pkg.go.dev/github.com/refrain-dev/refrain/tool/functiontool#New
package tool

import (
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
)

// Context is the context of a tool call. It is [agent.Context] under its name in ADK v1.
type Context = agent.ToolContext

// Tool is a function that a model may call, or a value that changes requests to a model. A usable
// tool is also a [Function] or a [RequestProcessor]. It must be safe for concurrent use: the calls
// of one turn run in parallel.
type Tool interface {
	// Name returns the name by which the model calls the tool.
	Name() string
	// Description returns the purpose of the tool, for the model.
	Description() string
	// IsLongRunning reports whether the answer may come after the call has returned.
	IsLongRunning() bool
}

// Function is a tool that can be called.
type Function interface {
	Tool
	// Declaration returns the description of the tool for the model; nil hides the tool.
	Declaration() *genai.FunctionDeclaration
	// Run answers one call. args is the map[string]any that the model sent. The model gets the text
	// of an error as the answer and can act on it. A nil result of a long-running tool means that
	// the answer comes later.
	Run(ctx Context, args any) (map[string]any, error)
}

// RequestProcessor is a tool or a toolset that changes requests to the model itself.
type RequestProcessor interface {
	// ProcessRequest changes a request before it is sent; see [Pack] and [Instruct]. The request already
	// has the instruction and the conversation. Contents that are appended to req.Contents are part of
	// this request only. Do not change those of the conversation, because they are shared.
	ProcessRequest(ctx Context, req *model.LLMRequest) error
}

// Toolset is a set of tools that is listed only when an agent needs it.
type Toolset interface {
	Name() string
	// Tools lists the tools for the agent of ctx. It is called before each request to the
	// model.
	Tools(ctx agent.ReadonlyContext) ([]Tool, error)
}
