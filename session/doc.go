// SPDX-License-Identifier: Apache-2.0

// Package session holds what happened: events, the state that follows from them, and
// the service that stores both. Names and JSON are those of ADK for Go.
//
// A [Session] is a log. What an agent says is an [Event] appended to it, and the
// session's state is the sum of the events' state deltas. [InMemoryService] needs
// nothing; packages sqlite and postgres store sessions in a database.
//
//	ev := session.NewEvent(ctx, "run-1")
//	ev.Author = "writer"
//	ev.Actions.StateDelta["draft"] = "Once upon a time"
//	err := service.AppendEvent(ctx, s, ev)
package session
