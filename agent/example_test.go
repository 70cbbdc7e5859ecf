// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"iter"
	"log"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// An agent that runs another twice. Each run has an address of its own.
func Example() {
	hello, err := agent.New(agent.Config{
		Name: "hello",
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := session.NewEvent(ctx, ctx.InvocationID())
				ev.Content = genai.NewContentFromText("Hello.", genai.RoleModel)
				yield(ev, nil)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	twice, err := agent.New(agent.Config{
		Name:      "twice",
		SubAgents: []agent.Agent{hello},
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				for range 2 {
					for ev, err := range hello.Run(ctx) {
						if !yield(ev, err) {
							return
						}
					}
				}
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	// A runner does this, and stores the events.
	ctx := drive.NewInvocation(context.Background(), drive.Invocation{
		ID: "e-1", Session: session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1"}),
	})
	for ev, err := range drive.Run(ctx, twice) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ev.Address, "by", ev.Author, "says", ev.Text())
	}
	// Output:
	// twice/hello by hello says Hello.
	// twice/hello#2 by hello says Hello.
}
