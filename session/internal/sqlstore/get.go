// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/values/caserun"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

const (
	selectSession = `SELECT s.id, COALESCE(e.seq, 0), COALESCE(e.time, s.created) FROM sessions s
LEFT JOIN events e ON e.session = s.id AND e.seq = (SELECT max(x.seq) FROM events x WHERE x.session = s.id)
WHERE s.app = ? AND s.user_id = ? AND s.name = ?`
	selectBefore = `SELECT e.seq FROM events e WHERE e.session = ? AND e.time < ? ORDER BY e.seq DESC LIMIT 1`

	// The second parameter is true if the caller wants the sessions of all users.
	selectList = `SELECT s.id, s.user_id, s.name, COALESCE(e.seq, 0), COALESCE(e.time, s.created) FROM sessions s
LEFT JOIN events e ON e.session = s.id AND e.seq = (SELECT max(x.seq) FROM events x WHERE x.session = s.id)
WHERE s.app = ? AND (? OR s.user_id = ?) ORDER BY s.user_id, s.name`
	selectStates = `SELECT t.session, t.key, t.value FROM state t JOIN sessions s ON s.id = t.session
WHERE s.app = ? AND (? OR s.user_id = ?)`
	// Refrain's own keys; see mark.KeyPrefix.
	selectOwnState   = `SELECT key, value FROM state WHERE session = ? AND substr(key, 1, 8) = 'refrain:'`
	selectOwnStates  = selectStates + ` AND substr(t.key, 1, 8) = 'refrain:'`
	selectUserStates = `SELECT user_id, key, value FROM user_state WHERE app = ? AND (? OR user_id = ?)`
	selectAppState   = `SELECT key, value FROM app_state WHERE app = ?`
)

// tail is how many of a session's last events Get reads. The view reads older events when a caller asks for
// them.
const tail = 64

// Get fetches a session: its state and its last events. The view reads older events when a caller asks for them, so
// the store must still be open then. See session.Service.
func (s *Store) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	if req == nil {
		return nil, fmt.Errorf("get session: %w", session.ErrInvalid)
	}
	key := lease.Key{AppName: req.AppName, UserID: req.UserID, SessionID: req.SessionID}
	if err := complete(key); err != nil {
		return nil, fmt.Errorf("get session: %w", err)
	}
	var v *session.View
	err := s.read(ctx, func(q *snapshot) (err error) {
		v, err = q.view(key, req)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get session: %w", err)
	}
	return &session.GetResponse{Session: v}, nil
}

// view reads a session and returns its view.
func (q *snapshot) view(key lease.Key, req *session.GetRequest) (*session.View, error) {
	cfg := session.ViewConfig{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID}
	var id, updated int64
	ok, err := q.row(selectSession, []any{key.AppName, key.UserID, key.SessionID}, &id, &cfg.LastSeq, &updated)
	if err == nil && !ok {
		err = missing(key)
	}
	if err != nil {
		return nil, err
	}
	cfg.Updated = time.UnixMicro(updated)
	text, args := stateQuery(key, id)
	if req.Brief {
		text, args = selectOwnState, []any{id}
	}
	if cfg.State, err = q.state(text, args...); err != nil {
		return nil, err
	}
	first, err := q.first(id, cfg.LastSeq, req)
	if err != nil {
		return nil, err
	}
	from := max(first, cfg.LastSeq-tail+1)
	if req.Brief {
		from = max(first, cfg.LastSeq+1)
	}
	if from <= cfg.LastSeq {
		if cfg.Events, err = q.events(id, from, cfg.LastSeq); err != nil {
			return nil, err
		}
	}
	cfg.Older = int(from - first)
	cfg.Load, cfg.Outline = q.store.load(key, id, (*snapshot).events), q.store.load(key, id, (*snapshot).outline)
	return session.NewView(cfg), nil
}

// first returns the number of the first event that the request asks for. Timestamps may fall, so it starts after the
// last event that is too old.
func (q *snapshot) first(id, last int64, req *session.GetRequest) (int64, error) {
	first := int64(1)
	if !req.After.IsZero() {
		var before int64
		if _, err := q.row(selectBefore, []any{id, req.After.UnixMicro()}, &before); err != nil {
			return 0, err
		}
		first = before + 1
	}
	if n := int64(req.NumRecentEvents); n > 0 {
		first = max(first, last-n+1)
	}
	return first, nil
}

// reader is a function that reads the events with a number from first to last.
type reader func(q *snapshot, id, first, last int64) ([]*session.Event, error)

// load returns the function with which a view reads its older events.
func (s *Store) load(key lease.Key, id int64, read reader) func(first, last int64) ([]*session.Event, error) {
	return func(first, last int64) (evs []*session.Event, err error) {
		err = s.readOne(s.done, func(q *snapshot) (err error) {
			evs, err = read(q, id, first, last)
			if err == nil && len(evs) == 0 {
				err = missing(key)
			}
			return err
		})
		if s.done.Err() != nil && err != nil {
			err = session.ErrClosed
		}
		return evs, err
	}
}

// List returns the sessions of an application, without their events. See session.Service.
func (s *Store) List(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	return s.lists(ctx, "list sessions", req, func(q *snapshot) (list []session.Session, damaged, err error) {
		list, err = q.list(req)
		return list, nil, err
	})
}

// lists returns the list of sessions that read returns. If read also returns an error as damaged, which names the sessions
// that the list omits, lists returns both the list and this error. what names the operation in errors.
func (s *Store) lists(ctx context.Context, what string, req *session.ListRequest,
	read func(*snapshot) (list []session.Session, damaged, err error)) (*session.ListResponse, error) {
	if req == nil || req.AppName == "" {
		return nil, fmt.Errorf("%s: %w: app name is required", what, session.ErrInvalid)
	}
	if err := valid(req.AppName, req.UserID); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	resp := &session.ListResponse{}
	var damaged error
	err := s.read(ctx, func(q *snapshot) (err error) {
		resp.Sessions, damaged, err = read(q)
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	case damaged != nil:
		return resp, fmt.Errorf("%s: %w", what, damaged)
	}
	return resp, nil
}

// list reads the sessions first, and then the values of all their states, with one query for each kind of
// state.
func (q *snapshot) list(req *session.ListRequest) ([]session.Session, error) {
	args := []any{req.AppName, req.UserID == "", req.UserID}
	rows, err := q.query(selectList, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var cfgs []session.ViewConfig
	byID, byUser := make(map[int64][]map[string]any), make(map[string][]map[string]any)
	var all []map[string]any
	for rows.Next() {
		var id, updated int64
		cfg := session.ViewConfig{AppName: req.AppName, State: make(map[string]any)}
		if err := rows.Scan(&id, &cfg.UserID, &cfg.SessionID, &cfg.LastSeq, &updated); err != nil {
			return nil, err
		}
		cfg.Updated = time.UnixMicro(updated)
		cfgs, byID[id] = append(cfgs, cfg), []map[string]any{cfg.State}
		if !caserun.Is(cfg.SessionID) {
			all, byUser[cfg.UserID] = append(all, cfg.State), append(byUser[cfg.UserID], cfg.State)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	var id int64
	var user string
	for _, one := range []struct {
		text  string
		brief bool // whether a request with Brief runs the query, or one without
		args  []any
		owner any                     // receives the first column, the session or the user; nil if the rows have none
		into  func() []map[string]any // returns the states that get the value
	}{
		{selectOwnStates, true, args, &id, func() []map[string]any { return byID[id] }},
		{selectStates, false, args, &id, func() []map[string]any { return byID[id] }},
		{selectUserStates, false, args, &user, func() []map[string]any { return byUser[user] }},
		{selectAppState, false, args[:1], nil, func() []map[string]any { return all }},
	} {
		if one.brief != req.Brief {
			continue
		}
		rows, err := q.query(one.text, one.args...)
		if err != nil {
			return nil, err
		}
		err = eachValue(rows, one.owner, func(key string, val any) {
			for _, state := range one.into() {
				state[key] = val
			}
		})
		if err != nil {
			return nil, err
		}
	}
	list := make([]session.Session, len(cfgs))
	for i, cfg := range cfgs {
		list[i] = session.NewView(cfg)
	}
	return list, nil
}

// eachValue calls found for each row of a query for state keys. If owner is not nil, it receives the first column of the row.
func eachValue(rows *sql.Rows, owner any, found func(key string, val any)) error {
	defer rows.Close()
	for rows.Next() {
		var key string
		var data []byte
		dest := []any{&key, &data}
		if owner != nil {
			dest = append([]any{owner}, dest...)
		}
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		val, err := decodeValue(strings.Clone(key), data)
		if err != nil {
			return err
		}
		found(key, val)
	}
	return rows.Err()
}
