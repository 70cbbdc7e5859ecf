// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"

	"github.com/refrain-dev/refrain/operations/problem"
)

// Pause asks a run to pause at its next step boundary, or with now cuts off the running steps.
func (r *Runs) Pause(ctx context.Context, id, reason string, now bool) error {
	pause := r.Supervisor.Pause
	if now {
		pause = r.Supervisor.PauseNow
	}
	return problem.NoRun(id, pause(ctx, id, reason))
}

// Cancel ends a run now.
func (r *Runs) Cancel(ctx context.Context, id, reason string) error {
	return problem.NoRun(id, r.Supervisor.Cancel(ctx, id, reason))
}
