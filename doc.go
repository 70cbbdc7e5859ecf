// SPDX-License-Identifier: Apache-2.0

// Package refrain is the root of a library and a command that run loops of
// agents which know when to stop.
//
// A loop repeats an ordered list of sub-agents until a condition holds, and
// hands back the best result that it has, with the reason why it stopped. The
// package itself is empty; the parts are:
//
//   - agent, and the kinds of agent below it: what runs
//   - agent/workflowagents/loopagent: the loop
//   - loop: the rules of a loop, as a pure function
//   - session: the log of a run, and the state that follows from it
//   - runner: runs a tree of agents in a session, and resumes it
//   - definition: a loop as a YAML file
//   - progress: what became of a run, read from its log
//   - cmd/refrain: the command
//
// Names and signatures are those of Google's Agent Development Kit for Go, as
// far as the author of a loop meets them.
package refrain
