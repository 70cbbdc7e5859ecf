// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"fmt"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/plugin"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// A plugin that answers in the place of one agent.
func Example() {
	guard, err := plugin.New(plugin.Config{
		Name: "guard",
		BeforeAgentCallback: func(ctx agent.Context) (*genai.Content, error) {
			return genai.NewContentFromText(ctx.AgentName()+" is closed today.", genai.RoleModel), nil
		},
		CloseFunc: func() error { fmt.Println("guard closes"); return nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	root, err := agent.New(agent.Config{Name: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{guard}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range r.Run(context.Background(), "ana", "s1", genai.NewContentFromText("Hello", genai.RoleUser), agent.RunConfig{}) {
		fmt.Println(ev.Text(), err)
	}
	fmt.Println(r.Close())
	// Output:
	// shop is closed today. <nil>
	// guard closes
	// <nil>
}
