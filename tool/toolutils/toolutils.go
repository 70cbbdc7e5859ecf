// SPDX-License-Identifier: Apache-2.0

// Package toolutils is where programs written for ADK find PackTool. New programs use [tool.Pack].
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

// Tool is what [PackTool] packs.
type Tool interface {
	Name() string
	Declaration() *genai.FunctionDeclaration
}

// Packable is the name that ADK v1 has for [Tool].
type Packable = Tool

// PackTool adds a tool and its declaration to a request. The errors are those of [tool.Pack]: the tool needs its
// other methods too, because a model may call it.
func PackTool(req *model.LLMRequest, t Tool) error {
	full, ok := t.(tool.Tool)
	if !ok {
		return fmt.Errorf("pack tool %q: a %T has not all methods of tool.Tool", t.Name(), t)
	}
	return tool.Pack(req, full)
}
