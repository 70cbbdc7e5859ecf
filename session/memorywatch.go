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
		for seen := max(after, 0); err == nil; {
			var log eventLog
			var more <-chan struct{}
			if log, more, err = rec.since(seen); err != nil {
				break
			}
			for ; seen < int64(log.n) && ctx.Err() == nil; seen++ {
				if !yield(log.at(int(seen)), nil) {
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

// since returns the log, and a channel that is closed when there are more than
// seen events in it.
func (r *record) since(seen int64) (eventLog, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deleted {
		return eventLog{}, nil, fmt.Errorf("session %q of user %q: %w", r.key.id, r.key.user, ErrNotFound)
	}
	if int64(r.log.n) > seen {
		return r.log, closed, nil
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.log, r.changed, nil
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
