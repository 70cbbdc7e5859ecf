// SPDX-License-Identifier: Apache-2.0

// Package supervisor owns runs: it starts them, pauses, resumes, cancels and
// forks them, and takes up those that a crash has left behind. A run outlives
// whoever asked for it, and the process that drives it.
//
//	sup, err := supervisor.New(supervisor.Config{
//		Service: store, // such as that of session/sqlite
//		AppName: "app", UserID: "ana",
//		Build: func(context.Context, session.RunStarted) (*supervisor.Program, error) {
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
// A run is the last invocation of a session, and its ID is the session's. One
// process drives a run at a time: it holds the session's lease as long as it does.
// What others want of the run, such as a pause, they write into a session beside
// it, its mailbox, and the driver does it.
//
// Every run ends with a mark in its log: [session.MarkRunPaused] if it can go on,
// [session.MarkRunEnded] if it cannot. Only a process that dies leaves a run that
// is running by its log; its lease ends by itself, and [Supervisor.Recover] or
// [Supervisor.Resume] takes the run up.
package supervisor
