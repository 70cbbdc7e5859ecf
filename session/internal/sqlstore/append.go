// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/internal/values/canonical"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// These statements insert the first event of a transaction. They insert nothing if its sequence number is not the next one
// of the session, or if the writer has a lease that is not the present lease of the session.
const (
	insertEvent = `
INSERT INTO events (session, seq, time, nonce, data, texts)
SELECT s.id, ?, ?, ?, ?, ? FROM sessions s` + ifNext + `
{share}
ON CONFLICT (session, seq) DO NOTHING`

	// insertValues does the same for a database such as SQLite, which makes a temporary table for an INSERT of a
	// SELECT that reads the same table. If the condition fails, the session is NULL, and {insert} ignores the row.
	insertValues = `
{insert} INTO events (session, seq, time, nonce, data, texts)
VALUES ((SELECT s.id FROM sessions s` + ifNext + `), ?, ?, ?, ?, ?)`

	ifNext = `
WHERE s.id = ? AND (CAST(? AS BIGINT) = 0 OR s.lease_token = ?)
AND ? = 1 + COALESCE((SELECT max(e.seq) FROM events e WHERE e.session = s.id), 0)`
)

// insertNext inserts an event after the first one of a transaction. It checks nothing, because the first INSERT has done so.
const insertNext = `INSERT INTO events (session, seq, time, nonce, data, texts) VALUES (?, ?, ?, ?, ?, ?)`

// selectWhy reads why an event was not inserted; see [appending.why].
const selectWhy = `
SELECT s.id, s.lease_owner, s.lease_token, s.lease_since, s.lease_until,
COALESCE((SELECT e.nonce FROM events e WHERE e.session = s.id AND e.seq = ?), 0)
FROM sessions s WHERE s.app = ? AND s.user_id = ? AND s.name = ?`

const selectID = `SELECT s.id FROM sessions s WHERE s.app = ? AND s.user_id = ? AND s.name = ?`

// AppendEvent adds an event and its delta in one transaction. See
// session.Service.
func (s *Store) AppendEvent(ctx context.Context, of session.Session, ev *session.Event) error {
	return s.AppendEvents(ctx, of, []*session.Event{ev})
}

// append adds all the events, or none of them if it fails.
func (s *Store) append(ctx context.Context, key lease.Key, of session.Session, evs []*session.Event) error {
	for _, ev := range evs {
		if err := ev.Actions.Normalize(); err != nil {
			return err
		}
	}
	e := s.entry(key)
	if err := e.lock(ctx); err != nil {
		return err
	}
	defer e.unlock()

	v := session.ViewBehind(of)
	if v != nil {
		if err := v.Err(); err != nil {
			return err
		}
	}
	a := appending{entry: e, key: key, seq: evs[0].Seq, nonce: newNonce()}
	last := session.LastSeen(of)
	a.seq = cmp.Or(a.seq, last+1)
	if l := lease.From(ctx); l != nil && l.Key == key {
		a.lease = l.Token
	}
	b := batch{all: []appending{a}}
	if err := b.encode(evs); err != nil {
		return err
	}
	missed, err := s.missed(ctx, v, key, last, a.seq)
	if err != nil {
		return err
	}
	if err := s.write(ctx, b.write); err != nil {
		return err
	}
	if v != nil {
		for _, m := range missed {
			v.Apply(m)
		}
	}
	b.applied(evs, v)
	s.hub.wake(e.id.Load())
	return nil
}

// missed returns the events that v has not seen, from last+1 to seq-1. There are such events only if the caller
// preset the Seq of the new event.
func (s *Store) missed(ctx context.Context, v *session.View, key lease.Key, last,
	seq int64) (evs []*session.Event, err error) {
	if v == nil || seq <= last+1 {
		return nil, nil
	}
	err = s.read(ctx, func(q *snapshot) error {
		id, err := q.idOf(key)
		if err == nil {
			evs, err = q.events(id, last+1, seq-1)
		}
		return err
	})
	return evs, err
}

// idOf returns the number of a session's row.
func (c *conn) idOf(key lease.Key) (id int64, err error) {
	ok, err := c.row(selectID, []any{key.AppName, key.UserID, key.SessionID}, &id)
	if err == nil && !ok {
		err = missing(key)
	}
	return id, err
}

// newNonce returns a random number that is not 0. It identifies a change, so that a retry recognises its own row.
func newNonce() int64 { return rand.Int64() | 1 }

// appending is one event that is being appended, with its encoded row.
type appending struct {
	entry *entry
	key   lease.Key
	lease int64 // token; 0: none
	seq   int64
	nonce int64
	id    string
	at    time.Time
	data  []byte  // JSON, without the long texts
	texts []byte  // the long texts; nil if there are none
	state []value // the durable keys of the delta
}

// value is a state key with its value as JSON; nil removes it.
type value struct {
	key  string
	json []byte
}

// rowSize is the initial size of the buffer for an event's JSON, in bytes. The JSON of most events is smaller.
const rowSize = 512

// encode encodes the event's row. It does not change the event.
func (a *appending) encode(ev *session.Event) (err error) {
	row := *ev.WithoutTemp()
	row.Seq = a.seq
	if row.ID == "" {
		row.ID = strconv.FormatInt(a.seq, 10)
	}
	if row.Timestamp.IsZero() {
		row.Timestamp = time.Now()
	}
	a.id, a.at = row.ID, row.Timestamp
	if a.state, err = encodeState(ev.Actions.StateDelta); err != nil {
		return err
	}
	if a.texts, err = pull(&row, a.state); err != nil {
		return err
	}
	if a.data, err = row.AppendJSON(make([]byte, 0, rowSize)); err != nil {
		return fmt.Errorf("%w: the event has no JSON: %w", session.ErrInvalid, err)
	}
	return nil
}

// encodeState returns the durable keys of a delta with their values as JSON. They are sorted, so that all
// transactions lock shared keys in the same order and cannot deadlock.
func encodeState(delta map[string]any) ([]value, error) {
	var all []value
	var w canonical.Writer // has all values, one after another
	for k, val := range delta {
		if !statekey.Durable(k) {
			continue
		}
		if err := valid(k); err != nil {
			return nil, fmt.Errorf("state key: %w", err)
		}
		v := value{key: k}
		if val != nil {
			from := len(w.Buf)
			if err := w.Value(val); err != nil {
				return nil, fmt.Errorf("%w: the value of state key %q has no JSON: %w", session.ErrInvalid, k, err)
			}
			v.json = w.Buf[from:len(w.Buf):len(w.Buf)]
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b value) int { return strings.Compare(a.key, b.key) })
	return all, nil
}

// insert inserts the event, the first one of its transaction. It returns the ID of the session's row. stored reports
// that an earlier attempt has already inserted the event.
func (a *appending) insert(tx *tx) (id int64, stored bool, err error) {
	if id = a.entry.id.Load(); id == 0 {
		if id, err = tx.idOf(a.key); err != nil {
			return 0, false, err
		}
		a.entry.id.Store(id)
	}
	n, err := a.insertInto(tx, id)
	if err != nil || n == 1 {
		return id, false, err
	}
	return a.why(tx, id)
}

// insertInto inserts the event if it is the next one of the session. It returns the number of inserted rows, 0
// or 1.
func (a *appending) insertInto(tx *tx, id int64) (int64, error) {
	at := a.at.UnixMicro()
	if tx.store.dialect.Insert == "" {
		return tx.exec(insertEvent, a.seq, at, a.nonce, a.data, a.texts, id, a.lease, a.lease, a.seq)
	}
	return tx.exec(insertValues, id, a.lease, a.lease, a.seq, a.seq, at, a.nonce, a.data, a.texts)
}

// why returns the reason why an event was not inserted. If an earlier attempt has inserted it, and only the answer of
// the database was lost, why returns stored and no error. If the session was deleted and created again, why inserts
// the event into the new session.
func (a *appending) why(tx *tx, tried int64) (id int64, stored bool, err error) {
	var nonce int64
	var h holder
	ok, err := tx.row(selectWhy, []any{a.seq, a.key.AppName, a.key.UserID, a.key.SessionID},
		&id, &h.owner, &h.token, &h.since, &h.until, &nonce)
	switch {
	case err != nil:
		return 0, false, err
	case !ok:
		a.entry.id.Store(0)
		return 0, false, missing(a.key)
	case id != tried: // the session was deleted and created again
		a.entry.id.Store(id)
		return a.insert(tx)
	case nonce == a.nonce:
		return id, true, nil
	case a.lease != 0 && a.lease != h.token:
		return 0, false, refuse(h.lostError(a.key))
	}
	return 0, false, refuse(session.ErrConflict)
}
