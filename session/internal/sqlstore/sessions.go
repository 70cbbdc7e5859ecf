// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

const (
	insertSession = `INSERT INTO sessions (app, user_id, name, created, nonce) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (app, user_id, name) DO NOTHING`
	selectMade = `SELECT s.id, s.nonce FROM sessions s WHERE s.app = ? AND s.user_id = ? AND s.name = ?`

	deleteSession = `DELETE FROM sessions WHERE id = ?`
	deleteEvents  = `DELETE FROM events WHERE session = ?`
	deleteState   = `DELETE FROM state WHERE session = ?`
)

// Create creates a session. See session.Service.
func (s *Store) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	if req == nil || req.AppName == "" || req.UserID == "" {
		return nil, fmt.Errorf("create session: %w: app name and user ID are required", session.ErrInvalid)
	}
	key, err := newKey(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	v, err := s.create(ctx, key, req.State)
	if err != nil {
		return nil, fmt.Errorf("create session %q: %w", key.SessionID, err)
	}
	return &session.CreateResponse{Session: v}, nil
}

// newKey returns the key of a new session. If the request has no SessionID, newKey chooses one.
func newKey(ctx context.Context, req *session.CreateRequest) (lease.Key, error) {
	key := lease.Key{AppName: req.AppName, UserID: req.UserID, SessionID: strings.TrimSpace(req.SessionID)}
	if key.SessionID == "" {
		key.SessionID = platform.NewUUID(ctx)
	}
	return key, complete(key)
}

func (s *Store) create(ctx context.Context, key lease.Key, state map[string]any) (*session.View, error) {
	c, err := s.newCreation(ctx, key, state)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, func(tx *tx, _ bool) error {
		_, err := c.insert(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.view(), nil
}

// creation is a session that is being created.
type creation struct {
	store *Store
	entry *entry
	key   lease.Key
	nonce int64
	state []value            // the initial state
	cfg   session.ViewConfig // the configuration of its view; insert completes it
}

// newCreation returns a creation with the encoded initial state. It does not use the database.
func (s *Store) newCreation(ctx context.Context, key lease.Key, state map[string]any) (*creation, error) {
	state, err := session.Normalize(state)
	if err != nil {
		return nil, err
	}
	first, err := encodeState(state)
	if err != nil {
		return nil, err
	}
	first = slices.DeleteFunc(first, func(v value) bool { return v.json == nil })
	return &creation{
		store: s, entry: s.entry(key), key: key, nonce: newNonce(), state: first,
		cfg: session.ViewConfig{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID,
			Updated: platform.Now(ctx)},
	}, nil
}

// insert inserts the session, and reads its state. stored reports that an earlier attempt has already inserted
// the session.
func (c *creation) insert(tx *tx) (stored bool, err error) {
	n, err := tx.exec(insertSession, c.key.AppName, c.key.UserID, c.key.SessionID, c.cfg.Updated.UnixMicro(), c.nonce)
	if err != nil {
		return false, err
	}
	var id, made int64
	if _, err := tx.row(selectMade, []any{c.key.AppName, c.key.UserID, c.key.SessionID}, &id, &made); err != nil {
		return false, err
	}
	if made != c.nonce {
		return false, refuse(session.ErrExists)
	}
	if n == 1 {
		if err := tx.setState(c.key, id, c.state); err != nil {
			return false, err
		}
	}
	c.entry.id.Store(id)
	text, args := stateQuery(c.key, id)
	c.cfg.State, err = tx.state(text, args...)
	return n == 0, err
}

// view returns the view of the new session. Call it after insert.
func (c *creation) view() *session.View {
	id := c.entry.id.Load()
	c.cfg.Load, c.cfg.Outline = c.store.load(c.key, id, (*snapshot).events), c.store.load(c.key, id, (*snapshot).outline)
	return session.NewView(c.cfg)
}

// Delete removes a session with its events. See session.Service.
func (s *Store) Delete(ctx context.Context, req *session.DeleteRequest) error {
	if req == nil {
		return fmt.Errorf("delete session: %w", session.ErrInvalid)
	}
	key := lease.Key{AppName: req.AppName, UserID: req.UserID, SessionID: req.SessionID}
	if err := complete(key); err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	var id int64
	err := s.write(ctx, func(tx *tx, unsure bool) error {
		var there int64
		ok, err := tx.row(selectID, []any{key.AppName, key.UserID, key.SessionID}, &there)
		if err != nil {
			return err
		}
		if !ok || unsure && there != id { // there is no session, or an earlier attempt deleted it and the session is a new one
			return nil
		}
		id = there
		for _, text := range []string{deleteSession, deleteEvents, deleteState, cutOpen} { // the first statement locks out appends
			if _, err := tx.exec(text, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	s.hub.wake(id)
	return nil
}
