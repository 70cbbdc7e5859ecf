// SPDX-License-Identifier: Apache-2.0

// Package sleep waits for a time or for the end of a context.
//
//	if err := sleep.For(ctx, time.Second); err != nil {
//		return err // ctx has ended
//	}
package sleep

import (
	"context"
	"time"
)

// For waits until d has passed or ctx has ended. Then it returns ctx's cause. It returns nil at once if d is
// not greater than zero.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
