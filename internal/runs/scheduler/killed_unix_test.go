// SPDX-License-Identifier: Apache-2.0

//go:build unix

package scheduler_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/internal/runs/scheduler/schedulertest"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

var (
	manySchedules = flag.Int("schedules", longtest.N(4, 50), "schedules of one second in TestKilledServersStartEachTimeOnce")
	forSeconds    = flag.Int("seconds", longtest.N(2, 16), "seconds between the starts of its first and its last clock")
)

func TestMain(m *testing.M) {
	if os.Getenv(schedulertest.Spec) != "" {
		if err := schedulertest.Serve(nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Two servers that are killed again and again start each time once; see [schedulertest.Fleet.Run].
func TestKilledServersStartEachTimeOnce(t *testing.T) {
	longtest.WithoutRace(t)
	kill := func(t *testing.T, spec string) {
		f := &schedulertest.Fleet{T: t, Spec: spec, Schedules: *manySchedules, Seconds: *forSeconds,
			Server: func() *exec.Cmd { return exec.Command(os.Args[0]) }}
		f.Run()
	}
	t.Run("sqlite", func(t *testing.T) { kill(t, filepath.Join(t.TempDir(), "runs.db")) })
	t.Run("postgres", func(t *testing.T) {
		if !longtest.On() {
			t.Skip("a PostgreSQL is started in the long form")
		}
		kill(t, "postgres:"+schedulertest.Postgres(t, "../../../.ci/postgres"))
	})
}
