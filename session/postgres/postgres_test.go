// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/postgres"
	"github.com/refrain-dev/refrain/session/sessiontest"
	"github.com/refrain-dev/refrain/session/sessiontestsuite"
)

// cluster is a server of these tests' own.
var cluster struct{ dir, dsn, missing string }

const script = "../../.ci/postgres"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	tmp, err := os.MkdirTemp("", "rpg")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil { // the server is another user
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cluster.dir = filepath.Join(tmp, "c")
	cmd := exec.Command(script, "start", cluster.dir, strconv.Itoa(os.Getpid()))
	said := new(strings.Builder)
	cmd.Stderr = said
	out, err := cmd.Output()
	if err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != 3 || os.Getenv("REFRAIN_CI") != "" {
			fmt.Fprintf(os.Stderr, "%s start: %v\n%s", script, err, said)
			return 1
		}
		cluster.missing = said.String()
		fmt.Fprintf(os.Stderr, "\n*** NOTHING HERE IS TESTED: %s\n\n", said)
		return m.Run()
	}
	defer func() {
		if out, err := exec.Command(script, "stop", cluster.dir).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s stop: %v\n%s", script, err, out)
		}
	}()
	cluster.dsn = strings.TrimSpace(string(out))
	code := m.Run()
	if err := leaktest.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

var schemas atomic.Int64

// open opens a schema of the test's own.
func open(t testing.TB, cfg postgres.Config) *postgres.Service {
	t.Helper()
	if cluster.missing != "" {
		t.Skip(cluster.missing)
	}
	if cfg.Schema == "" {
		cfg.Schema = fmt.Sprintf("Test %d", schemas.Add(1)) // needs quotes
	}
	svc, err := postgres.Open(t.Context(), cluster.dsn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
	})
	return svc
}

// newService opens a service for a subtest of a suite. These run beside one another:
// most of their time they wait for the server.
func newService(t *testing.T) session.Service {
	t.Parallel()
	return open(t, postgres.Config{})
}

// A18, A20, D1, D8, D9, D15, E4
func TestService(t *testing.T) { sessiontest.TestService(t, newService) }

func TestServiceAsInADK(t *testing.T) {
	sessiontestsuite.RunServiceTests(t, sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true}, newService)
}

func TestLeaser(t *testing.T) { sessiontest.TestLeaser(t, newService) }

func TestWatcher(t *testing.T) { sessiontest.TestWatcher(t, newService) }

// Two services in one schema are what two processes are.
func TestShared(t *testing.T) {
	sessiontest.TestShared(t, func(t *testing.T) (one, other session.Service) {
		t.Parallel()
		cfg := postgres.Config{Schema: fmt.Sprintf("shared %d", schemas.Add(1))}
		return open(t, cfg), open(t, cfg)
	})
}
