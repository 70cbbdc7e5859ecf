// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/refrain-dev/refrain/session"
)

// RemovedError reports that the file of an open database was removed, moved away or replaced. Without
// this check SQLite would continue to write to a file that no path leads to.
type RemovedError struct {
	// Path is where the database was. Replaced says whether another file is there now.
	Path     string
	Replaced bool
	// Kept is the path of a copy of the whole database; empty if the copy failed, and Err says why. Do not
	// move the copy to Path while the old log, Path-wal, exists, because SQLite would apply that log to the
	// copy. A log beside a file that has replaced the database was moved to Path.replaced-N-wal.
	Kept string
	Err  error
}

// Error says what happened and what to do.
func (e *RemovedError) Error() string {
	what := "was removed"
	if e.Replaced {
		what = "was replaced by another file"
	}
	if e.Kept == "" {
		return fmt.Sprintf("the file %s %s while it was in use, and what it held could not be kept: %v", e.Path, what,
			e.Err)
	}
	return fmt.Sprintf("the file %s %s while it was in use; all that it held is kept in %s: open that instead", e.Path,
		what, e.Kept)
}

// Unwrap returns why the copy failed.
func (e *RemovedError) Unwrap() error { return e.Err }

// file is the one that a database is in.
type file struct {
	path string
	info os.FileInfo            // as it was opened
	logs [len(logs)]os.FileInfo // as they were when it was open
	away atomic.Bool            // it was not there when it was looked at last

	rescuing sync.Mutex    // held while the database is copied, and before mu
	gone     *RemovedError // since it was found to be away

	mu    sync.Mutex // guards logs and taken
	taken []string   // the files that takeLogs has moved
}

func newFile(path string) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open SQLite database: %w", err)
	}
	return &file{path: path, info: info}, nil
}

// there reports whether the file is where it was, and if not whether another one is.
// One that cannot be looked at counts as there: SQLite says what is wrong with it.
func (f *file) there() (same, replaced bool) {
	now, err := os.Stat(f.path)
	switch {
	case err == nil:
		same = os.SameFile(now, f.info)
		return same, !same
	case errors.Is(err, fs.ErrNotExist):
		return false, false
	}
	return true, false
}

// AppendEvent implements [session.Service]. It fails with a [*RemovedError] if the file no longer exists.
// The copy contains the first event that was refused for this reason.
func (s *Service) AppendEvent(ctx context.Context, of session.Session, ev *session.Event) error {
	return s.guard(ctx, func() error { return s.store.AppendEvent(ctx, of, ev) })
}

// AppendEvents implements [store.BulkAppender], and fails as AppendEvent does.
func (s *Service) AppendEvents(ctx context.Context, of session.Session, evs []*session.Event) error {
	return s.guard(ctx, func() error { return s.store.AppendEvents(ctx, of, evs) })
}

// Commits returns true: see [store.Committer].
func (s *Service) Commits() bool { return true }

// Start implements [store.Starter], and fails as AppendEvent does.
func (s *Service) Start(ctx context.Context, req *session.StartRequest) (resp *session.StartResponse, err error) {
	err = s.guard(ctx, func() (err error) { resp, err = s.store.Start(ctx, req); return err })
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// StartLog implements [store.LogStarter], and fails as AppendEvent does.
func (s *Service) StartLog(ctx context.Context, req *session.CreateRequest, evs iter.Seq2[*session.Event, error]) error {
	return s.guard(ctx, func() error { return s.store.StartLog(ctx, req, evs) })
}

// guard appends to a file that is still there when the event is on the disk.
func (s *Service) guard(ctx context.Context, add func() error) error {
	var err error
	added := false
	if s.file.away.Load() {
		if same, _ := s.file.there(); same {
			s.file.found()
		}
	}
	if !s.file.away.Load() {
		if err, added = add(), true; err != nil {
			s.file.look() // it may be why
		}
		if !s.file.away.Load() {
			return err
		}
	}
	_, replaced := s.file.there()
	return fmt.Errorf("append event: %w", s.file.rescue(replaced, func() (string, error) {
		if !added {
			err = add()
		}
		if err != nil {
			return "", err
		}
		return s.file.keep(context.WithoutCancel(ctx), s.side)
	}))
}

// look notes whether the file is away. The store looks after each commit, before anybody hears of it.
func (f *file) look() {
	same, replaced := f.there()
	if !same {
		f.away.Store(true)
	}
	if replaced {
		f.takeLogs()
	}
}

// found forgets that the file was away, unless its log was taken away since.
func (f *file) found() {
	f.rescuing.Lock()
	defer f.rescuing.Unlock()
	if f.logsTaken() != nil {
		return
	}
	f.gone = nil
	f.away.Store(false)
}

// rescue keeps what was in the file, once. keep may write to the database, so that the store looks at the file meanwhile.
func (f *file) rescue(replaced bool, keep func() (string, error)) *RemovedError {
	f.rescuing.Lock()
	defer f.rescuing.Unlock()
	if f.gone == nil || f.gone.Kept == "" {
		f.gone = &RemovedError{Path: f.path, Replaced: replaced}
		f.gone.Kept, f.gone.Err = keep()
	}
	return f.gone
}

// keep copies the database to a file beside where it was: the connections that are
// open still have it.
func (f *file) keep(ctx context.Context, conn *sql.Conn) (name string, err error) {
	dir := filepath.Dir(f.path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	var copied *os.File
	for n := 1; copied == nil; n++ {
		name = fmt.Sprintf("%s.kept-%d", f.path, n)
		copied, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil && (!errors.Is(err, fs.ErrExist) || n > 1000) {
			return "", err
		}
	}
	if err := copied.Close(); err != nil {
		return "", err
	}
	if err := vacuumInto(ctx, conn, name); err != nil {
		return "", errors.Join(err, os.Remove(name))
	}
	return name, nil
}

// vacuumInto writes a copy of the database that a connection has open.
func vacuumInto(ctx context.Context, conn *sql.Conn, name string) error {
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only(0)"); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "VACUUM INTO ?", name)
	_, back := conn.ExecContext(ctx, "PRAGMA query_only(1)")
	return errors.Join(err, back)
}

// pathGuard makes connections to one file alone: a new connection would else make an
// empty database where it was, or open another one's.
type pathGuard struct {
	driver.Connector
	file *file
}

// Connect opens a connection if the file is there.
func (g pathGuard) Connect(ctx context.Context) (driver.Conn, error) {
	if same, replaced := g.file.there(); !same || g.file.logsTaken() != nil {
		return nil, &RemovedError{Path: g.file.path, Replaced: replaced, Err: errors.New("no connection has it")}
	}
	c, err := g.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return guardedConn{c.(connection), g.file}, nil // the driver's is one
}
