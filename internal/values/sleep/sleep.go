// SPDX-License-Identifier: Apache-2.0

// Package sleep waits for a time or until a context ends.
//
//	if err := sleep.For(ctx, time.Second); err != nil {
//		return err // ctx has ended
//	}
package sleep

import (
	"context"
	"time"
)

// For waits until d has passed, and returns nil. If ctx ends first, For returns the cause of ctx. It returns nil at
// once if d is not greater than zero.
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
