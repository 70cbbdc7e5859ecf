// SPDX-License-Identifier: Apache-2.0

// Package supervisor manages runs: it starts, pauses, resumes, cancels and forks them, and
// continues those that a crash interrupted. A run outlives the request that started it and the
// process that drives it.
//
//	sup, err := supervisor.New(supervisor.Config{
//		Service: store, // such as that of session/sqlite
//		AppName: "app", UserID: "ana",
//		Build: func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
//			return &supervisor.Program{Agent: root}, nil
//		},
//	})
//	if err != nil {
//		return err
//	}
//	defer sup.Close(context.Background())
//	run, err := sup.Start(ctx, supervisor.Request{Message: genai.NewContentFromText("Go", genai.RoleUser)})
//	if err != nil {
//		return err
//	}
//	end, err := run.Wait(ctx)
//
// A run is the last invocation of a session, and its ID is the session's. One process at a time
// drives a run, and holds the session's lease meanwhile. Other processes write their requests, such
// as a pause, into a second session, the run's mailbox; the driver carries them out.
//
// Every run ends with a mark in its log: [mark.KindRunPaused] if it can continue, [mark.KindRunEnded] if
// it cannot. If a process dies, the log still says that the run is running; its lease expires, and
// [Supervisor.Resume] continues the run, or a supervisor that looks for such runs because
// [Supervisor.Recover] was called.
//
// Something else can decide which process drives a run, such as a cluster: see [Config.Driver]. It reads
// the status of runs from [Supervisor.List] and [Supervisor.Status], continues them with
// [ResumeOptions.After], and moves them with [Run.HandOver].
package supervisor
