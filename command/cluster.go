// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/command/cluster"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// clusterFlags say which cluster a command is to use.
type clusterFlags struct {
	on                 bool // --temporal is given
	address, namespace string
	queue              string
	queueGiven         bool
	heartbeat          time.Duration
}

// flags adds the flags.
func (f *clusterFlags) flags(fl *pflag.FlagSet, usage string) {
	fl.StringVar(&f.address, "temporal", "", usage)
	fl.StringVar(&f.namespace, "namespace", "", "`name` of the namespace in Temporal (env TEMPORAL_NAMESPACE; without "+
		"it default)")
}

// heartbeatFlag adds the flag of commands that start workflows.
func (f *clusterFlags) heartbeatFlag(fl *pflag.FlagSet) {
	term.DurationFlag(fl, &f.heartbeat, "heartbeat", 10*time.Second, "give a run to another worker when its worker has "+
		"been silent for this long")
}

func (f *clusterFlags) checkHeartbeat() error {
	if f.heartbeat < time.Second {
		return fmt.Errorf("--heartbeat %s: give at least 1s", f.heartbeat)
	}
	return nil
}

// queueFlag adds the flag of commands that give runs to workers.
func (f *clusterFlags) queueFlag(fl *pflag.FlagSet) {
	fl.StringVar(&f.queue, "task-queue", defaultQueue, "`name` of the task queue of the workers")
}

// patience is how long a worker may take to answer before that is said.
const patience = 5 * time.Second

const (
	defaultQueue = "refrain"
	temporalFlag = "`host:port` of the Temporal server whose workers drive the run; more by the variables TEMPORAL_*"
)

// here reads the flags, and has the program do the rest that has the cluster, if that is needed: before
// anything is read or written.
func (f *clusterFlags) here(ctx context.Context, e *term.Env, fl *pflag.FlagSet) error {
	f.on, f.queueGiven = fl.Changed("temporal"), fl.Changed("task-queue")
	for _, name := range []string{"temporal", "namespace", "task-queue", "heartbeat"} {
		switch {
		case !fl.Changed(name):
		case fl.Lookup(name).Value.String() == "":
			return fmt.Errorf("--%s: give a value", name)
		case !f.on:
			return fmt.Errorf("--%s is for Temporal: give the address of its server with --temporal", name)
		}
	}
	if f.on && e.Cluster == nil {
		return handOver(ctx, e)
	}
	return nil
}

// driver is what the runs of the task queue have.
func (f *clusterFlags) driver() string { return runstore.ClusterDriver(f.queue) }

// dial connects with the cluster.
func (f *clusterFlags) dial(ctx context.Context, e *term.Env) (cluster.Client, error) {
	c, err := e.Cluster.Dial(ctx, cluster.Address{HostPort: f.address, Namespace: f.namespace,
		Heartbeat: f.heartbeat, Log: slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return nil, term.Failure(err)
	}
	return c, nil
}

// askFor asks for something, and says so if no worker answers.
func askFor(ctx context.Context, e *term.Env, c cluster.Client, id, driver string, r cluster.Request) error {
	late := time.AfterFunc(patience, func() {
		fmt.Fprintf(e.Stderr, "No worker answers yet (%s, at %s). Ctrl-C ends the waiting.\n", runstore.DriverText(driver),
			c.Where())
	})
	defer late.Stop()
	r.By = runstore.OwnerName()
	return c.Ask(ctx, id, driver, r)
}

// where connects with the cluster, and names it.
func (f *clusterFlags) where(ctx context.Context, e *term.Env) (string, error) {
	c, err := f.dial(ctx, e)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.Where(), nil
}

// of connects with the cluster of a run, and returns its driver.
func (f *clusterFlags) of(ctx context.Context, e *term.Env, sup *supervisor.Supervisor, id string) (cluster.Client,
	string, error) {
	st, err := sup.Standing(ctx, id)
	if err != nil {
		return nil, "", term.Failure(err)
	}
	if !inCluster(&st.Run) {
		return nil, "", term.UsageError(fmt.Errorf("no cluster drives run %s: leave out --temporal", id))
	}
	c, err := f.dial(ctx, e)
	return c, st.Run.Driver, err
}

// inCluster reports whether the workers of a cluster drive a run.
func inCluster(run *mark.Run) bool {
	_, ok := runstore.QueueOf(run.Driver)
	return ok
}

// sharedStore refuses stores that only one machine has.
func sharedStore(e *term.Env, spec string) error {
	kind, _, err := runstore.Spec(e, spec)
	if err != nil {
		return term.UsageError(err)
	}
	if kind != "postgres" {
		return term.UsageError(fmt.Errorf("the workers of a cluster share one store, and a store of the kind %s is "+
			"only of this machine: give --store postgres:DSN, or set REFRAIN_STORE", kind))
	}
	return nil
}
