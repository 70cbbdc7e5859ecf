// SPDX-License-Identifier: Apache-2.0

// Package refrain runs loops of agents that know when to stop. A loop repeats an ordered list of sub-agents until a
// condition holds, and hands back the best result that it has, with the reason why it stopped.
//
//	res, err := refrain.Run(ctx, refine, "a poem", refrain.Session(store, "poem"))
//	if err != nil {
//		return err // res has the best iteration so far
//	}
//	fmt.Println(res.Text, res.Stop)
//
// The same call in the next process resumes a run that was cut off. These packages come next, in this order:
//
//  1. agent: what an agent is; agent.New makes one from a function
//  2. agent/llmagent: agents that ask a model
//  3. agent/workflowagents/loopagent: the loop, and beside it sequences and parallel agents
//  4. loop: the rules of a loop, such as a score, its target, and limits
//  5. tool/functiontool: Go functions as tools of a model
//  6. model/provider: opens a model by its name; model/scripted answers from a script, for tests
//  7. session/sqlite: keeps runs in a file; session/postgres in a database
//  8. session: events and state; session/mark: what a durable run writes about itself
//  9. runner and supervisor: what Run is made of, for programs that need more of it
//  10. command: the refrain command with your own agents, tools and definitions in it
//
// doc/go.md shows how to run, test, embed and serve agents. Names and signatures are those of Google's Agent Development
// Kit for Go, as far as the author of a loop meets them; [Run] and its options are an addition.
package refrain
