// SPDX-License-Identifier: Apache-2.0

// Package cluster is the seam between the command and a cluster whose workers drive runs. A program with the SDK of
// Temporal implements [Cluster], and gives it to the command:
//
//	os.Exit(command.Main(command.Config{Cluster: temporalCluster{}}))
package cluster

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/stephost"
	"github.com/refrain-dev/refrain/supervisor"
)

// Cluster is Temporal, for a program that has its SDK linked in.
type Cluster interface {
	// Dial connects with a server, and fails within seconds if there is none, or no such namespace.
	Dial(context.Context, Address) (Client, error)
}

// Address says where a cluster is. What is empty comes from the variables TEMPORAL_* and the
// configuration file of Temporal's own programs.
type Address struct {
	HostPort, Namespace string
	// Heartbeat is how long the worker of a run may be silent that is started here; 0 means 10 s.
	Heartbeat time.Duration
	// Log gets what the SDK has to say.
	Log *slog.Logger
}

// Client is a connection with a cluster. Runs are named by their IDs, and by their drivers: see
// mark.Run.
type Client interface {
	// Where names the server and the namespace.
	Where() string
	// Start writes a run into the store and starts its workflow. If there is an ID beside the error, the run
	// is stored.
	Start(ctx context.Context, sup *supervisor.Supervisor, req supervisor.Request) (id string, err error)
	// Ask asks for something to be done to a run, and waits for a worker. Errors to expect are those of
	// supervisor, such as [supervisor.ErrPaused].
	Ask(ctx context.Context, id, driver string, r Request) error
	// Wake has a run's workers look how it stands; a run without a workflow gets one.
	Wake(ctx context.Context, id, driver string) error
	// Workflow says why a run has no workflow that could go on, such as "terminated"; empty if it has one.
	Workflow(ctx context.Context, id string) (string, error)
	// Work drives runs until ctx ends, and then hands them over.
	Work(ctx context.Context, w Worker) error
	// Steps does the steps of a task queue until ctx ends.
	Steps(ctx context.Context, w Steps) error
	Close()
}

// What a [Request] can ask for.
const (
	AskPause    = "pause"
	AskPauseNow = "pause_now"
	AskCancel   = "cancel"
	AskAnswer   = "answer"
	AskResume   = "resume"
)

// Request asks for something to be done to a run. Program and Continue are those of
// [supervisor.ResumeOptions].
type Request struct {
	Do, By, Reason string
	Answer         *mark.Answer
	Program        json.RawMessage
	Continue       bool
}

// Steps is what a worker does steps with.
type Steps struct {
	Queue    string
	Host     stephost.Config
	MaxSteps int
	Grace    time.Duration
}

// Worker is what a worker drives runs with.
type Worker struct {
	Supervisor supervisor.Config // Driver says which runs
	Env        program.Env       // in which agents are made; steps elsewhere are added
	MaxRuns    int
	Grace      time.Duration
	Log        *slog.Logger
	Watch      func(*supervisor.Supervisor) // is told of the supervisor that was made
}
