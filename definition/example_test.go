// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

func Example() {
	d, err := definition.Parse("halve.yaml", []byte(`
name: halve
inputs:
  limit: {type: number, description: When it is small enough.}
state: {n: 40}
max_iterations: 20
stop_when: state.n < state.limit
sub_agents:
  - name: half
    set: {n: state.n / 2}
  - name: tell
    text: "{{iteration}}: {{n}}"
  - name: result
    text: "{{n}} is below {{limit}}"
    output_key: loop_output
`), definition.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := d.InitialState(map[string]string{"limit": "10"})
	if err != nil {
		fmt.Println(err)
		return
	}
	root, err := d.Build(context.Background(), definition.BuildConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.NewInMemory("example", root)
	if err != nil {
		fmt.Println(err)
		return
	}
	msg := genai.NewContentFromText("go", genai.RoleUser)
	for ev, err := range r.Run(context.Background(), "ana", "s1", msg, d.RunConfig(definition.Limits{}), runner.WithStateDelta(state)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if text := ev.Text(); text != "" {
			fmt.Println(text)
		}
	}
	// Output:
	// 1: 20
	// 2: 10
	// 3: 5
	// 5 is below 10
}

// A definition names functions that a program gives to it.
func ExampleDefinition_Build() {
	d, err := definition.Parse("shop.yaml", []byte(`
name: shop
instructions: Say how many there are.
model: scripted/testdata/shop.yaml
tools: [stock]
`), definition.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	stock, err := functiontool.New(functiontool.Config{Name: "stock", Description: "How many of a thing there are."},
		func(_ tool.Context, in struct {
			Thing string `json:"thing"`
		}) (int, error) {
			return len(in.Thing), nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	root, err := d.Build(context.Background(), definition.BuildConfig{Tools: []tool.Tool{stock}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.NewInMemory("example", root)
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range r.Run(context.Background(), "ana", "s1", genai.NewContentFromText("How many cups?", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if text := ev.Text(); text != "" {
			fmt.Println(text)
		}
	}
	// Output: There are 4 cups.
}

func ExampleProblems_Format() {
	_, err := definition.Parse("refine.yaml", []byte(`name: refine
max_iteration: 5
sub_agents:
  - name: collect
    text: Collect.
    output_key: feedback
  - name: use
    text: "Mind: {{feedbak}}"
`), definition.Options{})
	if problems, ok := err.(definition.Problems); ok {
		problems.Format(os.Stdout)
	}
	// Output:
	// refine.yaml:2:1: error: unknown field "max_iteration" [LOOP003]
	//     2 | max_iteration: 5
	//       | ^^^^^^^^^^^^^ did you mean "max_iterations"?
	// refine.yaml:8:18: error: {{feedbak}} is read here but no agent writes it [LOOP020]
	//     8 |     text: "Mind: {{feedbak}}"
	//       |                  ^^^^^^^^^^^ did you mean {{feedback}} (written by collect)?
	// 2 errors
}

func ExampleDefinition_Worst() {
	d, err := definition.Parse("refine.yaml", []byte(`
name: refine
max_iterations: 3
timeout: 10m
prices: {openai/gpt-5-mini: {input: 0.25, output: 2}}
model: openai/gpt-5-mini
sub_agents:
  - {name: writer, instructions: Write., can_exit_loop: false}
  - {name: critic, instructions: Judge., can_exit_loop: true, max_tokens: 200, request_retry: 1}
`), definition.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range d.Root.Stops() {
		fmt.Println(s.Text)
	}
	for _, a := range d.Worst(definition.Assumed{InputTokens: 2000, OutputTokens: 1000}).Agents {
		took, _ := a.Time()
		fmt.Printf("%s: %v runs, %v requests, %v tokens, %.4f, %s\n", a.Agent.Name, a.Runs, a.Calls, a.Tokens, a.Cost, took)
	}
	// Output:
	// critic: when it calls exit_loop
	// after 3 iterations
	// after 10m
	// refine: 1 runs, 12 requests, 33600 tokens, 0.0252, 10m0s
	// writer: 3 runs, 9 requests, 27000 tokens, 0.0225, 10m0s
	// critic: 3 runs, 3 requests, 6600 tokens, 0.0027, 10m0s
}
