// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	driver "modernc.org/sqlite"
)

// SQLite finds the write-ahead log of a database by its name alone. If another file is moved to the place of an open
// database, the next process that opens that file applies the log of the earlier one to it, and the process that has
// the earlier one open deletes, when it ends, the log that then has that name. Therefore
//
//   - a log is labeled with the file that it belongs to, and a file beside the log of another one is not opened;
//   - a process that finds its file replaced takes its log and the index of that, which SQLite calls shm, out of the way;
//   - a process whose file is away leaves what has the names of its log and its index alone.
//
// A copy that is written over the file, as by cp, keeps the file's identity: nothing here notices that.

// logs are the files beside a database, by the ends of their names.
var logs = [...]string{"-wal", "-shm"}

// label labels the log of a database that has just been opened with the file that it belongs to.
func (f *file) label() {
	f.mu.Lock()
	for i, end := range logs {
		f.logs[i], _ = os.Stat(f.path + end)
	}
	f.mu.Unlock()
	own, log := identity(f.path), identity(f.path+logs[0])
	if same, _ := f.there(); same && own != "" && log != "" {
		_ = setLabel(f.path+logs[0], own+" "+log) // where the disk has no labels, nobody is warned
	}
}

// checkLog returns an error if the log beside a database that is not open yet is the log of another file. A log without a
// label, or one that was copied together with its label, may be of any file.
func (f *file) checkLog() error {
	log, err := os.Stat(f.path + logs[0])
	if err != nil || log.Size() == 0 {
		return nil
	}
	of, itself := getLabel(f.path + logs[0])
	if of == "" || itself != identity(f.path+logs[0]) || of == identity(f.path) {
		return nil
	}
	name := filepath.Base(f.path)
	return fmt.Errorf("open SQLite database %s: the file was replaced, and %s-wal is the log of the file that was here before; SQLite would "+
		"apply it and destroy this file. End the process that still uses the earlier file, which takes its log away (on Linux "+
		"`fuser %s-wal` names it). If there is none, move %s-wal and %s-shm away", f.path, name, f.path, name, name)
}

// takeLogs takes the log and its index out of the way of the file that has replaced this one. They get names under
// which SQLite looks for neither.
func (f *file) takeLogs() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, end := range logs {
		now, err := os.Stat(f.path + end)
		if err != nil || f.logs[i] == nil || !os.SameFile(now, f.logs[i]) {
			continue
		}
		for n := 1; n <= 1000; n++ {
			to := fmt.Sprintf("%s.replaced-%d%s", f.path, n, end)
			if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
				if os.Rename(f.path+end, to) == nil {
					f.taken = append(f.taken, to)
				}
				break
			}
		}
	}
}

// logsTaken returns the names that takeLogs has given. Nothing can use the file again after that, even if it comes back.
func (f *file) logsTaken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken
}

// empty writes the log into the file that it belongs to, wherever that is now, and removes what takeLogs has moved if
// nothing is left in it: a process that still uses the log keeps it. It is for the close of a database whose file is
// replaced.
func (f *file) empty(ctx context.Context, conn *sql.Conn) {
	f.look()
	taken := f.logsTaken()
	if taken == nil {
		return
	}
	_, _ = conn.ExecContext(ctx, "PRAGMA query_only(0)")
	_, _ = conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	if info, err := os.Stat(taken[0]); err == nil && info.Size() == 0 {
		for _, name := range taken {
			_ = os.Remove(name)
		}
	}
}

// connection is what database/sql uses of a connection of the driver, and what closing it needs.
type connection interface {
	sqldriver.Conn
	sqldriver.Pinger
	sqldriver.SessionResetter
	sqldriver.Validator
	sqldriver.ConnBeginTx
	sqldriver.ConnPrepareContext
	sqldriver.ExecerContext
	sqldriver.QueryerContext
	driver.FileControl
}

// guardedConn is a connection to a file that may be away when it is closed.
type guardedConn struct {
	connection
	file *file
}

// Close closes the connection. If the file is away, then the log and the index that now have its names may belong to
// another file, and stay.
func (c guardedConn) Close() error {
	if c.file.look(); c.file.away.Load() {
		_, _ = c.FileControlPersistWAL("main", 1)
	}
	return c.connection.Close()
}
