// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"fmt"
	"iter"
	"log"
	"os"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/command"
	"github.com/refrain-dev/refrain/session"
)

// A program has a definition inside, and an agent in Go that is a step of it.
func ExampleMain() {
	const bake = `
name: bake
max_iterations: 5
state: {weight: 0}
stop_when: state.weight >= 3
sub_agents:
  - {name: knead, set: {weight: state.weight + 1}}
  - {name: taste, type: func, func: taster, output_key: taste}
  - {name: label, text: "A loaf of {{weight}} pounds. {{taste}}", output_key: loop_output}
`
	taster, err := agent.New(agent.Config{
		Name: "taster",
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := session.NewEvent(ctx, ctx.InvocationID())
				ev.Content = genai.NewContentFromText("It tastes of rye.", genai.RoleModel)
				yield(ev, nil)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func(args []string) { os.Args = args }(os.Args)
	os.Args = []string{"bakery", "run", "bake", "--store", "memory", "--progress", "quiet"} // as somebody types it

	code := command.Main(
		command.Agent(taster),
		command.Definition(bake),
	)
	fmt.Println("exit code", code) // a program gives it to os.Exit
	// Output:
	// A loaf of 3 pounds. It tastes of rye.
	// exit code 0
}
