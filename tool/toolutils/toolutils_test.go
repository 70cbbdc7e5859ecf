// SPDX-License-Identifier: Apache-2.0

package toolutils_test

import (
	"fmt"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/toolutils"
)

type search struct{}

func (search) Name() string        { return "search" }
func (search) Description() string { return "searches" }
func (search) IsLongRunning() bool { return false }
func (search) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: "search"}
}
func (search) Run(tool.Context, any) (map[string]any, error) { return nil, nil }

// half is a tool that has only a declaration.
type half struct{}

func (half) Name() string { return "half" }
func (half) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: "half", Description: "does nothing"}
}

func Example() {
	req := new(model.LLMRequest)
	fmt.Println(toolutils.PackTool(req, search{}), req.Config.Tools[0].FunctionDeclarations[0].Name)
	fmt.Println(toolutils.PackTool(req, search{}))
	fmt.Println(toolutils.PackTool(req, half{}), len(req.Config.Tools[0].FunctionDeclarations))
	f := req.Tools["half"].(tool.Function)
	_, err := f.Run(nil, nil)
	fmt.Println(f.Description(), f.IsLongRunning(), err)
	// Output:
	// <nil> search
	// pack tool "search": duplicate tool: the request has another one of that name; rename one of them
	// <nil> 2
	// does nothing false a toolutils_test.half cannot be called, because it is not a tool.Function
}
