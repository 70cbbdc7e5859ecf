// SPDX-License-Identifier: Apache-2.0

// Package clusters has what several verbs need of a Temporal cluster: the flags that name it, the connection, and the start
// of the program that has its SDK.
package clusters

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Flags are the flags that choose a cluster.
type Flags struct {
	On                 bool // --temporal is given
	Address, Namespace string
	Queue              string
	QueueGiven         bool
	Heartbeat          time.Duration
}

// Add adds the flags.
func (f *Flags) Add(fl *pflag.FlagSet, usage string) {
	fl.StringVar(&f.Address, "temporal", "", usage)
	fl.StringVar(&f.Namespace, "namespace", "", "`name` of the Temporal namespace (env TEMPORAL_NAMESPACE; default: default)")
}

// AddTo adds the flags to a command, and lets [Flags.Here] read them before the command runs.
func (f *Flags) AddTo(cmd *cobra.Command, e *term.Env, usage string) {
	f.Add(cmd.Flags(), usage)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return f.Here(cmd.Context(), e, cmd.Flags()) }
}

// AddHeartbeat adds the flag --heartbeat, for commands that start workflows.
func (f *Flags) AddHeartbeat(fl *pflag.FlagSet) {
	term.DurationFlag(fl, &f.Heartbeat, "heartbeat", 10*time.Second, "give a run to another worker when its worker has "+
		"sent no heartbeat for this long")
}

// CheckHeartbeat returns an error if the heartbeat is too short.
func (f *Flags) CheckHeartbeat() error {
	if f.Heartbeat < time.Second {
		return fmt.Errorf("--heartbeat %s: give at least 1s", f.Heartbeat)
	}
	return nil
}

// AddQueue adds the flag --task-queue, for commands that give runs to workers.
func (f *Flags) AddQueue(fl *pflag.FlagSet) {
	fl.StringVar(&f.Queue, "task-queue", DefaultQueue, "`name` of the task queue of the workers")
}

// patience is how long a command waits for a worker before it prints that no worker answers.
const patience = 5 * time.Second

const (
	// DefaultQueue is the task queue of workers and runs without --task-queue.
	DefaultQueue = "refrain"
	// AddressUsage is the usual explanation of --temporal.
	AddressUsage = "`host:port` of the Temporal server whose workers drive the run; the variables TEMPORAL_* set the rest"
)

// Here reads the flags, and hands the command over to the program with the SDK of Temporal if that is needed. Call Here before
// the command reads or writes anything.
func (f *Flags) Here(ctx context.Context, e *term.Env, fl *pflag.FlagSet) error {
	f.On, f.QueueGiven = fl.Changed("temporal"), fl.Changed("task-queue")
	for _, name := range []string{"temporal", "namespace", "task-queue", "heartbeat"} {
		switch {
		case !fl.Changed(name):
		case fl.Lookup(name).Value.String() == "":
			return fmt.Errorf("--%s is empty; give a value, or leave the flag out", name)
		case !f.On:
			return fmt.Errorf("--%s applies only to Temporal; give the address of the Temporal server with --temporal", name)
		}
	}
	if f.On && e.Cluster == nil {
		return HandOver(ctx, e)
	}
	return nil
}

// Driver returns the driver of the runs of the task queue.
func (f *Flags) Driver() string { return runstore.ClusterDriver(f.Queue) }

// Dial connects to the cluster.
func (f *Flags) Dial(ctx context.Context, e *term.Env) (cluster.Client, error) {
	c, err := e.Cluster.Dial(ctx, cluster.Address{HostPort: f.Address, Namespace: f.Namespace,
		Heartbeat: f.Heartbeat, Log: slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	return c, term.Failure(err)
}

// AskFor sends a request to the workers of a run, and prints a notice if no worker answers.
func AskFor(ctx context.Context, e *term.Env, c cluster.Client, id, driver string, r cluster.Request) error {
	late := time.AfterFunc(patience, func() {
		fmt.Fprintf(e.Stderr,
			"No worker has answered yet (%s, at %s). Start a worker with refrain worker, or stop waiting with Ctrl-C.\n",
			runstore.DriverText(driver), c.Where())
	})
	defer late.Stop()
	r.By = lease.Process()
	return c.Ask(ctx, id, driver, r)
}

// Where connects to the cluster, and returns its name.
func (f *Flags) Where(ctx context.Context, e *term.Env) (string, error) {
	c, err := f.Dial(ctx, e)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.Where(), nil
}

// Of connects to the cluster of a run, and returns the connection and the run's driver.
func (f *Flags) Of(ctx context.Context, e *term.Env, sup *supervisor.Supervisor, id string) (cluster.Client,
	string, error) {
	st, err := sup.Status(ctx, id)
	if err != nil {
		return nil, "", term.Failure(err)
	}
	if !InCluster(&st.Run) {
		return nil, "", term.UsageError(fmt.Errorf("no cluster drives run %s; leave out --temporal", id))
	}
	c, err := f.Dial(ctx, e)
	return c, st.Run.Driver, err
}

// InCluster reports whether the workers of a cluster drive a run.
func InCluster(run *mark.Run) bool {
	_, ok := runstore.QueueOf(run.Driver)
	return ok
}

// SharedStore returns an error for a store that only this machine can use.
func SharedStore(e *term.Env, spec string) error {
	kind, _, err := runstore.Spec(e, spec)
	if err != nil {
		return term.UsageError(err)
	}
	if kind != "postgres" {
		return term.UsageError(fmt.Errorf("the workers of a cluster share one store, and only this machine can use a "+
			"store of the kind %s; give --store postgres:DSN, or set REFRAIN_STORE", kind))
	}
	return nil
}

const (
	withTemporal = "refrain-temporal"
	// CallerVersion is the variable in which refrain passes its version to refrain-temporal.
	CallerVersion = "REFRAIN_CALLER_VERSION"
)

// HandOver replaces this process with refrain-temporal, because the SDK of Temporal would make every other command larger and
// slower. It returns only on an error. A program other than refrain gets an error, because refrain-temporal does not have its
// code.
func HandOver(ctx context.Context, e *term.Env) error {
	if e.Code.Name != "" {
		return term.UsageError(fmt.Errorf("the program %s is built without the SDK of Temporal; give command.Main the "+
			"option command.Config{Cluster: cluster.Temporal{}}, from github.com/refrain-dev/refrain/temporal/cluster", e.Code.Name))
	}
	path, err := findTemporal()
	if err != nil {
		return &term.Exit{Code: term.ExitUsage, Err: err}
	}
	env := append(os.Environ(), CallerVersion+"="+versionOf("github.com/refrain-dev/refrain"))
	if err := become(ctx, path, append([]string{withTemporal}, e.Args...), env); err != nil {
		if exit, ok := errors.AsType[*term.Exit](err); ok {
			return exit
		}
		return term.Failure(fmt.Errorf("start %s: %w", path, err))
	}
	return nil
}

// findTemporal finds the program beside this executable, or else on the PATH; never in the current folder.
func findTemporal() (string, error) {
	name := withTemporal
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		beside := []string{filepath.Dir(self)}
		if real, err := filepath.EvalSymlinks(self); err == nil {
			beside = append(beside, filepath.Dir(real))
		}
		for _, dir := range beside {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	if path, err := exec.LookPath(name); err == nil { // LookPath returns an error for a program in the current folder
		return path, nil
	}
	version := versionOf("github.com/refrain-dev/refrain")
	if version == "" || strings.Contains(version, "+") || strings.Count(version, "-") > 1 { // built from a checkout
		version = "latest"
	}
	return "", fmt.Errorf("a Temporal cluster needs the program %s, which is neither beside refrain nor on the PATH. "+
		"Install it from a checkout of refrain with:\n  go install -C temporal ./cmd/%[1]s\n"+
		"or from a release with:\n  go install github.com/refrain-dev/refrain/temporal/cmd/%[1]s@%s", withTemporal, version)
}

// versionOf returns the version of a module in this program; empty if it is unknown, as in a checkout.
func versionOf(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Replace == nil && m.Version != "(devel)" {
			return m.Version
		}
	}
	return ""
}

// OtherVersion returns a warning if the refrain that started this program has another version; empty if the versions are equal,
// or one is unknown.
func OtherVersion(e *term.Env) string {
	theirs, ours := e.Getenv(CallerVersion), versionOf("github.com/refrain-dev/refrain")
	if theirs == "" || ours == "" || theirs == ours {
		return ""
	}
	return fmt.Sprintf("refrain has version %s, and %s has version %s; install one version of both", theirs, withTemporal, ours)
}
