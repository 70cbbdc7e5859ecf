// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
)

// doctorApp is the application of the session that doctor creates and deletes to test that a store can be written.
const doctorApp = "refrain.doctor"

// store checks that runs can be kept in the store. It does not create a missing store, but checks that the store can be
// created.
func (d *doctor) store(ctx context.Context, spec string) {
	kind, where, err := runstore.Spec(d.Env, spec)
	if err != nil {
		d.add("store", "runs", foundBroken, "", "%v", err)
		return
	}
	switch kind {
	case "memory":
		d.add("store", "memory", foundNote, "name another store with --store or REFRAIN_STORE to keep runs",
			"runs end with their process, and cannot be resumed")
	case "sqlite":
		if dir := filepath.Dir(where); filepath.Base(dir) == ".refrain" {
			if what := runstore.OpenToOthers(dir); what != "" {
				d.add("store", dir, foundNote, "chmod 700 "+dir, "%s", what)
			}
		}
		info, err := os.Stat(where)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			d.newStore(where)
		case err != nil:
			d.add("store", "sqlite:"+where, foundBroken, "", "%v", err)
		default:
			bytes := info.Size()
			if wal, err := os.Stat(where + "-wal"); err == nil {
				bytes += wal.Size()
			}
			d.tryStore(ctx, spec, "sqlite:"+where, ", "+brief.Size(bytes))
		}
	default:
		d.tryStore(ctx, spec, postgresName(where), "")
	}
}

// copies says where the copies of workspaces are and how large they are, and which of them belong to no run any more.
func (d *doctor) copies() {
	dir := trust.Copies(d.Getenv)
	if dir == "" {
		return
	}
	all, err := workspace.Copies(dir)
	if err != nil {
		d.add("copies", dir, foundNote, "", "%v", err)
		return
	}
	if len(all) == 0 {
		return
	}
	var total, size int64
	var gone []string
	lost := 0
	for _, c := range all {
		total += c.Size
		if c.Gone {
			size += c.Size
			gone = append(gone, c.Dir)
		}
		if c.Lost {
			lost++
		}
	}
	found, fix, detail := foundOK, "", "copies of the files of "+brief.Count(len(all), "run")+", "+brief.Size(total)
	if len(gone) > 0 {
		found = foundNote
		detail += fmt.Sprintf("; the runs of %d are gone, %s", len(gone), brief.Size(size))
		fix = "rm -r " + shellword.Of(gone[0])
		if more := len(gone) - 1; more > 0 {
			fix += fmt.Sprintf(", and %d more there", more)
		}
	}
	if lost > 0 {
		found = foundNote
		detail += fmt.Sprintf("; the stores of %d cannot be found: they were moved or deleted, or their disk is not mounted", lost)
	}
	d.add("copies", dir, found, fix, "%s", detail)
}

// newStore checks that a database can be created. Its folder is created with it, if the parent folder exists.
func (d *doctor) newStore(where string) {
	dir := filepath.Dir(where)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		dir = filepath.Dir(dir)
	}
	probe, err := os.CreateTemp(dir, ".refrain-doctor-")
	if err != nil {
		fix := "name a database in a writable folder with --store, or run with --store memory"
		if errors.Is(err, fs.ErrNotExist) {
			fix = "create the folder " + dir
		}
		d.add("store", "sqlite:"+where, foundBroken, fix, "does not exist and cannot be created: %v", err)
		return
	}
	err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	if err != nil {
		d.add("store", "sqlite:"+where, foundBroken, "", "%v", err)
		return
	}
	d.add("store", "sqlite:"+where, foundOK, "", "does not exist yet; the first run can create it")
}

// storeTime is the default time limit for a store.
const storeTime = 10 * time.Second

// tryStore writes a session to an existing store, and deletes the session.
func (d *doctor) tryStore(ctx context.Context, spec, name, size string) {
	within := cmp.Or(d.timeout, storeTime)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %s", within))
	defer cancel()
	fix := "check the owner and the permissions of the file, or name another store with --store"
	if !strings.HasPrefix(name, "sqlite:") {
		fix = "check that the server runs and accepts this user, or name another store with --store"
	}
	service, closeService, err := runstore.MakeService(ctx, d.Env, spec)
	if err != nil {
		d.add("store", name, foundBroken, fix, "cannot be opened%s: %v", size, err)
		return
	}
	defer func() {
		if err := closeService(); err != nil {
			d.add("store", name, foundBroken, fix, "cannot be closed: %v", err)
		}
	}()
	runs, err := service.List(ctx, &session.ListRequest{AppName: runstore.AppName, UserID: runstore.UserName})
	if err != nil {
		d.add("store", name, foundBroken, fix, "cannot be read%s: %v", size, err)
		return
	}
	id := "doctor-" + uuid.NewString()
	_, err = service.Create(ctx, &session.CreateRequest{AppName: doctorApp, UserID: runstore.UserName, SessionID: id})
	if err == nil {
		err = service.Delete(ctx, &session.DeleteRequest{AppName: doctorApp, UserID: runstore.UserName, SessionID: id})
	}
	if err != nil {
		d.add("store", name, foundBroken, fix, "can be read but not written%s: %v", size, err)
		return
	}
	d.add("store", name, foundOK, "", "%s%s; can be written", brief.Count(len(runs.Sessions), "run"), size)
}

// postgresName returns the address of a database without its password.
func postgresName(dsn string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" && u.Host != "" {
		u.RawQuery = ""
		return u.Redacted()
	}
	return "postgres"
}

// Temporal checks that a Temporal server answers, and that its workers can share the store. dial connects and returns the name
// of the server.
func (d *doctor) Temporal(address, spec string, dial func() (string, error)) {
	for _, name := range []string{"TEMPORAL_API_KEY", "TEMPORAL_TLS_CLIENT_KEY_DATA"} {
		d.secret(name)
	}
	where, err := dial()
	if err != nil {
		d.add("temporal", address, foundBroken, "check that the server runs, and check TEMPORAL_TLS and TEMPORAL_API_KEY",
			"%v", err)
	} else {
		d.add("temporal", address, foundOK, "", "answers: %s", where)
	}
	if kind, _, err := runstore.Spec(d.Env, spec); err == nil && kind != "postgres" {
		d.add("temporal", "store", foundBroken, "give --store postgres:DSN, or set REFRAIN_STORE",
			"workers share a store in PostgreSQL, but the kind of this store is %s", kind)
	}
}
