// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Starter is a [Service] that makes a session together with its first events: nobody ever
// finds it empty, whenever the process dies. All services of this project are Starters;
// sessiontest.TestService looks at those that are.
type Starter interface {
	// Start is [Service.Create], [BulkAppender.AppendEvents] and, if the request names an
	// owner, [Leaser.Acquire]: all of it is stored, or nothing. The Seq of the first event
	// is 1 or unset. Errors: [ErrExists], [ErrInvalid], [ErrConflict] for another Seq,
	// [ErrNotJSON]. The events have no Seq then.
	Start(context.Context, *StartRequest) (*StartResponse, error)
}

// StartRequest asks for a new session that begins with events.
type StartRequest struct {
	CreateRequest
	// Events are the first ones of the log. At least one is required, and partial ones are
	// left out.
	Events []*Event
	// Owner gets the lease of the session for TTL, which has to be more than zero then.
	// Empty: nobody does.
	Owner string
	TTL   time.Duration
}

// StartResponse holds the new session, which shows the events.
type StartResponse struct {
	Session Session
	// Lease is the owner's; nil if the request names none.
	Lease *Lease
}

// Stored returns the events of the request that are to be stored, with the values of
// their deltas as [Plain] has them. The error says what the request lacks; it is for
// stores.
func (r *StartRequest) Stored() ([]*Event, error) {
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

// cleanUp bounds what is still done when a start has failed.
const cleanUp = 10 * time.Second

// Start makes a session that begins with events. With a service that is a [Starter] it is
// stored as a whole, or not at all. With any other, which has to be a [Leaser] if the
// request names an owner, it is made first, and removed again if the events cannot be
// appended: a process that dies in between leaves an empty session. The errors are those
// of [Starter.Start].
func Start(ctx context.Context, svc Service, req *StartRequest) (_ *StartResponse, err error) {
	if st, ok := svc.(Starter); ok {
		return st.Start(ctx, req)
	}
	evs, err := req.Stored()
	if err != nil {
		return nil, fmt.Errorf("start session: %w", err)
	}
	leaser, leases := svc.(Leaser)
	if req.Owner != "" && !leases {
		return nil, fmt.Errorf("start session: %w: %T gives no leases", ErrInvalid, svc)
	}
	made, err := svc.Create(ctx, &req.CreateRequest)
	if err != nil {
		return nil, err
	}
	resp := &StartResponse{Session: made.Session}
	key := KeyOf(made.Session)
	defer func() {
		if _, held := errors.AsType[*HeldError](err); err == nil || held { // somebody else has it
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
		defer cancel()
		err = errors.Join(err, svc.Delete(ctx, &DeleteRequest{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID}))
	}()
	if req.Owner != "" {
		if resp.Lease, err = leaser.Acquire(ctx, key, req.Owner, req.TTL); err != nil {
			return nil, err
		}
		ctx = WithLease(ctx, resp.Lease)
	}
	if err := AppendAll(ctx, svc, made.Session, slices.Values(evs)); err != nil {
		return nil, err
	}
	return resp, nil
}
