// SPDX-License-Identifier: Apache-2.0

// Package temporal moves runs of Refrain over a Temporal cluster: Temporal says which worker
// drives a run and when, and the log says how far the run is.
//
// A run has a workflow, whose ID is the run's. The workflow executes an activity, Drive, that opens
// the run in the store, takes its lease and resumes it by replay, with the same code as everywhere. If
// a worker dies, Temporal gives the activity to another worker, which goes on at the first step that
// has not finished. A run that is paused or waits for a person holds no worker.
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
// [Start] starts a run, and [Ask] pauses, cancels, answers and resumes one. Everything else that looks
// at runs reads the store, and needs no Temporal: a supervisor elsewhere can list, watch, pause,
// cancel and answer these runs too. What it writes into the log, the workers find there: see
// [Config.Look].
//
// Steps of a definition can be done by other workers than the one that drives the run: [NewSteps] does
// those of a task queue, and a [Dispatcher] has them done. Give it to the function that makes the agents:
//
//	build := program.Rebuild(program.Env{Elsewhere: temporal.NewDispatcher(c, 0)})
//
// This package is a module of its own, so that those who do not need Temporal do not get its SDK.
package temporal
