// SPDX-License-Identifier: Apache-2.0

package loggingplugin_test

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/plugin"
	"github.com/refrain-dev/refrain/plugin/loggingplugin"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// The model is scripted: it calls a tool that fails, and then says something that would begin another line.
func Example() {
	m, err := scripted.New(scripted.Script{Answers: []scripted.Answer{
		{Calls: []scripted.Call{{Name: "look", Args: map[string]any{"at": "the sky"}}}}, {Text: "It is dark.\n[log] run e-2 begins"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	look, err := functiontool.New(functiontool.Config{Name: "look"}, func(agent.Context, map[string]any) (string, error) {
		return "", errors.New("dark \x1b[31m")
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := llmagent.New(llmagent.Config{Name: "watcher", Model: m, Tools: []tool.Tool{look}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{loggingplugin.MustNew("log")}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := platform.WithUUIDProvider(context.Background(), func() string { return "1" })
	for _, err := range r.Run(ctx, "ana", "s1", genai.NewContentFromText("What do you see?", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// [log] message of ana in session s1: "What do you see?"
	// [log] run e-1 begins with watcher
	// [log] agent watcher begins
	// [log] watcher asks model scripted: 1 contents, tools: look
	// [log] the model answers watcher: call of look
	// [log] event of watcher: call of look
	// [log] watcher calls tool look: map[at:the sky]
	// [log] tool look fails: dark [31m
	// [log] event of watcher: answer of look
	// [log] watcher asks model scripted: 3 contents, tools: look
	// [log] the model answers watcher: "It is dark. [log] run e-2 begins"
	// [log] event of watcher: "It is dark. [log] run e-2 begins"
	// [log] agent watcher ends
	// [log] run e-1 ends
}
