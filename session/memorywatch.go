// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"iter"

	"github.com/refrain-dev/refrain/session/lease"
)

func (m *memory) Watch(ctx context.Context, key lease.Key, after int64) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		rec, err := m.find(sessionKey{key.AppName, key.UserID, key.SessionID})
		var w window
		for seen := max(after, 0); err == nil; {
			var more <-chan struct{}
			if more, err = rec.since(seen, &w); err != nil {
				break
			}
			for ev := range w.All() {
				if ctx.Err() != nil {
					break
				}
				if seen = ev.Seq; !yield(ev, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
			case <-more:
			}
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
		}
		yield(nil, fmt.Errorf("watch session: %w", err))
	}
}

// since makes w the window of the events behind the first seen ones, and returns a channel that
// is closed when there are such events.
func (r *record) since(seen int64, w *window) (<-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deleted {
		return nil, fmt.Errorf("session %q of user %q: %w", r.key.id, r.key.user, ErrNotFound)
	}
	w.start = seen + 1
	if r.show(w); r.last() > seen {
		return closed, nil
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed, nil
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// tell wakes those who watch. r.mu is held.
func (r *record) tell() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}
