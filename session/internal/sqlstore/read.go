// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/refrain-dev/refrain/session"
)

// The rows of events come without their numbers, which the JSON has too.
const (
	selectEvents  = `SELECT data, texts, 0 FROM events WHERE session = ? AND seq >= ? AND seq <= ? ORDER BY seq`
	selectOutline = `SELECT data, NULL, coalesce(length(texts), 0) FROM events WHERE session = ? AND seq >= ? AND seq <= ? ORDER BY seq`
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
	return q.scan(selectEvents, first, last-first+1, id, first, last)
}

// outline returns the events with the numbers first to last, without their long texts.
func (q *snapshot) outline(id, first, last int64) ([]*session.Event, error) {
	return q.scan(selectOutline, first, last-first+1, id, first, last)
}

// scan reads the rows of at most n events, or of any number of events if n is 0. first is the number of the first event. A row has
// the event's JSON and its texts, or NULL in place of the texts and the number of their bytes.
func (q *snapshot) scan(text string, first, n int64, args ...any) ([]*session.Event, error) {
	rows, err := q.query(text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	evs := make([]*session.Event, 0, min(n, 1024))
	var data, texts sql.RawBytes // valid until the next row
	var omitted int64
	for rows.Next() {
		if err := rows.Scan(&data, &texts, &omitted); err != nil {
			return nil, err
		}
		ev, err := decodeEvent(first, data, texts)
		if err != nil {
			return nil, err
		}
		ev.Omitted, first = omitted, ev.Seq+1
		evs = append(evs, ev)
	}
	return evs, rows.Err()
}

// decodeEvent makes an event of the row that is to have a number, or a later one: whoever needs the
// events in between notices that they are missing.
func decodeEvent(seq int64, data, texts []byte) (*session.Event, error) {
	ev := new(session.Event)
	err := ev.Decode(data)
	switch {
	case err == nil && ev.Seq < seq:
		err = fmt.Errorf("it says that it is event %d", ev.Seq)
	case err == nil && texts != nil:
		err = put(ev, texts)
	}
	if err != nil {
		return nil, refuse(fmt.Errorf("the stored event %d is damaged; restore the database from a backup: %w", seq, err))
	}
	return ev, nil
}
