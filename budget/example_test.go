// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"fmt"

	"github.com/refrain-dev/refrain/budget"
)

// A loop with a budget of its own, in a run that has one.
func Example() {
	run := budget.New(
		budget.Limits{Tokens: 20_000, Cost: new(0.05)},
		budget.Prices{"example/writer": {Input: 3, Output: 15}},
	)
	loop := run.Child(budget.Limits{Calls: 4}).Named("refine")
	hold := loop.Hold(0.1) // for the last word
	defer hold.Release()

	call := func(b *budget.Meter) error {
		room, err := b.Reserve(budget.Request{Model: "writer", InputTokens: 2000, OutputTokens: 1000})
		if err != nil {
			return err
		}
		room.Commit(budget.Usage{InputTokens: 1800, OutputTokens: 600}) // as the provider reports it
		return nil
	}
	for i := 1; ; i++ {
		if err := call(loop); err != nil {
			fmt.Println(err)
			break
		}
		fmt.Printf("call %d: cost %v\n", i, *loop.Used().Cost)
	}
	if err := call(hold.Budget()); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("in all: %d calls, %d tokens, cost %v\n", run.Used().Calls, run.Used().Tokens(), *run.Used().Cost)
	// Output:
	// call 1: cost 0.0144
	// call 2: cost 0.0288
	// budget of 0.05 (cost) is spent (0.0288 used, 0.005 kept for the end, 0.021 asked): raise it with --budget-cost, budget.cost or agent.RunConfig.Budget
	// in all: 3 calls, 7200 tokens, cost 0.0432
}
