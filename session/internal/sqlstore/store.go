// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// Config is what a [Store] needs.
type Config struct {
	Dialect *Dialect
	// Reader and Writer are pools of connections; they may be the same. The
	// store closes both.
	Reader, Writer *sql.DB
	// Readers and Writers are how many transactions that read, and that write, may be under
	// way at once. Each takes a connection, and keeps it. 0: 1.
	Readers, Writers int
	// Batch is how many changes one transaction may hold, of those that wait at
	// the same time. They then share one way to the disk.
	Batch int
	// ReadOnly leaves the tables as they are: those of an older version are refused.
	ReadOnly bool
	// Wait bounds how long a call waits for a database that is locked or away.
	Wait time.Duration
}

// Store is a session.Service, store.Starter, store.BulkAppender, lease.Leaser
// and store.Watcher in an SQL database. It is safe for concurrent use, by several processes too.
type Store struct {
	dialect        *Dialect
	reader, writer *sql.DB
	batch          int
	wait           time.Duration
	readers        idle
	writers        queue
	hub            hub
	done           context.Context // ends when the store is closed
	stop           context.CancelFunc
	workers        sync.WaitGroup // who write what no caller does

	mu       sync.Mutex
	calls    sync.WaitGroup // under way
	closed   bool
	sessions map[lease.Key]*entry
}

var (
	_ session.Service    = (*Store)(nil)
	_ store.Starter      = (*Store)(nil)
	_ store.LogStarter   = (*Store)(nil)
	_ store.BulkAppender = (*Store)(nil)
	_ lease.Leaser       = (*Store)(nil)
	_ store.Watcher      = (*Store)(nil)
)

// New brings the database's tables up to date and returns the store. It waits
// for a database that is locked or away as Config.Wait says. On an error both
// pools are closed.
func New(ctx context.Context, cfg Config) (*Store, error) {
	s := &Store{
		dialect: cfg.Dialect, reader: cfg.Reader, writer: cfg.Writer,
		batch: max(cfg.Batch, 1), wait: cmp.Or(cfg.Wait, 30*time.Second),
		readers:  idle{slots: make(chan struct{}, max(cfg.Readers, 1))},
		sessions: make(map[lease.Key]*entry),
	}
	s.done, s.stop = context.WithCancel(context.Background())
	s.hub.store = s
	up := s.migrate
	if cfg.ReadOnly {
		up = s.current
	}
	err := up(ctx)
	if err == nil {
		for range cap(s.readers.slots) {
			s.readers.free = append(s.readers.free, &snapshot{conn{store: s, pool: s.reader}})
		}
		err = s.readOne(ctx, func(q *snapshot) error { // so that one is connected from now on
			_, err := q.row(selectID, []any{"", "", ""}, new(int64))
			return err
		})
	}
	if err != nil {
		s.stop()
		s.writer.Close()
		s.reader.Close()
		return nil, fmt.Errorf("open %s: %w", s.dialect.Name, err)
	}
	for range max(cfg.Writers, 1) {
		s.writers.free = append(s.writers.free, &tx{conn{store: s, pool: s.writer}})
	}
	return s, nil
}

// Close waits for what is under way, and closes the database. Whoever watches
// gets session.ErrClosed, and so does every later call. What waits for a
// database that is locked or away gives up.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.calls.Wait()
	s.workers.Wait()
	s.hub.close()
	if s.dialect.Closing != nil {
		s.dialect.Closing()
	}
	for _, q := range s.readers.free {
		q.disconnect()
	}
	for _, t := range s.writers.free {
		t.disconnect()
	}
	err := s.reader.Close()
	if s.writer != s.reader {
		err = cmp.Or(s.writer.Close(), err)
	}
	if err != nil {
		return fmt.Errorf("close %s: %w", s.dialect.Name, s.explain(err))
	}
	return nil
}

// enter counts a call in, unless the store is closed.
func (s *Store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return session.ErrClosed
	}
	s.calls.Add(1)
	return nil
}

// entry is what the store remembers of a session.
type entry struct {
	id   atomic.Int64  // of its row; 0 if not known
	turn chan struct{} // holds one value while somebody appends
}

// entry returns what is remembered of a session. To forget it does no harm.
func (s *Store) entry(key lease.Key) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.sessions[key]
	if e == nil {
		if len(s.sessions) >= 10_000 {
			clear(s.sessions)
		}
		e = &entry{turn: make(chan struct{}, 1)}
		s.sessions[key] = e
	}
	return e
}

// lock waits for the turn to append.
func (e *entry) lock(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *entry) unlock() { <-e.turn }
