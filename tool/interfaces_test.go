// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"fmt"
	"log"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// counted is a tool around another one.
type counted struct {
	tool.Function
	calls *int
}

func (c counted) Run(ctx tool.Context, args any) (map[string]any, error) {
	*c.calls++
	return c.Function.Run(ctx, args)
}

// house is a tool that no model calls: it adds the rules of the house to each request.
type house struct{ rules string }

func (house) Name() string        { return "house" }
func (house) Description() string { return "Adds the rules of the house." }
func (house) IsLongRunning() bool { return false }

func (h house) ProcessRequest(_ tool.Context, req *model.LLMRequest) error {
	tool.Instruct(req, h.rules)
	return nil
}

// nowhere is the invocation of a test.
type nowhere struct{ agent.StrictContextMock }

func (*nowhere) Session() session.Session { return nil }

// The interfaces of tools are exported: a tool can be wrapped, called in a test, and written from scratch.
func Example_interfaces() {
	greet, err := functiontool.New(functiontool.Config{Name: "greet", Description: "Greets."},
		func(_ tool.Context, in struct {
			Who string `json:"who"`
		}) (string, error) {
			return "Hello, " + in.Who, nil
		})
	if err != nil {
		log.Fatal(err)
	}
	calls := 0
	var wrapped tool.Function = counted{greet.(tool.Function), &calls}
	var rules tool.RequestProcessor = house{"Be brief."}

	ctx := agent.NewToolContext(&nowhere{agent.NewStrictContextMock(context.Background())}, "call-1", nil, nil)
	answer, err := wrapped.Run(ctx, map[string]any{"who": "Ana"})
	fmt.Println(answer["result"], err, calls)

	req := &model.LLMRequest{Config: &genai.GenerateContentConfig{}}
	if err := rules.ProcessRequest(ctx, req); err != nil {
		log.Fatal(err)
	}
	fmt.Println(req.Config.SystemInstruction.Parts[0].Text)
	// Output:
	// Hello, Ana <nil> 1
	// Be brief.
}
