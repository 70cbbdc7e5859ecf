// SPDX-License-Identifier: Apache-2.0

// Package sqlite keeps sessions in an SQLite database: one file, no server, no
// cgo. Several processes on one machine may use the file at once.
//
//	svc, err := sqlite.Open(ctx, ".refrain/refrain.db", sqlite.Config{})
//	if err != nil {
//		return err
//	}
//	defer svc.Close()
//	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: svc})
//
// An event that AppendEvent accepted is on the disk, and survives a crash of the process and a power
// cut. Appends at the same time share one write to the disk. The file must be on a disk of this machine,
// because SQLite's write-ahead log does not work on a network file system.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	driver "modernc.org/sqlite"

	"github.com/refrain-dev/refrain/session/internal/sqlstore"
)

// Config says how to use the database. Its zero value has the defaults.
type Config struct {
	// Relaxed lets an append return before the event is on the disk. It is faster. A crash of the process
	// still loses nothing; a power cut may lose the last events, so that a resumed run repeats the work
	// that they recorded. A power cut cannot damage the database.
	Relaxed bool
	// Wait is how long a call waits for a database that another process has locked; 0 means 30
	// s.
	Wait time.Duration
	// MaxSize is about the largest size of the database in bytes. An append that does not fit
	// fails as on a full disk. 0 sets no limit.
	MaxSize int64
	// ReadOnly opens an existing database without writing to it or to its folder, as on a disk that is
	// mounted read-only. Every call that writes fails. While another process writes to the database, its
	// write-ahead log has to be readable too.
	ReadOnly bool
}

// Service is a session.Service, lease.Leaser and store.Watcher in an SQLite database. It is
// safe for concurrent use. Call Close when it is no longer needed.
type Service struct {
	*store
	file     *file
	side     *sql.Conn
	readOnly bool
}

// ReadOnly reports whether the database was opened read-only: see Config.ReadOnly.
func (s *Service) ReadOnly() bool { return s.readOnly }

type store = sqlstore.Store

//go:embed migrations
var migrations embed.FS

// readers is how many reads may be under way at once. One connection more, at the side, looks
// for what other processes did, and is there still when the file is not.
const readers = 4

// Open opens the database at path. It creates the file and its folder if they do not exist, but no folder
// above that. Only the user that created the file may read it. Open updates tables of an older version, and
// refuses those of a newer one.
//
// Open returns an error that says what to do for a file that is not an SQLite database, belongs to another
// program, is damaged, cannot be written, or stays locked for Config.Wait. On Linux it does so too for a file that was
// moved to the place of an earlier one whose write-ahead log is still there.
func Open(ctx context.Context, path string, cfg Config) (*Service, error) {
	if path == "" || path == ":memory:" {
		return nil, fmt.Errorf("open SQLite database: no file is named; session.InMemoryService needs none")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open SQLite database: %w", err)
	}
	if !cfg.ReadOnly {
		if err := prepareFile(path); err != nil {
			return nil, err
		}
	}
	f, err := newFile(path)
	if err != nil {
		return nil, err
	}
	if err := f.checkLog(); err != nil {
		return nil, err
	}
	d := newDialect(f)
	if cfg.ReadOnly {
		return openReadOnly(ctx, f, d, cfg)
	}
	writer, err := open(f, cfg, false)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.Name, err)
	}
	reader, err := open(f, cfg, true)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", d.Name, err), writer.Close())
	}
	s, err := sqlstore.New(ctx, sqlstore.Config{
		Dialect: &d.Dialect, Reader: reader, Writer: writer,
		Readers: readers, Writers: 1, Batch: 256, Wait: cmp.Or(cfg.Wait, 30*time.Second),
	})
	if err != nil {
		return nil, err
	}
	var mode string
	if d.side, err = reader.Conn(ctx); err == nil {
		err = d.side.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
	}
	if err != nil || mode != "wal" {
		return nil, errors.Join(fmt.Errorf("open %s: its disk does not support a write-ahead log (journal mode %q): "+
			"move it to a local disk", d.Name, mode), err, s.Close())
	}
	f.label()
	return &Service{s, f, d.side, cfg.ReadOnly}, nil
}

func openReadOnly(ctx context.Context, f *file, d *dialect, cfg Config) (*Service, error) {
	reader, err := open(f, cfg, true)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.Name, err)
	}
	s, err := sqlstore.New(ctx, sqlstore.Config{
		Dialect: &d.Dialect, Reader: reader, Writer: reader, ReadOnly: true,
		Readers: readers - 1, Writers: 1, Batch: 1, Wait: cmp.Or(cfg.Wait, 30*time.Second),
	})
	if err != nil {
		return nil, err
	}
	if d.side, err = reader.Conn(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", d.Name, err), s.Close())
	}
	return &Service{s, f, d.side, cfg.ReadOnly}, nil
}

// prepareFile makes the database's folder and an empty file that others cannot
// read.
func prepareFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("open SQLite database %s: it is a folder; name a file in it", path)
	case err == nil && info.Size() == 0:
		// SQLite would take it for a new one, and throw the log away.
		if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
			return fmt.Errorf("open SQLite database %s: the file is empty but %s-wal is not, so it was truncated; "+
				"restore it from a backup, or move both away to start again", path, filepath.Base(path))
		}
		return nil
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open SQLite database: %w", err)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("open SQLite database %s: make its folder: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open SQLite database: %w; its folder must be one that you can write to", err)
	}
	return f.Close()
}

// busy is how long SQLite itself waits for a lock. The store tries more often
// than SQLite does after a while, so that of several processes that write all
// the time each gets its turn.
const busy = 20 * time.Millisecond

func open(f *file, cfg Config, reading bool) (*sql.DB, error) {
	q := url.Values{"_error_rc": {"1"}, "mode": {"rw"}} // it is there
	if cfg.ReadOnly {
		q.Set("mode", "ro")
		if _, err := os.Stat(f.path + "-wal"); errors.Is(err, fs.ErrNotExist) {
			q.Set("immutable", "1") // there is no log to read, and none can be made
		}
	}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()))
	if reading {
		q.Add("_pragma", "query_only(1)")
	} else {
		q.Add("_pragma", "journal_mode(WAL)")
		if cfg.Relaxed {
			q.Add("_pragma", "synchronous(NORMAL)")
		} else {
			q.Add("_pragma", "synchronous(FULL)")
			q.Add("_pragma", "fullfsync(1)") // a Mac's disk would else keep it for itself
		}
		if cfg.MaxSize > 0 {
			q.Add("_pragma", fmt.Sprintf("max_page_count(%d)", cfg.MaxSize/4096))
		}
	}
	slashed := filepath.ToSlash(f.path)
	if slashed[0] != '/' { // it begins with a drive
		slashed = "/" + slashed
	}
	name := url.URL{Scheme: "file", OmitHost: true, Path: slashed, RawQuery: q.Encode()}
	connector, err := driver.NewConnector(name.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(pathGuard{connector, f})
	n := 1
	if reading {
		n = readers + 1
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}
