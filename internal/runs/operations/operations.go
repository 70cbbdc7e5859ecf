// SPDX-License-Identifier: Apache-2.0

// Package operations acts on runs and definitions for people and programs, with one method for
// each verb: start, resume, fork, answer, pause, cancel, list and remove. The protocols of package
// server are built on it.
//
//	runs, err := operations.New(operations.Config{Service: store, AppName: "refrain", UserID: "user", Dir: "loops"})
//	if err != nil {
//		return err
//	}
//	req := &operations.StartRequest{StartArgs: operations.StartArgs{Definition: "story", Input: "about a cat"}}
//	if _, err := runs.Start(ctx, req, "", nil); err != nil {
//		return err
//	}
//	row, err := runs.Row(ctx, req.ID)
//
// Its errors are those of package problem, or [problem.Of] converts them.
//
// A definition that comes from a client is not trusted. It starts no programs and reaches no address
// of the machine or of a private network, unless the config says so.
package operations

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/retention"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Config says where the runs are stored, and what their definitions may do.
type Config struct {
	// Service keeps the runs; see supervisor.Config. Required.
	Service session.Service
	// StoreName names the store; see definition.BuildConfig. Empty means that it is unknown.
	StoreName string
	// Copies is the folder of the trees of workspaces; see definition.BuildConfig.
	Copies string
	// AppName and UserID own the runs. Required.
	AppName, UserID string
	// Dir is the folder of the definitions, in which their commands run too. Required, unless ReadOnly
	// is set, which ignores it.
	Dir string
	// OwnOnly leaves out the definitions of the folder. Only those of Code remain, and none can be
	// added.
	OwnOnly bool
	// ReadOnly shows the runs of the store, without definitions, and refuses changes.
	ReadOnly bool
	// ArtifactService keeps the files of runs, and MemoryService keeps earlier sessions for agents. The defaults keep
	// both in this process's memory.
	ArtifactService artifact.Service
	MemoryService   memory.Service
	// Beside is what goes with a run that is removed, besides these.
	Beside retention.Beside
	// PluginConfig is that of supervisor.Config.
	PluginConfig runner.PluginConfig
	// Leases are those of supervisor.Config.
	supervisor.Leases
	// Getenv reads an environment variable, for models; nil means os.Getenv.
	Getenv func(string) string
	// Code is the Go code that definitions can name, and the definitions that the program has besides those in Dir. Those of
	// clients name Go code only with AllowCommands.
	Code program.Code
	Trust
	Capacity
	Workers
	// Observe, if it is set, changes the config of the supervisor, such as to observe its runs.
	Observe func(*supervisor.Config)
	// Log gets the reports of runs; nil means slog.Default().
	Log *slog.Logger
}

// Trust says what definitions may do, by where they come from.
type Trust struct {
	// Accepts reports whether a person has accepted a definition of Dir with this hash, see program.Program.Hash. An agent, see
	// [Caller], cannot run one that starts programs and is new or has changed since New, unless it is accepted. Nil means that
	// all definitions of Dir are.
	Accepts func(hash string) bool
	// Sandbox limits the commands and coding agents that have no sandbox of their own; nil limits no others.
	Sandbox *taskagent.Sandbox
	// AllowCommands lets definitions that come from clients start programs.
	AllowCommands bool
	// AllowSecretEnv lists environment variables that definitions from clients may use. Their values
	// may sign webhooks, and programs may inherit such variables even if Refrain itself uses them,
	// like the keys of models. Empty allows none.
	AllowSecretEnv []string
	// AllowPrivate lets agents, callbacks and tool servers reach loopback, link-local and private
	// addresses, and lets them use the proxy of the environment.
	AllowPrivate bool
}

// Capacity is how much the runs may be and keep. For all but MaxRuns and LogLimitName, 0 means the default of [Bounds], and a
// negative number no limit.
type Capacity struct {
	// StateLimit is the largest state of a run in bytes, whatever its definition says. LogLimit is the largest log of a
	// run of a client's definition, as supervisor.Program.RunConfig counts it.
	StateLimit, LogLimit int64
	// LogLimitName is what errors call LogLimit, such as a flag that sets it; the default is "its limit".
	LogLimitName string
	// MaxRuns is that of supervisor.Config.
	MaxRuns int
	// Of the runs of clients' definitions at most MaxClientRuns are driven at once, and at most MaxQueued wait for their
	// turn. MaxSessions is the largest number of sessions of ADK's clients in which nothing has run.
	MaxClientRuns, MaxQueued, MaxSessions int
}

// Workers drive the runs that start here, but for those of a client's text and those whose definition has a workspace or
// notifications. The limits and observers of Config do not hold for runs of workers.
type Workers struct {
	// Cluster has the workers; nil if there are none. Driver names them; see supervisor.Config.Driver.
	Cluster cluster.Client
	Driver  string
}

// Runs are the runs of one owner in a store, with the definitions of a folder. They are safe for
// concurrent use.
type Runs struct {
	Config
	// Supervisor drives the runs.
	Supervisor *supervisor.Supervisor
	// Folder holds the definitions.
	Folder *Folder

	outgoing http.RoundTripper // of agents; nil is the default one
	consent  sync.Mutex
	known    map[string]bool // hashes of the definitions that New has found or Accept has got, if Config.Accepts is set
	sessions room
	closing  atomic.Bool
}

// New returns the runs and drives none yet. It fails if the config lacks a required field, or
// if the folder cannot be opened.
func New(cfg Config) (*Runs, error) {
	if cfg.Dir == "" && !cfg.ReadOnly {
		return nil, errors.New("Config.Dir is empty; set it to the folder of the definitions")
	}
	cfg.StateLimit, cfg.LogLimit = BoundOfState.Or(cfg.StateLimit), BoundOfLog.Or(cfg.LogLimit)
	cfg.MaxClientRuns = int(BoundOfClientRuns.Or(int64(cfg.MaxClientRuns)))
	cfg.MaxQueued = int(BoundOfQueue.Or(int64(cfg.MaxQueued)))
	cfg.MaxSessions = int(BoundOfSessions.Or(int64(cfg.MaxSessions)))
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	cfg.Owner = cmp.Or(cfg.Owner, lease.Process())
	if cfg.Dead == nil {
		cfg.Dead = lease.Dead
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.ArtifactService == nil {
		cfg.ArtifactService = artifact.InMemoryService()
	}
	if cfg.MemoryService == nil {
		cfg.MemoryService = memory.InMemoryService()
	}
	var err error
	if cfg.ReadOnly {
		cfg.Dir = ""
	} else if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	r := &Runs{Config: cfg, outgoing: transport(&cfg)}
	if r.Folder, err = OpenFolder(&cfg); err != nil {
		return nil, err
	}
	if cfg.Accepts != nil {
		if r.known, err = r.hashes(); err != nil {
			return nil, err
		}
	}
	drives := supervisor.Config{
		Service: cfg.Service, AppName: cfg.AppName, UserID: cfg.UserID, Build: program.Rebuild(r.env()),
		ArtifactService: cfg.ArtifactService, MemoryService: cfg.MemoryService, PluginConfig: cfg.PluginConfig,
		Leases: cfg.Leases, MaxRuns: cfg.MaxRuns,
		MaxGuests: cfg.MaxClientRuns, MaxQueued: cfg.MaxQueued,
		Guest: func(started mark.RunStarted) bool {
			p, err := program.Decode(started)
			return err == nil && p.Untrusted
		},
		Recovers: func(started mark.RunStarted) bool {
			p, err := program.Decode(started)
			return err == nil && p.Served
		},
	}
	if cfg.Observe != nil {
		cfg.Observe(&drives)
	}
	if r.Supervisor, err = supervisor.New(drives); err != nil {
		return nil, errors.Join(err, r.Folder.Close())
	}
	return r, nil
}

// Closing reports whether [Runs.Close] was called. Then no run can be started.
func (r *Runs) Closing() bool { return r.closing.Load() }

// Close pauses the runs that this process drives; see [supervisor.Supervisor.Close]. Definitions can be
// read until [Folder.Close].
func (r *Runs) Close(ctx context.Context) error {
	r.closing.Store(true)
	return r.Supervisor.Close(ctx)
}

// Key returns the key of a run's session.
func (r *Runs) Key(id string) lease.Key {
	return lease.Key{AppName: r.AppName, UserID: r.UserID, SessionID: id}
}

// Session fetches the session of a run.
func (r *Runs) Session(ctx context.Context, id string) (session.Session, error) {
	return r.fetch(ctx, id, &session.GetRequest{})
}

// Brief fetches the session of a run without its state, with its most recent events; 0 means all.
func (r *Runs) Brief(ctx context.Context, id string, recent int) (*session.View, error) {
	one, err := r.fetch(ctx, id, &session.GetRequest{NumRecentEvents: recent, Brief: true})
	if err != nil {
		return nil, err
	}
	return session.ViewOf(one), nil
}

func (r *Runs) fetch(ctx context.Context, id string, req *session.GetRequest) (session.Session, error) {
	req.AppName, req.UserID, req.SessionID = r.AppName, r.UserID, id
	got, err := r.Service.Get(ctx, req)
	if err != nil {
		return nil, problem.NoRun(id, err)
	}
	return got.Session, nil
}

// Started returns the record with which a run was started.
func (r *Runs) Started(ctx context.Context, id string) (mark.RunStarted, error) {
	one, err := r.Brief(ctx, id, 0)
	if err != nil {
		return mark.RunStarted{}, err
	}
	return supervisor.StartedWith(one)
}

// ReadLog reads the log of a run.
func (r *Runs) ReadLog(ctx context.Context, id string) (*runlog.Run, error) {
	run, err := runlog.Read(ctx, r.Service, r.Key(id))
	return run, problem.NoRun(id, err)
}

// Sessions returns the sessions of all runs, the newest run first, without their logs.
func (r *Runs) Sessions(ctx context.Context) ([]session.Session, error) {
	return runlog.List(ctx, r.Service, r.AppName, r.UserID)
}

// Row returns the row of a run in a list of runs.
func (r *Runs) Row(ctx context.Context, id string) (*runlog.Row, error) {
	one, err := r.Brief(ctx, id, 1)
	if err != nil {
		return nil, err
	}
	return r.RowOf(ctx, one)
}

// RowOf returns the row of a run of [Runs.Sessions].
func (r *Runs) RowOf(ctx context.Context, one session.Session) (*runlog.Row, error) {
	return runlog.RowOf(ctx, r.Service, one, r.Dead)
}

// Pause asks a run to pause at its next step boundary, or with now cuts off the running steps.
func (r *Runs) Pause(ctx context.Context, id, reason string, now bool) error {
	pause := r.Supervisor.Pause
	if now {
		pause = r.Supervisor.PauseNow
	}
	return r.change(ctx, "pause", id, func() error { return problem.NoRun(id, pause(ctx, id, reason)) })
}

// errNoLoop refuses a text for a run that would never get it.
var errNoLoop = problem.New(http.StatusConflict, "no_loop", "The run has no loop", "only an iteration of a loop gets a text; fork the run with a "+
	"changed definition")

// Tell gives a run a text for its next iteration, and reports whether a process drives the run; see [supervisor.Supervisor.Tell]. A run
// without a loop is refused.
func (r *Runs) Tell(ctx context.Context, id, text string) (driven bool, err error) {
	err = r.change(ctx, "tell", id, func() (err error) {
		view, err := r.Brief(ctx, id, 0)
		if err != nil {
			return err
		}
		if !program.HasLoop(view) {
			return errNoLoop
		}
		driven, err = r.Supervisor.Tell(ctx, id, text)
		return problem.NoRun(id, err)
	})
	return driven, err
}

// Cancel ends a run now.
func (r *Runs) Cancel(ctx context.Context, id, reason string) error {
	return r.change(ctx, "cancel", id, func() error {
		err := problem.NoRun(id, r.Supervisor.Cancel(ctx, id, reason))
		if err == nil {
			r.wakeWorkers(ctx, id) // the workflow of a run that waits ends, too
		}
		return err
	})
}

// Remove removes a run that no process drives, with all that is its own; see [retention.Remover.Remove].
func (r *Runs) Remove(ctx context.Context, id string) error {
	return r.change(ctx, remove, id, func() error {
		remover := r.Remover()
		return problem.NoRun(id, remover.Remove(ctx, id))
	})
}

// Remover returns the remover of the runs.
func (r *Runs) Remover() retention.Remover {
	return retention.Remover{Service: r.Service, StoreName: r.StoreName, AppName: r.AppName, UserID: r.UserID, Files: r.ArtifactService,
		Beside: r.Beside, Report: func(text string) { r.Log.Warn(text) }}
}

// env returns the config's part of how agents of runs are made.
func (r *Runs) env() program.Env {
	return program.Env{
		Code: r.Code, Getenv: r.Getenv, Store: r.StoreName, Copies: r.Copies, Sandbox: r.Sandbox,
		Report:    func(err error) { r.Log.Warn("a run reports", "error", credential.Masked(err.Error())) },
		Transport: r.outgoing, StateLimit: r.StateLimit, LogLimit: r.LogLimit, LogLimitName: r.LogLimitName,
		Check: func(p *program.Program, def *definition.Definition) error {
			if !p.Untrusted {
				return nil
			}
			return r.Trusts(p, def, nil)
		},
	}
}
