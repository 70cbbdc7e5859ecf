// SPDX-License-Identifier: Apache-2.0

package drive

import "github.com/refrain-dev/refrain/agent"

// Place is where an agent runs: a step of a run, with an address, perhaps in a loop. Its
// methods describe the step, and do for the agent what only the run can do.
type Place struct {
	ctx agent.InvocationContext
	inv *invocation // nil if ctx leads to no step of ours
}

// At returns the place of the agent that was given ctx.
func At(ctx agent.InvocationContext) Place { return Place{ctx, invocationOf(ctx)} }
