// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
)

// Register registers the activities of a worker where a test executes them.
func (w *Worker) Register(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(w.drive, activity.RegisterOptions{Name: activityDrive})
	r.RegisterActivityWithOptions(w.ask, activity.RegisterOptions{Name: activityAsk})
}

// Stop has the worker stop, as Run does it when its context ends.
func (w *Worker) Stop() { close(w.stopping) }
