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

// errLeft: the consumer has stopped the iteration.
var errLeft = errors.New("left")

// watch yields the events after the number seen. It joins the hub before it reads the first events, so that it misses none.
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

// since returns the next events after the number seen, at most 64. It returns ErrNotFound if the session was deleted.
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

// hub wakes the watchers of sessions when there may be new events. While there are watchers, it listens for changes by
// other processes.
type hub struct {
	store *Store

	mu        sync.Mutex
	watchers  map[int64]map[chan struct{}]bool // by the ID of the session's row
	n         int                              // the number of watchers
	closed    bool
	quiet     context.CancelFunc // stops listening
	listeners sync.WaitGroup     // waits for the goroutines that listen
}

// join registers a watcher of a session. The channel has a value when the session may have changed since the last
// receive. The watcher calls leave at its end.
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
		h.listeners.Go(func() { h.store.dialect.Listen(ctx, h.wake) })
	}
	return c, func() { h.leave(id, c) }, nil
}

// leave removes a watcher. When the last watcher leaves, the hub stops listening.
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

// wake wakes the watchers of a session; if id is 0, it wakes all watchers.
func (h *hub) wake(id int64) {
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

// wake sends a value to each watcher without blocking.
func wake(watchers map[chan struct{}]bool) {
	for c := range watchers {
		select {
		case c <- struct{}{}:
		default: // the watcher has not received the last value yet
		}
	}
}

// close refuses new watchers and waits until listening has stopped. The caller has ended store.done before.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.listeners.Wait()
}
