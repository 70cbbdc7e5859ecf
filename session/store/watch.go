// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"iter"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// Watcher is a [session.Service] whose sessions can be looked at while others append to
// them. All services of this project are Watchers; sessiontest.TestWatcher says
// what is asked of one.
//
//	for ev, err := range watcher.Watch(ctx, key, seen) {
//		if err != nil {
//			return err
//		}
//		show(ev)
//		seen = ev.Seq
//	}
type Watcher interface {
	// Watch yields the session's events whose Seq is greater than after: first
	// those that are there, then each as it is appended, by whatever process.
	// None is left out and none comes twice, so a watch can be taken up again
	// with the Seq of the last event that was seen. Events are as they were
	// stored, without temp: keys.
	//
	// It ends with an error: the context's cause, [session.ErrNotFound] if there is no
	// such session or when it is deleted, [session.ErrInvalid], [session.ErrClosed], or what
	// went wrong with the store.
	Watch(ctx context.Context, key lease.Key, after int64) iter.Seq2[*session.Event, error]
}
