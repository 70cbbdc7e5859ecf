// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

// Config describes a supervisor.
type Config struct {
	// Service keeps the sessions. It must also be a lease.Leaser and a store.Watcher, as all
	// services of this project are. Required.
	Service session.Service
	// AppName and UserID own the runs. Required. The mailboxes of runs are sessions of the
	// application AppName + ".mail".
	AppName, UserID string
	// Build makes the agents of a run from what the run was started with. It is called when the run
	// starts and each time it is resumed. Required.
	Build func(ctx context.Context, started mark.RunStarted) (*Program, error)
	// ArtifactService and MemoryService serve all runs whose program does not set them. Fork copies files
	// in ArtifactService. Both are optional.
	ArtifactService artifact.Service
	MemoryService   memory.Service
	// PluginConfig has the plugins of all runs. A run that waits for its turn, or that is submitted, passes the
	// user's message to them before Build is called. Until then the Agent of their context has only the name that
	// the run was started with.
	PluginConfig runner.PluginConfig
	// OnRecovery is called when a later look for interrupted runs has continued runs, or has failed: see
	// [Supervisor.Recover], which returns the result of the first look itself. If the same error occurs in
	// several looks in a row, OnRecovery gets it once. Optional.
	OnRecovery func(runs []*Run, err error)
	// Recovers limits [Supervisor.Recover] to the runs for whose start record it returns true. Nil means
	// all runs.
	Recovers func(mark.RunStarted) bool
	// Driver names the system that decides where runs are driven, such as a cluster that this process works
	// for. Only supervisors of the same driver continue a run that was submitted for it; on others Resume
	// fails with [ErrDriver], and Recover skips the run. Pause, Cancel and Answer work for all runs. Empty
	// means runs without a driver.
	Driver string
	// Leases says how this process holds the runs that it drives.
	Leases
	// MaxRuns is the largest number of runs driven at once; others wait in the order in which they
	// were started. 0 means no limit.
	MaxRuns int
	// Guest reports whether a run is a guest: a run of a definition that a client sent. It gets the run's start
	// record. A nil Guest means that no run is a guest. At most MaxGuests guests are driven at once, and at most
	// MaxQueued guests wait. If more would wait, Start returns [ErrQueueFull], and so does Resume with
	// [ResumeOptions.Refusable]. 0 means no limit.
	Guest                func(mark.RunStarted) bool
	MaxGuests, MaxQueued int
	// OnEvent is called with every event of the runs that this supervisor drives, including pieces of
	// streamed answers, in order within each run. The run waits until it returns. A panic in OnEvent,
	// OnBeginning or OnEnding becomes the run's [Ending].Err, and pauses the run. Optional.
	OnEvent func(id string, ev *session.Event)
	// OnBeginning is called when the supervisor begins to drive a run; taken is false for a new run and
	// true for a resumed one. The run begins after OnBeginning returns, and may still wait for its turn.
	// Optional.
	OnBeginning func(id string, run mark.Run, taken bool)
	// OnEnding is called when the supervisor stops driving a run because it ended, paused or lost its
	// lease; no event reports a lost lease. The run waits until OnEnding returns. Optional.
	OnEnding func(id string, end Ending)
	// Observer is notified of the runs' steps, model calls and tool calls, unless their program has
	// its own observer. Optional.
	Observer observe.Observer
}

// Leases says how a process holds the runs that it drives, so that no other process drives them.
type Leases struct {
	// Owner names this process in the error that another process gets when it wants to drive the
	// same run. The default is [lease.Process].
	Owner string
	// Dead reports whether the owner of a lease is known to have died. The supervisor takes over the run of
	// a dead owner at once, not only when the lease expires. Nil means [lease.Dead].
	Dead func(owner string) bool
	// LeaseTTL is how long a run still belongs to a process that has died, and how long a run
	// continues while the store cannot be reached; 0 means 15 s.
	LeaseTTL time.Duration
	// LeaseRenew is how often the lease is renewed; 0 means three times in LeaseTTL. Frequent renewals
	// let others see that a driver is alive, see [ResumeOptions.TakeOver].
	LeaseRenew time.Duration
}

// Program holds the agents of one run and the services that they need.
type Program struct {
	// Agent is the root of the tree. Required.
	Agent agent.Agent
	// RunConfig configures the run. The supervisor sets its Pause. Its SaveInputBlobsAsArtifacts applies when the
	// message is stored. For a run that waits for its turn, this is before Build is called. So it applies to such a
	// run only if the run was started with [Request.Program].
	RunConfig agent.RunConfig
	// ArtifactService and MemoryService replace the supervisor's.
	ArtifactService artifact.Service
	MemoryService   memory.Service
	// Close is called when the agents are no longer needed. Optional.
	Close func()
}

// close calls Close if it is set. A nil program has nothing to close.
func (p *Program) close() {
	if p != nil && p.Close != nil {
		p.Close()
	}
}

// Request asks for a run.
type Request struct {
	// SessionID is the ID of the run and of its session; if it is empty, the supervisor chooses one. An
	// existing session gets another run if its last run has ended, unless New is true: Start then fails with session.ErrExists.
	SessionID string
	New       bool
	// Message is the user's message.
	Message *genai.Content
	// State changes the session's state together with the message.
	State map[string]any
	// Driver is the driver of the run, see [Config.Driver]. Start refuses a driver that is not the
	// supervisor's own.
	Driver string
	// Started is recorded with the run and given to Build. The supervisor sets its By, Sealed and Session.
	Started mark.RunStarted
	// Program is used instead of calling Build. If the run has to wait for its turn, the supervisor calls Build
	// later all the same, because a waiting run keeps no agents. The supervisor closes Program, even if Start fails.
	// Optional.
	Program *Program
}

// Errors that callers branch on; compare with errors.Is. A [*lease.HeldError] reports that
// another process drives the run.
var (
	// ErrNotFound: there is no such run.
	ErrNotFound = errors.New("run not found")
	// ErrOver: the run has ended.
	ErrOver = errors.New("the run has ended")
	// ErrPaused: the run is paused, and none of its steps is running.
	ErrPaused = errors.New("the run is paused already")
	// ErrUnderWay: this supervisor drives the run, or the session's last run has not ended.
	ErrUnderWay = errors.New("the run is running")
	// ErrNoQuestion: the run asks no such question, or the question has been answered.
	ErrNoQuestion = errors.New("no such question is open")
	// ErrNoHint: a text for [Supervisor.Tell] is empty or too long.
	ErrNoHint = errors.New("the text cannot be used")
	// ErrNoCheckpoint: the run cannot be forked at that place.
	ErrNoCheckpoint = errors.New("no such checkpoint")
	// ErrDriver: the run belongs to a driver that this supervisor does not work for.
	ErrDriver = errors.New("the run has another driver")
	// ErrChanged: somebody has paused, answered or ended the run since [ResumeOptions.After].
	ErrChanged = errors.New("the run was paused, answered or ended meanwhile")
	// ErrQueueFull: too many runs wait for their turn; see Config.MaxQueued.
	ErrQueueFull = errors.New("too many runs wait for their turn")
	// ErrClosed: the supervisor was closed.
	ErrClosed = errors.New("the supervisor is closed")
)

// check reports what is wrong with the config, and sets the defaults of its zero fields.
func (c *Config) check() error {
	_, leases := c.Service.(lease.Leaser)
	_, watches := c.Service.(store.Watcher)
	switch {
	case c.Service == nil:
		return errors.New("supervisor needs a Service; set Config.Service")
	case !leases || !watches:
		return fmt.Errorf("supervisor needs a Service that is a lease.Leaser and a store.Watcher, which %T is not",
			c.Service)
	case c.AppName == "" || c.UserID == "":
		return errors.New("supervisor needs an AppName and a UserID; set both in Config")
	case c.Build == nil:
		return errors.New("supervisor needs a Build function; set Config.Build")
	case c.MaxRuns < 0 || c.MaxGuests < 0 || c.MaxQueued < 0 || c.LeaseTTL < 0 || c.LeaseRenew < 0:
		return fmt.Errorf("supervisor: MaxRuns %d, MaxGuests %d, MaxQueued %d, LeaseTTL %s and LeaseRenew %s must not be negative",
			c.MaxRuns, c.MaxGuests, c.MaxQueued, c.LeaseTTL, c.LeaseRenew)
	}
	c.LeaseTTL = cmp.Or(c.LeaseTTL, 15*time.Second)
	c.LeaseRenew = cmp.Or(c.LeaseRenew, c.LeaseTTL/3)
	if c.LeaseRenew >= c.LeaseTTL {
		return fmt.Errorf("supervisor: LeaseRenew %s must be shorter than LeaseTTL %s", c.LeaseRenew, c.LeaseTTL)
	}
	if c.Owner == "" {
		c.Owner = lease.Process()
	}
	if c.Dead == nil {
		c.Dead = lease.Dead
	}
	return nil
}
