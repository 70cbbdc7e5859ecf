// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/refrain-dev/refrain/session"
)

const (
	insertSession = `INSERT INTO sessions (app, user_id, name, created, nonce) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (app, user_id, name) DO NOTHING`
	selectMade = `SELECT s.id, s.nonce FROM sessions s WHERE s.app = ? AND s.user_id = ? AND s.name = ?`

	deleteSession = `DELETE FROM sessions WHERE id = ?`
	deleteEvents  = `DELETE FROM events WHERE session = ?`
	deleteState   = `DELETE FROM state WHERE session = ?`
)

// Create starts a session. See session.Service.
func (s *Store) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	if req == nil || req.AppName == "" || req.UserID == "" {
		return nil, fmt.Errorf("create session: %w: app name and user ID are required", session.ErrInvalid)
	}
	key := session.Key{AppName: req.AppName, UserID: req.UserID, SessionID: strings.TrimSpace(req.SessionID)}
	if key.SessionID == "" {
		key.SessionID = uuid.NewString()
	}
	if err := complete(key); err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	v, err := s.create(ctx, key, req.State)
	if err != nil {
		return nil, fmt.Errorf("create session %q: %w", key.SessionID, err)
	}
	return &session.CreateResponse{Session: v}, nil
}

func (s *Store) create(ctx context.Context, key session.Key, state map[string]any) (*session.View, error) {
	first, err := encodeState(state)
	if err != nil {
		return nil, err
	}
	cfg := session.ViewConfig{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID, Updated: time.Now()}
	nonce := newNonce()
	err = s.write(ctx, func(tx *tx, _ bool) error {
		n, err := tx.exec(insertSession, key.AppName, key.UserID, key.SessionID, cfg.Updated.UnixMicro(), nonce)
		if err != nil {
			return err
		}
		var id, made int64
		if _, err := tx.row(selectMade, []any{key.AppName, key.UserID, key.SessionID}, &id, &made); err != nil {
			return err
		}
		if made != nonce {
			return refuse(session.ErrExists)
		}
		if n == 1 { // else an earlier try was committed
			for _, v := range first {
				if v.json == nil {
					continue
				}
				if err := tx.setState(key, id, []value{v}); err != nil {
					return err
				}
			}
		}
		s.entry(key).id.Store(id)
		rows, err := tx.query(selectState, key.AppName, key.AppName, key.UserID, id)
		if err != nil {
			return err
		}
		cfg.State, err = scanState(rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	return session.NewView(cfg), nil
}

// Delete removes a session with its events. See session.Service.
func (s *Store) Delete(ctx context.Context, req *session.DeleteRequest) error {
	if req == nil {
		return fmt.Errorf("delete session: %w", session.ErrInvalid)
	}
	key := session.Key{AppName: req.AppName, UserID: req.UserID, SessionID: req.SessionID}
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
		if !ok || unsure && there != id { // nothing is there, or an earlier try was committed
			return nil
		}
		id = there
		for _, text := range []string{deleteSession, deleteEvents, deleteState} { // the first keeps appends out
			if _, err := tx.exec(text, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	s.hub.changed(id)
	return nil
}
