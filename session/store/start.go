// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// Starter is a [session.Service] that makes a session together with its first events. No reader ever finds
// the session empty, even if the process dies. All services of this project are Starters;
// sessiontest.TestService tests them.
type Starter interface {
	// Start combines [session.Service.Create], [BulkAppender.AppendEvents] and, if the request names an
	// owner, [lease.Leaser.Acquire]: all of it is stored, or nothing. The Seq of the first event is 1 or
	// unset. Errors: [session.ErrExists], [session.ErrInvalid], [session.ErrConflict] for another Seq,
	// [session.ErrNotJSON]. On an error the events have no Seq.
	Start(context.Context, *session.StartRequest) (*session.StartResponse, error)
}

// cleanUp bounds what is still done when a start has failed.
const cleanUp = 10 * time.Second

// Start makes a session that begins with events. With a service that is a [Starter], the session is stored
// as a whole or not at all. Any other service, which has to be a [lease.Leaser] if the request names an
// owner, creates the session first, and Start deletes it if the events cannot be appended. A process that
// dies in between leaves an empty session. The errors are those of [Starter.Start].
func Start(ctx context.Context, svc session.Service, req *session.StartRequest) (_ *session.StartResponse, err error) {
	if st, ok := svc.(Starter); ok {
		return st.Start(ctx, req)
	}
	evs, err := req.PlainEvents()
	if err != nil {
		return nil, fmt.Errorf("start session: %w", err)
	}
	leaser, leases := svc.(lease.Leaser)
	if req.Owner != "" && !leases {
		return nil, fmt.Errorf("start session: %w: %T gives no leases", session.ErrInvalid, svc)
	}
	made, err := svc.Create(ctx, &req.CreateRequest)
	if err != nil {
		return nil, err
	}
	resp := &session.StartResponse{Session: made.Session}
	key := lease.KeyOf(made.Session)
	defer func() {
		if _, held := errors.AsType[*lease.HeldError](err); err == nil || held { // somebody else has it
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
		defer cancel()
		err = errors.Join(err, svc.Delete(ctx, &session.DeleteRequest{AppName: key.AppName, UserID: key.UserID,
			SessionID: key.SessionID}))
	}()
	if req.Owner != "" {
		if resp.Lease, err = leaser.Acquire(ctx, key, req.Owner, req.TTL); err != nil {
			return nil, err
		}
		ctx = lease.With(ctx, resp.Lease)
	}
	if err := AppendAll(ctx, svc, made.Session, slices.Values(evs)); err != nil {
		return nil, err
	}
	return resp, nil
}
