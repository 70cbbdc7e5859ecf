// SPDX-License-Identifier: Apache-2.0

// Package remoteagent makes agents of those that are elsewhere, behind A2A, the
// Agent2Agent protocol: 1.0, and 0.3 where the agent's card says so.
//
//	analyst, err := remoteagent.NewA2A(remoteagent.A2AConfig{
//		Name:            "analyst",
//		AgentCardSource: "https://agents.example.org/analyst",
//		Payload:         map[string]any{"draft": "{{draft}}"},
//		OutputKey:       "analysis",
//	})
//
// The agent sends one message and follows the task that comes of it to its end:
// by a stream if the card says that there is one, and else by asking again and
// again. What the task has made is the answer. A task that failed or was rejected
// is a [*TaskError] with what the remote agent said.
//
// A task that needs something from a person, or somebody to sign in, becomes a
// question. A run that can wait does so, see [drive.AskPerson], and goes on with
// the same task when it is resumed with the answer. In any other run the question
// is a long-running call as of package toolconfirmation: a loop around stops as
// blocked, and the user's next message is the answer, with the words in payload.
//
// A message has the same ID whenever the same step is tried again, so that a
// server that looks at it does not do the work twice. If the connection was cut,
// or the process has died, the next try, or the resumed run, takes up the task
// that is under way. When the run is canceled the task is canceled too.
//
// Nothing that comes from elsewhere has power here: it is content, and neither its
// metadata nor data that looks like a tool call ends a loop, changes the state but
// for the output key, or asks for consent. The agent's card cannot send requests
// to another server (scheme, host and port) than its own, unless Hosts names it, and
// what is secret in Headers is struck out of what servers repeat in their errors.
package remoteagent
