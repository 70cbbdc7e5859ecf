// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/internal/eventjson"
)

const (
	selectEvents  = `SELECT seq, data, texts FROM events WHERE session = ? AND seq >= ? AND seq <= ? ORDER BY seq`
	selectOutline = `SELECT seq, data, COALESCE(length(texts), 0) FROM events WHERE session = ? AND seq >= ? AND seq <= ? ORDER BY seq`
)

// snapshot is a transaction that reads: whatever it looks at, it sees the
// database at one point in time.
type snapshot struct {
	ctx   context.Context
	store *Store
	tx    *sql.Tx
}

// read runs queries in a snapshot. They run again if the database was away or
// locked, for as long as the store is told to wait.
func (s *Store) read(ctx context.Context, look func(q *snapshot) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.Done()
	for wait := s.patience(); ; wait.pause(ctx) {
		err := s.tryRead(ctx, look)
		if err == nil {
			return nil
		}
		if end := wait.over(ctx, err); end != nil {
			return end
		}
	}
}

func (s *Store) tryRead(ctx context.Context, look func(q *snapshot) error) error {
	tx, err := s.reader.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing was written
	return look(&snapshot{ctx: ctx, store: s, tx: tx})
}

// reading lists the statements of snapshots. They are prepared when the store
// is opened: to do it later would take a second connection, which may be the
// last one's.
var reading = []string{selectID, selectSession, selectState, selectBefore, selectEvents, selectOutline, selectNew,
	selectThere, selectList, selectStates, selectAppState, selectUserStates, selectHolder}

func (s *Store) prepare(ctx context.Context) error {
	wait := s.patience()
	for i := 0; i < len(reading); {
		stmt, err := s.reader.PrepareContext(ctx, s.dialect.sql(reading[i]))
		if err == nil {
			s.queries[reading[i]] = stmt
			i++
			continue
		}
		if end := wait.over(ctx, err); end != nil {
			return end
		}
		wait.pause(ctx)
	}
	return nil
}

func (q *snapshot) query(text string, args ...any) (*sql.Rows, error) {
	return q.tx.StmtContext(q.ctx, q.store.queries[text]).QueryContext(q.ctx, args...)
}

// row reads one row, and reports whether there is one.
func (q *snapshot) row(text string, args []any, dest ...any) (bool, error) {
	err := q.tx.StmtContext(q.ctx, q.store.queries[text]).QueryRowContext(q.ctx, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// events are those with a number from first to last.
func (q *snapshot) events(id, first, last int64) ([]*session.Event, error) {
	rows, err := q.query(selectEvents, id, first, last)
	if err != nil {
		return nil, err
	}
	return scanEvents(rows)
}

// outline are those with a number from first to last, without their long texts.
func (q *snapshot) outline(id, first, last int64) ([]*session.Event, error) {
	rows, err := q.query(selectOutline, id, first, last)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var evs []*session.Event
	var d eventjson.Decoder
	for rows.Next() {
		var seq, omitted int64
		var data sql.RawBytes
		if err := rows.Scan(&seq, &data, &omitted); err != nil {
			return nil, err
		}
		ev, err := decodeEvent(&d, seq, data, nil)
		if err != nil {
			return nil, err
		}
		ev.Omitted = omitted
		evs = append(evs, ev)
	}
	return evs, rows.Err()
}

func scanEvents(rows rows) ([]*session.Event, error) {
	defer rows.Close()
	var evs []*session.Event
	var d eventjson.Decoder
	for rows.Next() {
		var seq int64
		var data, texts sql.RawBytes
		if err := rows.Scan(&seq, &data, &texts); err != nil {
			return nil, err
		}
		ev, err := decodeEvent(&d, seq, data, texts)
		if err != nil {
			return nil, err
		}
		evs = append(evs, ev)
	}
	return evs, rows.Err()
}

// decodeEvent makes an event of its row.
func decodeEvent(d *eventjson.Decoder, seq int64, data, texts []byte) (*session.Event, error) {
	ev, err := d.Event(data)
	if err == nil && texts != nil {
		err = put(ev, texts)
	}
	if err != nil {
		return nil, refuse(fmt.Errorf("the stored event %d is damaged: %w", seq, err))
	}
	ev.Seq = seq
	return ev, nil
}
