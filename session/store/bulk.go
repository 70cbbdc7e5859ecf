// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"iter"
	"slices"

	"github.com/refrain-dev/refrain/session"
)

// BulkAppender is a [session.Service] that appends several events at once, as when a session is copied. On
// a disk this takes little longer than one event. All services of this project are BulkAppenders;
// sessiontest.TestService tests them.
type BulkAppender interface {
	// AppendEvents appends several events in their order, as [session.Service.AppendEvent] does: all are
	// stored, or none. The rules for Seq apply to the first event; each later event has no Seq or the next
	// one. Partial events are left out. The errors are those of AppendEvent; on an error the events are
	// unchanged.
	AppendEvents(ctx context.Context, s session.Session, evs []*session.Event) error
}

// Committer is a BulkAppender that reports whether each append is a commit. Such an append costs much more
// than an event, so a runner appends several events at once where that makes no difference to readers.
type Committer interface {
	BulkAppender
	Commits() bool
}

// AppendAll appends events to the end of a session's log. With a service that is a [BulkAppender] all are
// stored, or none. Any other service gets the events one by one, and keeps those before a failure.
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
