// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"iter"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// Watcher is a [session.Service] whose sessions can be followed while others append to them. All services
// of this project are Watchers; sessiontest.TestWatcher tests them.
//
//	for ev, err := range watcher.Watch(ctx, key, seen) {
//		if err != nil {
//			return err
//		}
//		show(ev)
//		seen = ev.Seq
//	}
type Watcher interface {
	// Watch yields the session's events whose Seq is greater than after: first the existing events, then
	// each new one, whichever process appends it. No event is left out or comes twice, so a caller can
	// continue with the Seq of the last event that it has seen. Events are as they were stored, without
	// temp: keys.
	//
	// Watch ends with an error: the context's cause, [session.ErrNotFound] if there is no such session or
	// when it is deleted, [session.ErrInvalid], [session.ErrClosed], or a failure of the store.
	Watch(ctx context.Context, key lease.Key, after int64) iter.Seq2[*session.Event, error]
}
