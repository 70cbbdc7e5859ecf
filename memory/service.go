// SPDX-License-Identifier: Apache-2.0

// Package memory finds what was said in a user's earlier sessions.
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

// ErrInvalid: the request or the session does not say whose memory is meant.
var ErrInvalid = errors.New("invalid memory request: an app name and a user ID are needed")

// Service remembers sessions. It is safe for concurrent use.
type Service interface {
	// AddSessionToMemory stores what was said in a session. A session that is
	// added again replaces what was stored of it. Errors: [ErrInvalid].
	AddSessionToMemory(ctx context.Context, s session.Session) error
	// SearchMemory returns what fits the query, from all sessions of the user
	// in the application; an empty list if nothing does. Errors: [ErrInvalid].
	SearchMemory(ctx context.Context, req *SearchRequest) (*SearchResponse, error)
}

// SearchRequest asks a user's memory.
type SearchRequest struct{ Query, UserID, AppName string }

// SearchResponse holds what was found, the best first.
type SearchResponse struct{ Memories []Entry }

// Entry is one thing that was said.
type Entry struct {
	// ID is the ID of the event.
	ID string
	// Content is shared with the event: do not change it.
	Content *genai.Content
	// Author is who said it: "user" or an agent.
	Author    string
	Timestamp time.Time
	// CustomMetadata is the event's, and what the store knows besides; it may be
	// nil.
	CustomMetadata map[string]any
}
