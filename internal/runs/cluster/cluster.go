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

	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/stephost"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Cluster connects to Temporal. A program with the SDK of Temporal implements it.
type Cluster interface {
	// Dial connects to a server. It fails within seconds if the server or the namespace does not exist.
	Dial(context.Context, Address) (Client, error)
}

// Address names a cluster. Empty fields are taken from the variables TEMPORAL_* and the configuration file of Temporal's own
// programs.
type Address struct {
	HostPort, Namespace string
	// Heartbeat is how long the worker of a run that this program starts may send no heartbeat; 0 means 10 s.
	Heartbeat time.Duration
	// Log receives the log of the SDK.
	Log *slog.Logger
}

// Client is a connection to a cluster. It names runs by their IDs and their drivers: see mark.Run.
type Client interface {
	// Where returns the name of the server and of the namespace.
	Where() string
	// Start writes a run to the store and starts its workflow. If Start returns an ID and an error, the run is stored.
	Start(ctx context.Context, sup *supervisor.Supervisor, req supervisor.Request) (id string, err error)
	// Ask sends a request about a run to its workers, and waits for a worker. Expect the errors of package supervisor, such as
	// [supervisor.ErrPaused].
	Ask(ctx context.Context, id, driver string, r Request) error
	// Wake makes a worker look up the status of a run; a run without a workflow gets a new workflow.
	Wake(ctx context.Context, id, driver string) error
	// Workflow returns why a run has no workflow that can continue it, such as "terminated"; empty if the run has such a
	// workflow.
	Workflow(ctx context.Context, id, driver string) (string, error)
	// Work drives runs until ctx ends, and then hands the runs over to other workers.
	Work(ctx context.Context, w Worker) error
	// Steps does the steps of a task queue until ctx ends.
	Steps(ctx context.Context, w Steps) error
	Close()
}

// The values of [Request].Do.
const (
	AskPause    = "pause"
	AskPauseNow = "pause_now"
	AskCancel   = "cancel"
	AskAnswer   = "answer"
	AskResume   = "resume"
)

// Request is a request about a run. Program and Continue have the meaning of the fields of [supervisor.ResumeOptions].
type Request struct {
	Do, By, Reason string
	Answer         *mark.Answer
	Program        json.RawMessage
	Continue       bool
}

// Steps configures a worker that does steps.
type Steps struct {
	Queue    string
	Host     stephost.Config
	MaxSteps int
	Grace    time.Duration
}

// Worker configures a worker that drives runs.
type Worker struct {
	Supervisor supervisor.Config // its Driver selects the runs
	Env        program.Env       // environment in which agents are made; it also gets the steps of other machines
	MaxRuns    int
	Grace      time.Duration
	Log        *slog.Logger
	Watch      func(*supervisor.Supervisor) // called with the supervisor that Work has made
}
