// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// Start creates a session with its first events, and with its lease, in one transaction.
// See store.Starter.
func (s *Store) Start(ctx context.Context, req *session.StartRequest) (*session.StartResponse, error) {
	evs, err := req.PlainEvents()
	if err != nil {
		return nil, fmt.Errorf("start session: %w", err)
	}
	key, err := newKey(ctx, &req.CreateRequest)
	if err == nil && req.Owner != "" {
		err = valid(req.Owner)
	}
	if err != nil {
		return nil, fmt.Errorf("start session: %w", err)
	}
	resp, err := s.start(ctx, key, req, evs)
	if err != nil {
		return nil, fmt.Errorf("start session %q: %w", key.SessionID, err)
	}
	return resp, nil
}

// start inserts the session, its events and its lease. A retry of a transaction that was committed inserts nothing again.
func (s *Store) start(ctx context.Context, key lease.Key, req *session.StartRequest,
	evs []*session.Event) (*session.StartResponse, error) {
	c, err := s.newCreation(ctx, key, req.State)
	if err != nil {
		return nil, err
	}
	if err := c.entry.lock(ctx); err != nil {
		return nil, err
	}
	defer c.entry.unlock()
	b := batch{all: []appending{{entry: c.entry, key: key, seq: 1, nonce: newNonce()}}}
	if err := b.encode(evs); err != nil {
		return nil, err
	}
	token := newNonce()
	var h holder
	err = s.write(ctx, func(tx *tx, _ bool) error {
		stored, err := c.insert(tx)
		if err != nil {
			return err
		}
		if !stored {
			if err := b.write(tx, false); err != nil {
				return err
			}
		}
		if req.Owner == "" {
			return nil
		}
		if !stored {
			if err := tx.lease(key, req.Owner, token, req.TTL, noLease); err != nil {
				return err
			}
		}
		h, err = tx.holder(key)
		return err
	})
	if err != nil {
		return nil, err
	}
	v := c.view()
	b.applied(evs, v)
	s.hub.wake(c.entry.id.Load())
	resp := &session.StartResponse{Session: v}
	if req.Owner != "" {
		resp.Lease = &lease.Lease{Key: key, Owner: req.Owner, Token: token, Until: time.UnixMicro(h.until)}
	}
	return resp, nil
}
