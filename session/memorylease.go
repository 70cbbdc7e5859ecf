// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/session/lease"
)

// leaseState is the lease in the record of a session.
type leaseState struct {
	owner        string // empty: nobody holds the lease
	token        int64  // the number of the lease: the service counts its leases from 1
	since, until time.Time
}

// session returns k as a lease.Key.
func (k sessionKey) session() lease.Key {
	return lease.Key{AppName: k.app, UserID: k.user, SessionID: k.id}
}

// by returns the error that describes the holder of the lease.
func (h *leaseState) by(key sessionKey) *lease.HeldError {
	return &lease.HeldError{Key: key.session(), Owner: h.owner, Since: h.since, Until: h.until, Token: h.token}
}

func (m *memory) Acquire(_ context.Context, key lease.Key, owner string, ttl time.Duration) (*lease.Lease, error) {
	l, err := m.acquire(key, owner, ttl, 0)
	if err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	return l, nil
}

func (m *memory) TakeOver(_ context.Context, held *lease.HeldError, owner string,
	ttl time.Duration) (*lease.Lease, error) {
	if held == nil || held.Token == 0 {
		return nil, fmt.Errorf("take over lease: %w: the error of a refused Acquire is required", ErrInvalid)
	}
	l, err := m.acquire(held.Key, owner, ttl, held.Token)
	if err != nil {
		return nil, fmt.Errorf("take over lease: %w", err)
	}
	return l, nil
}

// acquire gives the lease to owner if the lease is free or has expired, or if its token is over.
func (m *memory) acquire(key lease.Key, owner string, ttl time.Duration, over int64) (*lease.Lease, error) {
	if owner == "" || ttl <= 0 {
		return nil, fmt.Errorf("%w: an owner and a time to live are required, got %q and %v", ErrInvalid, owner, ttl)
	}
	rec, err := m.find(sessionKey{key.AppName, key.UserID, key.SessionID})
	if err != nil {
		return nil, err
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if h := &rec.lease; h.owner != "" && time.Now().Before(h.until) && h.token != over {
		return nil, h.by(rec.key)
	}
	return rec.grant(owner, ttl), nil
}

// grant gives the lease of the session to an owner without a check of the previous holder. r.mu is held.
func (r *record) grant(owner string, ttl time.Duration) *lease.Lease {
	now := time.Now()
	r.lease = leaseState{owner: owner, token: r.service.leases.Add(1), since: now, until: now.Add(ttl)}
	return &lease.Lease{Key: r.key.session(), Owner: owner, Token: r.lease.token, Until: r.lease.until}
}

func (m *memory) Renew(_ context.Context, l *lease.Lease, ttl time.Duration) (*lease.Lease, error) {
	if l == nil || l.Token == 0 || ttl <= 0 {
		return nil, fmt.Errorf("renew lease: %w: a lease and a time to live are required", ErrInvalid)
	}
	rec, err := m.find(sessionKey{l.Key.AppName, l.Key.UserID, l.Key.SessionID})
	if err != nil {
		return nil, fmt.Errorf("renew lease: %w", err)
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if err := rec.checkHolder(l); err != nil {
		return nil, fmt.Errorf("renew lease: %w", err)
	}
	renewed := *l
	renewed.Until = time.Now().Add(ttl)
	rec.lease.until = renewed.Until
	return &renewed, nil
}

func (m *memory) Holder(_ context.Context, key lease.Key) (*lease.HeldError, error) {
	rec, err := m.find(sessionKey{key.AppName, key.UserID, key.SessionID})
	if err != nil {
		return nil, fmt.Errorf("find the holder of the lease: %w", err)
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if h := &rec.lease; h.owner != "" && time.Now().Before(h.until) {
		return h.by(rec.key), nil
	}
	return nil, nil
}

func (m *memory) Release(_ context.Context, l *lease.Lease) error {
	if l == nil || l.Token == 0 {
		return fmt.Errorf("release lease: %w: a lease is required", ErrInvalid)
	}
	rec, err := m.find(sessionKey{l.Key.AppName, l.Key.UserID, l.Key.SessionID})
	if err != nil {
		return nil // the lease was deleted with its session
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.lease.token == l.Token {
		rec.lease.owner = ""
	}
	return nil
}

// checkHolder returns lease.ErrLost if l does not hold the session any more. An expired lease still holds the
// session until another owner acquires it. r.mu is held.
func (r *record) checkHolder(l *lease.Lease) error {
	switch {
	case r.lease.owner == "":
		return lease.ErrLost
	case r.lease.token != l.Token:
		return fmt.Errorf("%w: %w", lease.ErrLost, r.lease.by(r.key))
	}
	return nil
}

// checkLease refuses an append if its context has a lease of the session that was lost. It accepts a context without a
// lease of the session. r.mu is held.
func (r *record) checkLease(ctx context.Context) error {
	l := lease.From(ctx)
	if l == nil || l.Key != r.key.session() {
		return nil
	}
	return r.checkHolder(l)
}
