// SPDX-License-Identifier: Apache-2.0

// Plugin follows a run with callbacks that hold for all agents and tools.
package main

import (
	"context"
	"fmt"

	"google.golang.org/genai"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/plugin"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"

	"example.com/programs/say"
)

type none struct{}

func main() {
	ctx := context.Background()
	p := say.Must(plugin.New(plugin.Config{
		Name: "follower",
		OnUserMessageCallback: func(_ agent.InvocationContext, c *genai.Content) (*genai.Content, error) {
			fmt.Println("message:", c.Parts[0].Text)
			return genai.NewContentFromText("What time is it?", genai.RoleUser), nil
		},
		BeforeAgentCallback: func(cc agent.CallbackContext) (*genai.Content, error) {
			fmt.Println("begins:", cc.AgentName())
			return nil, nil
		},
		BeforeModelCallback: func(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
			fmt.Println("asks:", req.Contents[0].Parts[0].Text)
			return nil, nil
		},
		BeforeToolCallback: func(_ agent.ToolContext, t tool.Tool, _ map[string]any) (map[string]any, error) {
			return map[string]any{"time": "noon", "from": t.Name() + " of the plugin"}, nil
		},
		OnEventCallback: func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
			fmt.Println("event of", ev.Author)
			return nil, nil
		},
		AfterRunCallback: func(agent.InvocationContext) { fmt.Println("ends") },
	}))
	clock := say.Must(functiontool.New(functiontool.Config{Name: "clock", Description: "Tells the time."},
		func(agent.ToolContext, none) (none, error) { panic("called") }))
	root := say.Must(llmagent.New(llmagent.Config{Name: "timer", Model: say.Model(ctx), Instruction: "Tell the time.",
		Tools: []tool.Tool{clock}}))
	say.Run(ctx, runner.Config{PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{p}}}, root, "time?")
}
