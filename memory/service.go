// SPDX-License-Identifier: Apache-2.0

// Package memory searches a user's earlier sessions.
//
//	mem := memory.InMemoryService()
//	if err := mem.AddSessionToMemory(ctx, finished); err != nil {
//		return err
//	}
//	found, err := mem.SearchMemory(ctx, &memory.SearchRequest{AppName: "app", UserID: "ana", Query: "green paint"})
//
// Names and requests are those of ADK for Go.
package memory

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
)

// ErrInvalid reports that the request or the session has no app name or no user ID.
var ErrInvalid = errors.New("invalid memory request: an app name and a user ID are needed")

// Service remembers sessions. It is safe for concurrent use.
type Service interface {
	// AddSessionToMemory stores the texts of a session. Adding a session again replaces its stored
	// texts. Errors: [ErrInvalid].
	AddSessionToMemory(ctx context.Context, s session.Session) error
	// SearchMemory returns the entries that match the query, from all sessions of the user in
	// the application. The list is empty if nothing matches. Errors: [ErrInvalid].
	SearchMemory(ctx context.Context, req *SearchRequest) (*SearchResponse, error)
}

// SearchRequest is a search in a user's memory.
type SearchRequest struct{ Query, UserID, AppName string }

// SearchResponse holds the entries that were found, the best first.
type SearchResponse struct{ Memories []Entry }

// Entry is one event of an earlier session.
type Entry struct {
	// ID is the ID of the event.
	ID string
	// Content is shared with the event and must not be changed.
	Content *genai.Content
	// Author is the author of the event: "user" or an agent.
	Author    string
	Timestamp time.Time
	// CustomMetadata has the event's metadata and further data of the store; it may be nil.
	CustomMetadata map[string]any
}
