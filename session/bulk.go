// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"iter"
)

// BulkAppender is a [Service] that appends several events at once, as when a session is
// copied: on its way to a disk that takes hardly longer than one. All services of this
// project are BulkAppenders; sessiontest.TestService looks at those that are.
type BulkAppender interface {
	// AppendEvents is [Service.AppendEvent] for several events in their order: all are
	// stored, or none. What is said there of the Seq is said of the first one; those
	// behind it have none, or the next one each. Partial events are left out. The
	// errors are those of AppendEvent, and the events are unchanged then.
	AppendEvents(ctx context.Context, s Session, evs []*Event) error
}

// bulk is how many events [AppendAll] gives to a service at once: so many are encoded in
// memory, and keep others from writing.
const bulk = 250

// AppendAll appends events to the end of a session's log: many at once if the service
// is a [BulkAppender], and else one by one. If it fails a part of them is stored.
func AppendAll(ctx context.Context, svc Service, s Session, evs iter.Seq[*Event]) error {
	b, ok := svc.(BulkAppender)
	if !ok {
		for ev := range evs {
			if err := svc.AppendEvent(ctx, s, ev); err != nil {
				return err
			}
		}
		return nil
	}
	var some []*Event
	for ev := range evs {
		if some = append(some, ev); len(some) < bulk {
			continue
		}
		if err := b.AppendEvents(ctx, s, some); err != nil {
			return err
		}
		some = nil
	}
	if len(some) == 0 {
		return nil
	}
	return b.AppendEvents(ctx, s, some)
}
