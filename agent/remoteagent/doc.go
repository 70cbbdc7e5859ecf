// SPDX-License-Identifier: Apache-2.0

// Package remoteagent calls agents on other machines over A2A, the Agent2Agent protocol: 1.0, and
// 0.3 if the agent's card says so.
//
//	analyst, err := remoteagent.NewA2A(remoteagent.A2AConfig{
//		Name:            "analyst",
//		AgentCardSource: "https://agents.example.org/analyst",
//		Payload:         map[string]any{"draft": "{{draft}}"},
//		OutputKey:       "analysis",
//	})
//
// The agent sends one message and follows the resulting task to its end: by a stream if the card
// offers one, and otherwise by polling. The task's output is the answer. A task that failed or was
// rejected is a [*TaskError] with the remote agent's message.
//
// A task that needs input or a sign-in from a person becomes a question. A run that can wait waits
// for the answer, see [drive.Place.Ask], and continues the same task when it is resumed with the
// answer. In any other run the question is a long-running call as in package toolconfirmation: an
// enclosing loop stops with the reason blocked, and the user's next message is the answer, with its
// text in payload.
//
// A message keeps its ID when the step is tried again, so that a server that checks IDs does not do
// the work twice. If the connection or the process was lost, the next attempt, or the resumed run,
// continues the same task. When the run is canceled, the task is canceled too.
//
// The content from a remote agent is untrusted: neither its metadata nor data that looks like a
// tool call can end a loop, ask for consent, or change the state except for the output key. The
// agent's card cannot direct requests to a server (scheme, host and port) other than its own,
// unless Hosts names it. Secrets in Headers are removed from errors that servers send back.
package remoteagent
