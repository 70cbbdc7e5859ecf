// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

const (
	selectNew   = `SELECT data, texts, 0 FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT 64`
	selectThere = `SELECT id FROM sessions WHERE id = ?`
)

// Watch yields a session's events as they are appended. See store.Watcher.
func (s *Store) Watch(ctx context.Context, key lease.Key, after int64) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		err := s.watch(ctx, key, max(after, 0), func(ev *session.Event) bool { return yield(ev, nil) })
		switch {
		case errors.Is(err, errLeft):
		case ctx.Err() != nil:
			yield(nil, context.Cause(ctx))
		default:
			yield(nil, fmt.Errorf("watch session: %w", err))
		}
	}
}

// errLeft: the consumer has seen enough.
var errLeft = errors.New("left")

func (s *Store) watch(ctx context.Context, key lease.Key, seen int64, yield func(*session.Event) bool) error {
	if err := complete(key); err != nil {
		return err
	}
	var id int64
	err := s.read(ctx, func(q *snapshot) (err error) {
		id, err = q.idOf(key)
		return err
	})
	if err != nil {
		return err
	}
	more, leave, err := s.hub.join(id)
	if err != nil {
		return err
	}
	defer leave()
	for {
		evs, err := s.since(ctx, key, id, seen)
		if err != nil {
			return err
		}
		for _, ev := range evs {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if !yield(ev) {
				return errLeft
			}
			seen = ev.Seq
		}
		if len(evs) > 0 {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done.Done():
			return session.ErrClosed
		}
	}
}

// since reads the next events after one.
func (s *Store) since(ctx context.Context, key lease.Key, id, seen int64) (evs []*session.Event, err error) {
	err = s.read(ctx, func(q *snapshot) error {
		var err error
		if evs, err = q.scan(selectNew, seen+1, 0, id, seen); err != nil || len(evs) > 0 {
			return err
		}
		ok, err := q.row(selectThere, []any{id}, &id)
		if err == nil && !ok {
			err = missing(key)
		}
		return err
	})
	return evs, err
}

// hub tells those who watch that there may be something new. While there are
// any it listens to other processes.
type hub struct {
	store *Store

	mu       sync.Mutex
	watchers map[int64]map[chan struct{}]bool // by the session's row
	n        int
	closed   bool
	quiet    context.CancelFunc // ends listening
	heard    sync.WaitGroup
}

// join adds somebody who watches a session. The channel has a value whenever
// the session may have changed.
func (h *hub) join(id int64) (more <-chan struct{}, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, session.ErrClosed
	}
	if h.watchers == nil {
		h.watchers = make(map[int64]map[chan struct{}]bool)
	}
	if h.watchers[id] == nil {
		h.watchers[id] = make(map[chan struct{}]bool)
	}
	c := make(chan struct{}, 1)
	h.watchers[id][c] = true
	if h.n++; h.n == 1 {
		ctx, cancel := context.WithCancel(h.store.done)
		h.quiet = cancel
		h.heard.Go(func() { h.store.dialect.Listen(ctx, h.changed) })
	}
	return c, func() { h.leave(id, c) }, nil
}

func (h *hub) leave(id int64, c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.watchers[id], c); len(h.watchers[id]) == 0 {
		delete(h.watchers, id)
	}
	if h.n--; h.n == 0 {
		h.quiet()
	}
}

// changed wakes those who watch a session; 0: everybody.
func (h *hub) changed(id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id != 0 {
		wake(h.watchers[id])
		return
	}
	for _, all := range h.watchers {
		wake(all)
	}
}

func wake(watchers map[chan struct{}]bool) {
	for c := range watchers {
		select {
		case c <- struct{}{}:
		default: // it has not looked yet
		}
	}
}

// close waits until nobody listens any more. The store is done.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.heard.Wait()
}
