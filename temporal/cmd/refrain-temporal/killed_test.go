// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	seam "github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/scheduler/schedulertest"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/temporal"
	"github.com/refrain-dev/refrain/temporal/cluster"
)

var (
	manySchedules = flag.Int("schedules", longtest.N(2, 200), "schedules of one second in TestKilledServersAndWorkersStartEachTimeOnce")
	forSeconds    = flag.Int("seconds", longtest.N(2, 60), "seconds between the starts of its first and its last clock")
)

// serveClocked is a server with a clock of the test, which gives its runs to a cluster.
func serveClocked() {
	err := schedulertest.Serve(func(cfg *operations.Config) (err error) {
		cfg.Driver = temporal.Driver(os.Getenv("QUEUE"))
		cfg.Cluster, err = cluster.Temporal{}.Dial(context.Background(), seam.Address{Log: slog.New(slog.DiscardHandler)})
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Two servers that give the runs of their schedules to a worker, and the worker, are killed again and again. Each time starts
// once; see [schedulertest.Fleet.Run].
func TestKilledServersAndWorkersStartEachTimeOnce(t *testing.T) {
	longtest.WithoutRace(t)
	address, namespace := temporalServer(t)
	dsn := "postgres:" + postgresServer(t)
	command := func(name string, args ...string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := exec.Command(name, args...)
			cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+address, "TEMPORAL_NAMESPACE="+namespace, "QUEUE=clocked")
			return cmd
		}
	}
	f := &schedulertest.Fleet{T: t, Spec: dsn, Schedules: *manySchedules, Seconds: *forSeconds, Server: command("clocked-server"),
		Worker: command("refrain-temporal", "worker", "--store", dsn, "--task-queue", "clocked", "--heartbeat", "2s", "--max-runs", "200")}
	f.Run()
}
