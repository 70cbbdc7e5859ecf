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
// view.go, is the session that the stores of this project return. It shows a window of the log (window.go),
// without superseded events (hidden.go); a [Log] is all of it (log.go). It reads older events from its store, page by page
// (pager.go), and can omit their long texts (outline.go). When a run is resumed, its view is rewound to an earlier point (rewind.go).
// A view that caches the outline of its log (outlinecache.go) packs the events (pack.go). The in-memory service
// is in memory.go, with its records in record.go.
package session
