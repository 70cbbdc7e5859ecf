// SPDX-License-Identifier: Apache-2.0

// Package toolutils provides PackTool for programs that were written for ADK. New programs use
// [tool.Pack].
//
//	func (t *search) ProcessRequest(ctx agent.Context, req *model.LLMRequest) error {
//		return toolutils.PackTool(req, t)
//	}
package toolutils

import (
	"fmt"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// Tool is the argument of [PackTool].
type Tool interface {
	Name() string
	Declaration() *genai.FunctionDeclaration
}

// Packable is [Tool] under its name in ADK v1.
type Packable = Tool

// PackTool adds a tool and its declaration to a request. Its errors are those of [tool.Pack], except that the tool
// need not be a [tool.Function]. If the model calls a tool that is not one, it gets an error.
func PackTool(req *model.LLMRequest, t Tool) error {
	f, ok := t.(tool.Function)
	if !ok {
		f = declarationOnly{t}
	}
	return tool.Pack(req, f)
}

// declarationOnly is a tool that has only a declaration.
type declarationOnly struct{ Tool }

func (declarationOnly) IsLongRunning() bool { return false }

func (d declarationOnly) Description() string {
	if decl := d.Declaration(); decl != nil {
		return decl.Description
	}
	return ""
}

func (d declarationOnly) Run(tool.Context, any) (map[string]any, error) {
	return nil, fmt.Errorf("a %T cannot be called, because it is not a tool.Function", d.Tool)
}
