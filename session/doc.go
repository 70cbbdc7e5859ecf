// SPDX-License-Identifier: Apache-2.0

// Package session defines sessions: their events, the state that follows from the events, and the service
// that stores both. Names and JSON are those of ADK for Go.
//
// A [Session] is a log. Each message of an agent is an [Event] appended to it, and the session's state is
// the sum of the events' state deltas. [InMemoryService] needs no setup; packages sqlite and postgres store
// sessions in a database.
//
//	ev := session.NewEvent(ctx, "run-1")
//	ev.Author = "writer"
//	ev.Actions.StateDelta["draft"] = "Once upon a time"
//	err := service.AppendEvent(ctx, s, ev)
//
// Read four files first: service.go (what a store does), session.go, event.go and state.go. A [View], in
// view.go, is the session that the stores of this project return: it shows a window of the log (log.go,
// gaps.go), reads older events from its store (older.go, remember.go), and is rewound to an earlier point
// when a run is resumed (rewind.go). The in-memory service is memory.go, with its records (record.go).
// A view that remembers its log packs the events (pack.go).
package session
