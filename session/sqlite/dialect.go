// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"time"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/session/internal/sqlstore"
)

// dialect is SQLite's, for one file.
type dialect struct {
	sqlstore.Dialect
	path string
	file *file
	side *sql.Conn
}

func newDialect(f *file) *dialect {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the name is above
	}
	d := &dialect{path: f.path, file: f}
	d.Dialect = sqlstore.Dialect{
		Name:       "SQLite database " + f.path,
		Migrations: files,
		Tables:     "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
		Begin:      "BEGIN IMMEDIATE",
		Snapshot:   "BEGIN",
		Insert:     "INSERT OR IGNORE",
		Now:        "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
		Classify:   classify,
		Explain:    d.explain,
		Listen:     d.listen,
		Committed:  f.look,
		Closing:    d.closing,
	}
	return d
}

// closing closes the connection at the side, which would else be the last one: one that only reads leaves
// the write-ahead log behind.
func (d *dialect) closing() {
	if d.side != nil {
		d.file.empty(context.Background(), d.side)
		_ = d.side.Close()
	}
}

// code is SQLite's own number for an error, without what it adds; 0 if the error
// is none of its.
func code(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

func classify(err error) sqlstore.Class {
	switch code(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_SCHEMA, lib.SQLITE_PROTOCOL:
		return sqlstore.Retryable
	}
	if errors.Is(err, sqldriver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return sqlstore.ConnectionLost
	}
	return sqlstore.Final
}

func (d *dialect) explain(err error) error {
	hint := ""
	switch code(err) {
	case lib.SQLITE_FULL:
		hint = "the disk is full, or the file's bound is reached: make room and resume; everything that was accepted " +
			"before is kept"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_AUTH:
		hint = "the file cannot be written: see who owns it and its folder, and whether the disk is mounted read-only"
	case lib.SQLITE_CANTOPEN:
		hint = "the file cannot be opened: see who owns it and its folder, and whether the folder is there and can " +
			"be written"
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		hint = "another process has locked the file: end it and try again; on Linux `fuser " + d.path + "` names it"
	case lib.SQLITE_NOTADB:
		hint = "the file is no SQLite database: name another one"
	case lib.SQLITE_CORRUPT:
		hint = "the file is damaged: restore it from a backup, or save what can be read with `sqlite3 " + d.path +
			" .recover`"
	case lib.SQLITE_IOERR:
		hint = "the disk failed to read or to write: look at the system's log, and copy the file to another disk"
	default:
		return err
	}
	return fmt.Errorf("%s (%w)", hint, err)
}

// How often to look for what other processes did: soon again where there was
// something, later where there was not.
const (
	soon = 50 * time.Millisecond
	late = 500 * time.Millisecond
)

// listen looks at a number that SQLite changes whenever another connection has
// committed. That reads no page of the database.
func (d *dialect) listen(ctx context.Context, changed func(int64)) {
	before := int64(-1)
	delay := soon
	for ctx.Err() == nil {
		version := before
		err := d.side.QueryRowContext(context.WithoutCancel(ctx), "PRAGMA data_version").Scan(&version)
		if err == nil && version != before {
			before, delay = version, soon
			changed(0)
		}
		d.file.look()
		_ = sleep.For(ctx, delay)
		delay = min(2*delay, late)
	}
}
