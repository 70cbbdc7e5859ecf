// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/internal/eventjson"
)

// The rows of events come without their numbers, which the JSON has too.
const (
	selectEvents  = `SELECT data, texts FROM events WHERE session = ? AND seq >= ? AND seq <= ? ORDER BY seq`
	selectOutline = `SELECT data, COALESCE(length(texts), 0) FROM events WHERE session = ? AND seq >= ? AND seq <= ? ORDER BY seq`
)

// snapshot is a connection that reads, and the transaction under way on it: whatever it looks at,
// it sees the database at one point in time.
type snapshot struct{ conn }

// idle has the connections that read and that nobody uses.
type idle struct {
	slots chan struct{} // has one value for each that is in use

	mu   sync.Mutex
	free []*snapshot
}

// take waits for a connection: the one that was used last, which remembers most.
func (i *idle) take(ctx context.Context) (*snapshot, error) {
	select {
	case i.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	last := len(i.free) - 1
	q := i.free[last]
	i.free = i.free[:last]
	return q, nil
}

func (i *idle) release(q *snapshot) {
	i.mu.Lock()
	i.free = append(i.free, q)
	i.mu.Unlock()
	<-i.slots
}

// read runs queries in a snapshot. They run again if the database was away or
// locked, for as long as the store is told to wait.
func (s *Store) read(ctx context.Context, look func(q *snapshot) error) error {
	return s.readIn(ctx, s.dialect.Snapshot, look)
}

// readOne is read for a look that runs one statement: that is a snapshot by itself.
func (s *Store) readOne(ctx context.Context, look func(q *snapshot) error) error {
	return s.readIn(ctx, "", look)
}

func (s *Store) readIn(ctx context.Context, begin string, look func(q *snapshot) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.Done()
	q, err := s.readers.take(ctx)
	if err != nil {
		return err
	}
	defer s.readers.release(q)
	for wait := s.patience(); ; wait.pause(ctx) {
		err := q.try(ctx, begin, look)
		if err == nil {
			return nil
		}
		if end := wait.over(ctx, err); end != nil {
			return end
		}
	}
}

// try runs queries once, in a transaction that begin begins if it is not empty. Where the database
// always answers, nobody watches the context while it does: that takes a goroutine for each query.
func (q *snapshot) try(ctx context.Context, begin string, look func(q *snapshot) error) error {
	if q.ctx = ctx; q.store.dialect.Timeout == 0 {
		q.ctx = context.WithoutCancel(ctx)
	}
	if err := q.connect(); err != nil {
		return err
	}
	if begin == "" {
		err := look(q)
		if err != nil && !isRefusal(err) && q.store.dialect.Classify(err) == Lost {
			q.disconnect()
		}
		return err
	}
	if _, err := q.exec(begin); err != nil {
		q.disconnect()
		return err
	}
	defer q.rollback() // nothing was written
	return look(q)
}

// events are those with a number from first to last.
func (q *snapshot) events(id, first, last int64) ([]*session.Event, error) {
	rows, err := q.query(selectEvents, id, first, last)
	if err != nil {
		return nil, err
	}
	return scanEvents(rows, first, last-first+1)
}

// outline are those with a number from first to last, without their long texts.
func (q *snapshot) outline(id, first, last int64) ([]*session.Event, error) {
	rows, err := q.query(selectOutline, id, first, last)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	evs, d := room(last - first + 1)
	var data sql.RawBytes
	var omitted int64
	for rows.Next() {
		if err := rows.Scan(&data, &omitted); err != nil {
			return nil, err
		}
		ev, err := decodeEvent(d, first+int64(len(evs)), data, nil)
		if err != nil {
			return nil, err
		}
		ev.Omitted = omitted
		evs = append(evs, ev)
	}
	return evs, rows.Err()
}

// room is for n events, or fewer.
func room(n int64) ([]*session.Event, *eventjson.Decoder) {
	n = min(n, 1024)
	return make([]*session.Event, 0, n), &eventjson.Decoder{Expect: int(n)}
}

// scanEvents reads rows of events, n or fewer; the first one has that number.
func scanEvents(rows rows, first, n int64) ([]*session.Event, error) {
	defer rows.Close()
	evs, d := room(n)
	var data, texts sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&data, &texts); err != nil {
			return nil, err
		}
		ev, err := decodeEvent(d, first+int64(len(evs)), data, texts)
		if err != nil {
			return nil, err
		}
		evs = append(evs, ev)
	}
	return evs, rows.Err()
}

// decodeEvent makes an event of its row. A session has no gap in its numbers.
func decodeEvent(d *eventjson.Decoder, seq int64, data, texts []byte) (*session.Event, error) {
	ev, err := d.Event(data)
	switch {
	case err == nil && ev.Seq != seq:
		err = fmt.Errorf("it says that it is event %d", ev.Seq)
	case err == nil && texts != nil:
		err = put(ev, texts)
	}
	if err != nil {
		return nil, refuse(fmt.Errorf("the stored event %d is damaged: %w", seq, err))
	}
	return ev, nil
}
