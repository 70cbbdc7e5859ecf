// SPDX-License-Identifier: Apache-2.0

// Package temporal distributes runs of Refrain over a Temporal cluster. Temporal decides which worker
// drives a run and when, and the log records the progress of the run.
//
// A run has a workflow, whose ID is the run's. The workflow executes an activity, Drive, that opens the
// run in the store, takes its lease and resumes it by replay, with the same code as any other process. If
// a worker dies, Temporal gives the activity to another worker, which continues at the first step that
// has not finished. A run that is paused or waits for a person occupies no worker.
//
// All workers need the same store, such as that of session/postgres:
//
//	w, err := temporal.NewWorker(c, temporal.Config{
//		Supervisor: supervisor.Config{Service: store, AppName: "refrain", UserID: "user", Build: build},
//	})
//	if err != nil {
//		return err
//	}
//	return w.Run(ctx) // until ctx ends; then it hands its runs over
//
// [Start] starts a run, and [Ask] pauses, cancels, answers and resumes one. Everything else reads the
// runs from the store and does not need Temporal. A supervisor in another process can list, watch, pause,
// cancel and answer these runs too. The workers find in the log what it has written; see [Config.Look].
//
// Other workers than the one that drives a run can run steps of its definition: a [Dispatcher] sends the
// steps to a task queue, and the worker of [NewSteps] runs them. Give it to the function that makes the
// agents:
//
//	build := program.Rebuild(program.Env{Elsewhere: temporal.NewDispatcher(c, 0)})
//
// This package is a module of its own, so that programs without Temporal do not depend on its SDK.
package temporal
