// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"iter"
	"log"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// A runner keeps a session, so that the next run knows what was before.
func Example() {
	counter, err := agent.New(agent.Config{
		Name: "counter",
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				n, _ := ctx.Session().State().Get("n")
				count, _ := n.(float64) // as JSON has numbers
				ev := session.NewEvent(ctx, ctx.InvocationID())
				ev.Content = genai.NewContentFromText(fmt.Sprintf("You have asked %v times.", count+1), genai.RoleModel)
				ev.Actions.StateDelta["n"] = count + 1
				yield(ev, nil)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	r, err := runner.NewInMemory("app", counter)
	if err != nil {
		log.Fatal(err)
	}
	for _, msg := range []string{"How often?", "And now?"} {
		for ev, err := range r.Run(context.Background(), "ana", "s1", genai.NewContentFromText(msg, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(ev.Author+":", ev.Text())
		}
	}
	// Output:
	// counter: You have asked 1 times.
	// counter: You have asked 2 times.
}
