// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// A lease is stored in the row of its session. An append with a lease locks this row, so either the append comes
// before another owner takes the lease over, or it is refused.
const (
	takeLease = `UPDATE sessions SET lease_owner = ?, lease_token = ?, lease_since = {now}, lease_until = {now} + CAST(? AS BIGINT)
WHERE app = ? AND user_id = ? AND name = ? AND (lease_token = 0 OR lease_until <= {now} OR lease_token = ?)`
	renewLease = `UPDATE sessions SET lease_until = {now} + CAST(? AS BIGINT)
WHERE app = ? AND user_id = ? AND name = ? AND lease_token = ?`
	endLease = `UPDATE sessions SET lease_owner = '', lease_token = 0
WHERE app = ? AND user_id = ? AND name = ? AND lease_token = ?`
	selectLease = `SELECT s.lease_owner, s.lease_token, s.lease_since, s.lease_until FROM sessions s
WHERE s.app = ? AND s.user_id = ? AND s.name = ?`
	selectHolder = `SELECT s.lease_owner, CASE WHEN s.lease_until > {now} THEN s.lease_token ELSE 0 END, s.lease_since, s.lease_until FROM sessions s
WHERE s.app = ? AND s.user_id = ? AND s.name = ?`
)

// holder is the lease in the row of a session. Times are microseconds since 1970. If the token is 0, no owner holds
// the lease.
type holder struct {
	owner               string
	token, since, until int64
}

// by returns the error that describes the holder.
func (h *holder) by(key lease.Key) *lease.HeldError {
	return &lease.HeldError{Key: key, Owner: h.owner, Since: time.UnixMicro(h.since), Until: time.UnixMicro(h.until),
		Token: h.token}
}

// lostError returns the error for a caller whose lease is not h. It wraps lease.ErrLost.
func (h *holder) lostError(key lease.Key) error {
	if h.token == 0 {
		return lease.ErrLost
	}
	return fmt.Errorf("%w: %w", lease.ErrLost, h.by(key))
}

// holder reads a session's lease.
func (t *tx) holder(key lease.Key) (h holder, err error) {
	ok, err := t.row(selectLease, []any{key.AppName, key.UserID, key.SessionID}, &h.owner, &h.token, &h.since, &h.until)
	if err == nil && !ok {
		err = missing(key)
	}
	return h, err
}

// Acquire takes the lease of a session. See lease.Leaser.
func (s *Store) Acquire(ctx context.Context, key lease.Key, owner string, ttl time.Duration) (*lease.Lease, error) {
	l, err := s.acquire(ctx, key, owner, ttl, noLease)
	if err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	return l, nil
}

// TakeOver takes the lease of a session from the holder that a refused Acquire has returned. See lease.Leaser.
func (s *Store) TakeOver(ctx context.Context, held *lease.HeldError, owner string,
	ttl time.Duration) (*lease.Lease, error) {
	if held == nil || held.Token == 0 {
		return nil, fmt.Errorf("take over lease: %w: the error of a refused Acquire is required", session.ErrInvalid)
	}
	l, err := s.acquire(ctx, held.Key, owner, ttl, held.Token)
	if err != nil {
		return nil, fmt.Errorf("take over lease: %w", err)
	}
	return l, nil
}

// noLease is a token that no lease has.
const noLease = -1

// lease takes the lease of a session if it is free or has expired, or if its token is over. The caller reads the holder
// to see whether it was taken.
func (t *tx) lease(key lease.Key, owner string, token int64, ttl time.Duration, over int64) error {
	_, err := t.exec(takeLease, owner, token, ttl.Microseconds(), key.AppName, key.UserID, key.SessionID, over)
	return err
}

// acquire takes the lease of a session if it is free or has expired, or if its token is over.
func (s *Store) acquire(ctx context.Context, key lease.Key, owner string, ttl time.Duration,
	over int64) (*lease.Lease, error) {
	if owner == "" || ttl <= 0 {
		return nil, fmt.Errorf("%w: an owner and a time to live are required, got %q and %v", session.ErrInvalid, owner,
			ttl)
	}
	if err := complete(key); err != nil {
		return nil, err
	}
	if err := valid(owner); err != nil {
		return nil, fmt.Errorf("owner: %w", err)
	}
	var h holder
	token := newNonce()
	err := s.write(ctx, func(tx *tx, _ bool) error {
		err := tx.lease(key, owner, token, ttl, over)
		if err != nil {
			return err
		}
		if h, err = tx.holder(key); err != nil {
			return err
		}
		if h.token != token {
			return refuse(h.by(key))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &lease.Lease{Key: key, Owner: owner, Token: token, Until: time.UnixMicro(h.until)}, nil
}

// Renew extends a lease until ttl from now. See lease.Leaser.
func (s *Store) Renew(ctx context.Context, l *lease.Lease, ttl time.Duration) (*lease.Lease, error) {
	if l == nil || l.Token == 0 || ttl <= 0 {
		return nil, fmt.Errorf("renew lease: %w: a lease and a time to live are required", session.ErrInvalid)
	}
	renewed := *l
	err := s.write(ctx, func(tx *tx, _ bool) error {
		n, err := tx.exec(renewLease, ttl.Microseconds(), l.Key.AppName, l.Key.UserID, l.Key.SessionID, l.Token)
		if err != nil {
			return err
		}
		h, err := tx.holder(l.Key)
		if err != nil {
			return err
		}
		if n == 0 {
			return refuse(h.lostError(l.Key))
		}
		renewed.Until = time.UnixMicro(h.until)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("renew lease: %w", err)
	}
	return &renewed, nil
}

// Holder returns the holder of the lease of a session; nil if no owner holds it. See lease.Leaser.
func (s *Store) Holder(ctx context.Context, key lease.Key) (*lease.HeldError, error) {
	err := complete(key)
	var h holder
	if err == nil {
		err = s.read(ctx, func(q *snapshot) error {
			ok, err := q.row(selectHolder, []any{key.AppName, key.UserID, key.SessionID}, &h.owner, &h.token, &h.since,
				&h.until)
			if err == nil && !ok {
				err = missing(key)
			}
			return err
		})
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("find the holder of the lease: %w", err)
	case h.token == 0:
		return nil, nil
	}
	return h.by(key), nil
}

// Release ends a lease. See lease.Leaser.
func (s *Store) Release(ctx context.Context, l *lease.Lease) error {
	if l == nil || l.Token == 0 {
		return fmt.Errorf("release lease: %w: a lease is required", session.ErrInvalid)
	}
	err := s.write(ctx, func(tx *tx, _ bool) error {
		_, err := tx.exec(endLease, l.Key.AppName, l.Key.UserID, l.Key.SessionID, l.Token)
		return err
	})
	if err != nil {
		return fmt.Errorf("release lease: %w", err)
	}
	return nil
}
