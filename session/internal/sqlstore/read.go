// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/refrain-dev/refrain/session"
)

// These statements do not select the column seq, because the event's JSON has the sequence number too.
const (
	selectEvents  = `SELECT data, texts, 0 FROM events WHERE session = ? AND seq >= ? AND seq <= ? ORDER BY seq`
	selectOutline = `SELECT data, NULL, coalesce(length(texts), 0) FROM events WHERE session = ? AND seq >= ? AND seq <= ? ORDER BY seq`
)

// snapshot is a connection that reads, with its present transaction. All queries of one transaction see the database
// as it was at one point in time.
type snapshot struct{ conn }

// idle is the list of the connections that read and that no call uses now.
type idle struct {
	slots chan struct{} // has one value for each connection in use

	mu   sync.Mutex
	free []*snapshot
}

// take waits for an idle connection and returns the one that was used last, because it has the most prepared
// statements.
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

// read calls look in a transaction that sees the database at one point in time. If the database is locked or not
// reachable, read tries again until Config.Wait is over, so look may be called several times.
func (s *Store) read(ctx context.Context, look func(q *snapshot) error) error {
	return s.readIn(ctx, s.dialect.Snapshot, look)
}

// readOne does what read does, for a look that runs only one statement. It needs no transaction, because one statement sees
// one point in time.
func (s *Store) readOne(ctx context.Context, look func(q *snapshot) error) error {
	return s.readIn(ctx, "", look)
}

// readIn does what read does, in a transaction that the statement begin begins, or in none if begin is empty.
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

// try calls look once, in a transaction that the statement begin begins, or in none if begin is empty. If the dialect
// has no Timeout, the queries do not watch ctx, because that takes a goroutine for each query.
func (q *snapshot) try(ctx context.Context, begin string, look func(q *snapshot) error) error {
	if q.ctx = ctx; q.store.dialect.Timeout == 0 {
		q.ctx = context.WithoutCancel(ctx)
	}
	if err := q.connect(); err != nil {
		return err
	}
	if begin == "" {
		err := look(q)
		if err != nil && !isRefusal(err) && q.store.dialect.Classify(err) == ConnectionLost {
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

// events returns the events with the numbers first to last.
func (q *snapshot) events(id, first, last int64) ([]*session.Event, error) {
	return q.scan(selectEvents, first, last-first+1, id, first, last)
}

// outline returns the events with the numbers first to last, without their long texts.
func (q *snapshot) outline(id, first, last int64) ([]*session.Event, error) {
	return q.scan(selectOutline, first, last-first+1, id, first, last)
}

// scan runs a query for events and decodes its rows. n is the expected number of events, 0 if it is unknown. first is the lowest
// number that the first event may have. A row has the event's JSON, its long texts or NULL, and the number of bytes of
// texts that the query omits.
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

// decodeEvent decodes the row of an event. It returns an error if the event's number is lower than seq. A higher number
// is allowed, because a caller that needs the events in between checks whether they are missing.
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
