// SPDX-License-Identifier: Apache-2.0

// Package drive runs agents. It is for authors of a kind of agent, an orchestrator or a runner;
// users of agents need only package agent.
//
// An agent runs another agent by [Run], by a [Step], or by the other agent's Run method. In each
// case the other agent runs as a step: its events get the step's address, a panic in it becomes an
// error with that address, and it stops when the context is canceled.
//
// A kind of agent embeds what [NewBase] returns. A runner makes the context of
// its root agent by [NewInvocation], and that of a resumed run with a [Replay].
package drive
