// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"time"

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

// Once changes how long the worker of a step that must not be done twice may be silent.
func (d *Dispatcher) Once(silence time.Duration) { d.once = silence }

// Flows has steps be workflows, as on a server that has no activities of their own.
func (d *Dispatcher) Flows() { d.flows.Store(true) }
