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

// Config is the configuration of a [Store].
type Config struct {
	Dialect *Dialect
	// Reader and Writer are pools of connections; they may be the same. The
	// store closes both.
	Reader, Writer *sql.DB
	// Readers and Writers are the largest numbers of transactions that read, and that write, at the same time. The
	// store keeps a connection for each of them. The default is 1.
	Readers, Writers int
	// Batch is the largest number of waiting changes that the store writes in one transaction, so that they share
	// one write to the disk. The default is 1.
	Batch int
	// ReadOnly makes New run no migrations. It then returns an error for tables of an older version.
	ReadOnly bool
	// Wait bounds how long a call waits for a database that is locked or not reachable. The default is 30 seconds.
	Wait time.Duration
}

// Store is a session.Service in an SQL database. It is also a store.Starter, store.LogStarter, store.BulkAppender,
// store.OpenLister, store.Committer, store.Watcher and lease.Leaser. It is safe for concurrent use, and several
// processes can use one database.
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
	workers        sync.WaitGroup // goroutines that write the jobs of waiting callers; see tx.lead

	mu       sync.Mutex
	calls    sync.WaitGroup // active calls
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

// New updates the database's tables to the newest version and returns the store. It waits for a database that is
// locked or not reachable, at most for Config.Wait. If it fails, it closes both pools.
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
		err = s.readOne(ctx, func(q *snapshot) error { // connects one of the readers
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

// Close waits for active calls and closes the database. Watchers and later calls get session.ErrClosed. Active calls
// that wait for a locked or unreachable database stop waiting and get it too.
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

// enter registers an active call; the caller must call s.calls.Done. It returns session.ErrClosed if the store is closed.
func (s *Store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return session.ErrClosed
	}
	s.calls.Add(1)
	return nil
}

// entry is the data that the store keeps in memory for a session.
type entry struct {
	id   atomic.Int64  // the ID of the session's row; 0 if it is not known
	turn chan struct{} // a lock: it has one value while a call appends
}

// entry returns the entry of a session. If there are 10,000 entries, it first removes all of them, which is safe
// because the database checks each append.
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

// lock waits until no other call appends to the session.
func (e *entry) lock(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *entry) unlock() { <-e.turn }
