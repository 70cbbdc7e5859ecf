// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/session/lease"
)

// StartRequest asks for a new session that begins with events.
type StartRequest struct {
	CreateRequest
	// Events are the first events of the log, at least one. Partial events are not
	// stored.
	Events []*Event
	// Owner gets the lease of the session for TTL, which must be greater than zero. Empty means no lease.
	Owner string
	TTL   time.Duration
}

// StartResponse holds the new session with its events.
type StartResponse struct {
	Session Session
	// Lease is the owner's lease; nil if the request has no Owner.
	Lease *lease.Lease
}

// PlainEvents checks the request and returns the events to store, with plain values in
// their deltas; see [Plain]. It is for stores.
func (r *StartRequest) PlainEvents() ([]*Event, error) {
	switch {
	case r == nil || r.AppName == "" || r.UserID == "":
		return nil, fmt.Errorf("%w: app name and user ID are required", ErrInvalid)
	case slices.Contains(r.Events, nil):
		return nil, fmt.Errorf("%w: an event is nil", ErrInvalid)
	case r.Owner != "" && r.TTL <= 0:
		return nil, fmt.Errorf("%w: the lease of %q needs a time to live, got %v", ErrInvalid, r.Owner, r.TTL)
	}
	evs := slices.DeleteFunc(slices.Clone(r.Events), func(ev *Event) bool { return ev.Partial })
	if len(evs) == 0 {
		return nil, fmt.Errorf("%w: an event is required", ErrInvalid)
	}
	for i, ev := range evs {
		if ev.Seq != 0 && ev.Seq != int64(i)+1 {
			return nil, fmt.Errorf("event %d of a new session: %w", i+1, ErrConflict)
		}
	}
	for i, ev := range evs {
		if err := ev.Actions.Normalize(); err != nil {
			return nil, fmt.Errorf("event %d of a new session: %w", i+1, err)
		}
	}
	return evs, nil
}
