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

// half is a tool that a model could not call.
type half struct{ search }

func (half) Run() {}

func Example() {
	req := new(model.LLMRequest)
	fmt.Println(toolutils.PackTool(req, search{}), req.Config.Tools[0].FunctionDeclarations[0].Name)
	fmt.Println(toolutils.PackTool(req, search{}))
	fmt.Println(toolutils.PackTool(new(model.LLMRequest), half{}) != nil)
	// Output:
	// <nil> search
	// pack tool "search": duplicate tool: the request has another one of that name
	// true
}
