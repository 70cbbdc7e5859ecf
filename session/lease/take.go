// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Take is [Leaser.Acquire] for a process that drives a session: it takes the lease over from an owner that is
// [Dead]. The errors are those of Acquire.
func Take(ctx context.Context, leaser Leaser, key Key, owner string, ttl time.Duration) (*Lease, error) {
	l, err := leaser.Acquire(ctx, key, owner, ttl)
	if held, ok := errors.AsType[*HeldError](err); ok && Dead(held.Owner) {
		return leaser.TakeOver(ctx, held, owner, ttl)
	}
	return l, err
}

// Keep renews a lease each time that every has passed, until ctx ends; then it returns nil. It returns [ErrLost] as
// soon as another owner has the lease, or if the lease could not be renewed for ttl, and at once an error that final
// reports to be final. Stop driving the session then.
func Keep(ctx context.Context, leaser Leaser, l *Lease, ttl, every time.Duration, final func(error) bool) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		try, cancel := context.WithDeadline(ctx, last.Add(ttl))
		asked := time.Now()
		_, err := leaser.Renew(try, l, ttl)
		cancel()
		switch {
		case err == nil:
			last = asked
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrLost), final(err):
			return err
		case time.Since(last) >= ttl:
			return fmt.Errorf("%w: it could not be renewed for %s: %w", ErrLost, ttl, err)
		}
	}
}
