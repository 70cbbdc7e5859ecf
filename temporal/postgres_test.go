// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/session/postgres"
)

// database is a PostgreSQL server of a test's own.
type database struct {
	testing.TB
	dir, dsn string
}

// newDatabase starts one. Where PostgreSQL cannot be had the test is left out, except in CI.
func newDatabase(t testing.TB) *database {
	t.Helper()
	tmp, err := os.MkdirTemp("/tmp", "rpg") // a short path, of which the user of the server may use each part
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	d := &database{TB: t, dir: filepath.Join(tmp, "c")}
	cmd := exec.Command("../.ci/postgres", "start", d.dir, strconv.Itoa(os.Getpid()))
	said := new(strings.Builder)
	cmd.Stderr = said
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 && os.Getenv("REFRAIN_CI") == "" {
		t.Skip(said)
	}
	if err != nil {
		t.Fatalf("start PostgreSQL: %v\n%s", err, said)
	}
	t.Cleanup(func() { d.do("stop") })
	d.dsn = strings.TrimSpace(string(out))
	return d
}

// do has the server taken down, or up again.
func (d *database) do(verb string) {
	d.Helper()
	if out, err := exec.Command("../.ci/postgres", verb, d.dir).CombinedOutput(); err != nil {
		d.Errorf(".ci/postgres %s: %v\n%s", verb, err, out)
	}
}

// open is what a process opens: connections of its own.
func (d *database) open() *postgres.Service {
	d.Helper()
	svc, err := postgres.Open(d.Context(), d.dsn, postgres.Config{})
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = svc.Close() })
	return svc
}

// newPostgresCluster is newCluster with a store in PostgreSQL, and folder for what the server is to know
// when it was killed and starts again; without it that is in memory.
func newPostgresCluster(t testing.TB, folder ...string) (*cluster, *database) {
	t.Helper()
	c := &cluster{TB: t, dir: t.TempDir()}
	c.serve(folder...)
	db := newDatabase(t)
	c.dsn, c.store = db.dsn, db.open()
	c.sup = c.supervisor("somebody")
	return c, db
}
