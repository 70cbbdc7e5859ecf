// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Key names one session.
type Key struct{ AppName, UserID, SessionID string }

// KeyOf returns the key of a session.
func KeyOf(s interface {
	AppName() string
	UserID() string
	ID() string
}) Key {
	return Key{AppName: s.AppName(), UserID: s.UserID(), SessionID: s.ID()}
}

// Leaser is a session.Service that lets one process at a time drive a session. A lease ends with
// [Leaser.Release], or expires if it is not renewed, so a dead process does not hold its sessions for ever.
// All services of this project are Leasers; sessiontest.TestLeaser tests them.
//
//	held, err := leaser.Acquire(ctx, key, "refrain pid 4711 on laptop", 15*time.Second)
//	if by, ok := errors.AsType[*lease.HeldError](err); ok {
//		return fmt.Errorf("%w; follow it with watch", by)
//	}
//	defer leaser.Release(context.WithoutCancel(ctx), held)
//	ctx = lease.With(ctx, held) // appends are refused once it is lost
//
// Times are by the store's clock, which is that of the database server if there is one, and otherwise this
// machine's.
type Leaser interface {
	// Acquire takes the lease of a session for a time. The error of later callers names the owner, so owner
	// should name the process and its machine. A held lease is refused to every caller, including its
	// owner. Errors: [*HeldError], session.ErrNotFound, session.ErrInvalid.
	Acquire(ctx context.Context, key Key, owner string, ttl time.Duration) (*Lease, error)
	// TakeOver acquires the lease although held has not expired, for a caller that knows that its owner is
	// dead. It fails with a [*HeldError] if the lease has changed hands since. Errors: as for Acquire.
	TakeOver(ctx context.Context, held *HeldError, owner string, ttl time.Duration) (*Lease, error)
	// Renew returns the lease with a new end. An expired lease can be renewed until another
	// owner takes it. Errors: [ErrLost], with a [*HeldError] if another owner has it now;
	// session.ErrNotFound, session.ErrInvalid.
	Renew(ctx context.Context, l *Lease, ttl time.Duration) (*Lease, error)
	// Holder returns the holder of a session's lease, without taking the lease. It returns nil if the lease
	// was never taken, was released or expired. Errors: session.ErrNotFound, session.ErrInvalid.
	Holder(ctx context.Context, key Key) (*HeldError, error)
	// Release ends the lease. Releasing a lost lease is not an error. Errors: session.ErrInvalid.
	Release(ctx context.Context, l *Lease) error
}

// Lease is the right to drive a session until a point in time. It does not change: [Leaser.Renew] returns a
// new one, and [With] accepts the old one as well.
type Lease struct {
	Key   Key
	Owner string
	// Token distinguishes this lease from every other lease of the session.
	Token int64
	// Until is when the lease ends, by the store's clock.
	Until time.Time
}

// ErrLost: the lease ended, and another process may drive the session now. Stop at once;
// the events appended so far are kept.
var ErrLost = errors.New("the lease of the session is lost: it was released, or it expired and another process took " +
	"it; stop this run")

// HeldError reports who drives a session.
type HeldError struct {
	Key   Key
	Owner string
	// Since is when the holder took the lease, Until when it ends if it is not
	// renewed.
	Since, Until time.Time
	// Token is the token of the holder's lease.
	Token int64
}

// Error names the holder and the time at which its lease expires.
func (e *HeldError) Error() string {
	return fmt.Sprintf("session %q is driven by %s since %s; unless that renews its lease it can be taken after %s",
		e.Key.SessionID, e.Owner, e.Since.Format(time.RFC3339), e.Until.Format(time.RFC3339))
}

type leaseContext struct{}

// With returns a context in which an AppendEvent to the lease's session is
// refused with [ErrLost] once another owner has the lease, or it was released. Appends
// to other sessions are not affected. Derived contexts keep the lease, also those of
// context.WithoutCancel.
func With(ctx context.Context, l *Lease) context.Context {
	return context.WithValue(ctx, leaseContext{}, l)
}

// From returns the lease that [With] put into the context, or nil if there is none. It is for
// stores.
func From(ctx context.Context) *Lease {
	l, _ := ctx.Value(leaseContext{}).(*Lease)
	return l
}
