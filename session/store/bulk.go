// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"iter"
	"slices"

	"github.com/refrain-dev/refrain/session"
)

// BulkAppender is a [session.Service] that appends several events at once, as when a
// session is copied. That takes a disk hardly longer than one event. All services of this
// project are BulkAppenders; sessiontest.TestService tests them.
type BulkAppender interface {
	// AppendEvents is [session.Service.AppendEvent] for several events in their order: all are
	// stored, or none. What is said there of the Seq is said of the first one; those
	// behind it have none, or the next one each. Partial events are left out. The
	// errors are those of AppendEvent, and the events are unchanged then.
	AppendEvents(ctx context.Context, s session.Session, evs []*session.Event) error
}

// Committer is a BulkAppender that can say whether each append is a commit. An append to such
// a service costs much more than an event, so a runner appends several events at once where
// nobody can tell the difference.
type Committer interface {
	BulkAppender
	Commits() bool
}

// AppendAll appends events to the end of a session's log. With a service that is a
// [BulkAppender] all are stored, or none. Any other gets them one by one, and keeps
// those before a failure.
func AppendAll(ctx context.Context, svc session.Service, s session.Session, evs iter.Seq[*session.Event]) error {
	if b, ok := svc.(BulkAppender); ok {
		return b.AppendEvents(ctx, s, slices.Collect(evs))
	}
	for ev := range evs {
		if err := svc.AppendEvent(ctx, s, ev); err != nil {
			return err
		}
	}
	return nil
}
