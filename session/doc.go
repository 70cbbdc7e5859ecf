// SPDX-License-Identifier: Apache-2.0

// Package session holds what happened: events, the state that follows from
// them, and the service that keeps both.
//
// A session is a log. Whatever an agent says is an [Event] appended to it, and
// the session's state is the sum of the events' state deltas. A [Service]
// stores sessions; [InMemoryService] is the one that needs nothing. Names and
// JSON are those of ADK for Go.
//
//	svc := session.InMemoryService()
//	created, err := svc.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ana"})
//	if err != nil {
//		return err
//	}
//	ev := session.NewEvent(ctx, "run-1")
//	ev.Author = "writer"
//	ev.Actions.StateDelta["draft"] = "Once upon a time"
//	err = svc.AppendEvent(ctx, created.Session, ev)
package session
