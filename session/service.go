// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"time"
)

// Errors that callers branch on; compare with errors.Is.
var (
	// ErrNotFound: there is no such session.
	ErrNotFound = errors.New("session not found")
	// ErrExists: a session with that ID exists.
	ErrExists = errors.New("session already exists")
	// ErrConflict: another writer appended an event after this session was fetched. Get the
	// session again, and append to that.
	ErrConflict = errors.New("session has a newer event: another writer appended first; get the session again")
	// ErrInvalid: the request lacks a value, or has one that is not allowed.
	ErrInvalid = errors.New("invalid session request")
	// ErrClosed: the service was closed.
	ErrClosed = errors.New("session service is closed")
	// ErrStateKeyNotExist: the state has no such key.
	ErrStateKeyNotExist = errors.New("state key does not exist")
	// ErrNotLogged: the session belongs to a run, whose state changes only by events. A change outside an
	// event would be lost.
	ErrNotLogged = errors.New("the state of a run changes by events: set the key with ctx.State() in a callback or " +
		"a tool, " +
		"or in the Actions.StateDelta of an event that the agent yields")
)

// Service stores sessions. It is safe for concurrent use. Every implementation
// passes sessiontest.TestService.
type Service interface {
	// Create makes a session; without a SessionID the service chooses one. The values
	// of its state become plain; see [Plain]. Errors: [ErrExists], [ErrInvalid],
	// [ErrNotJSON].
	Create(context.Context, *CreateRequest) (*CreateResponse, error)
	// Get fetches a session. Errors: [ErrNotFound], [ErrInvalid].
	Get(context.Context, *GetRequest) (*GetResponse, error)
	// List describes the sessions of an application, or of one of its users,
	// without their events, ordered by user and ID. Errors: [ErrInvalid].
	List(context.Context, *ListRequest) (*ListResponse, error)
	// Delete removes a session with its events. It succeeds if there is no such
	// session. Errors: [ErrInvalid].
	Delete(context.Context, *DeleteRequest) error
	// AppendEvent adds an event to the end of a session's log and its delta to the
	// state, all or nothing. It sets the event's Seq, and its ID and Timestamp if they
	// are empty. The values of the delta become plain; see [Plain]. A partial event is
	// not stored.
	//
	// s may be any implementation of Session. The last event that s has seen must be
	// the last in the store, else AppendEvent returns ErrConflict. A Session whose
	// Events is nil has seen no event. A caller that knows the next sequence number
	// may set the event's Seq instead. A [*View] shows the event afterwards.
	//
	// Errors: [ErrNotFound], [ErrConflict], [ErrInvalid], [ErrNotJSON].
	AppendEvent(ctx context.Context, s Session, ev *Event) error
}

// CreateRequest asks for a new session.
type CreateRequest struct {
	AppName, UserID string
	// SessionID is optional.
	SessionID string
	// State is the session's initial state. Keys with the prefixes app: and user: are shared at once; temp:
	// and iteration: keys are dropped.
	State map[string]any
}

// CreateResponse holds the new session.
type CreateResponse struct{ Session Session }

// GetRequest asks for one session.
type GetRequest struct {
	AppName, UserID, SessionID string
	// NumRecentEvents is the largest number of events, of which the newest are returned; 0
	// means all.
	NumRecentEvents int
	// After leaves out events with an earlier Timestamp; the zero time leaves out none.
	After time.Time
	// Brief is for a caller that needs the status of a run but not its state: a store may leave out all
	// keys but Refrain's own, and read events only when they are accessed.
	Brief bool
}

// GetResponse holds the session.
type GetResponse struct{ Session Session }

// ListRequest asks for an application's sessions.
type ListRequest struct {
	AppName string
	// UserID is optional. If it is empty, List returns the sessions of every user.
	UserID string
	// Brief has the same effect as in [GetRequest].
	Brief bool
}

// ListResponse holds the sessions, without their events.
type ListResponse struct{ Sessions []Session }

// DeleteRequest names the session to remove.
type DeleteRequest struct{ AppName, UserID, SessionID string }
