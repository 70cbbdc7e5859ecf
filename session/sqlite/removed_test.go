// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sqlite_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// G7, G9: a database whose file is removed, moved or replaced under a run takes nothing
// more, and what it held is kept: SQLite would write on to where nobody finds it.
func TestRemovedFile(t *testing.T) {
	for _, tt := range []struct {
		name   string
		remove func(t *testing.T, path string)
		other  string // what is in its place
	}{
		{"removed", func(t *testing.T, path string) { must(t, os.Remove(path)) }, ""},
		{"removed with its log", func(t *testing.T, path string) {
			for _, end := range []string{"", "-wal", "-shm"} {
				must(t, os.Remove(path+end))
			}
		}, ""},
		{"removed with its folder", func(t *testing.T, path string) { must(t, os.RemoveAll(filepath.Dir(path))) }, ""},
		{"replaced", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.WriteFile(path, []byte("somebody else's"), 0o600))
		}, "somebody else's"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store", "runs.db")
			svc := open(t, path, sqlite.Config{})
			s := create(t, svc, "s")
			appendN(t, svc, s, 3)
			tt.remove(t, path)

			err := svc.AppendEvent(t.Context(), s, numbered(4))
			gone, ok := errors.AsType[*sqlite.RemovedError](err)
			if !ok || gone.Kept == "" || gone.Replaced != (tt.other != "") {
				t.Fatalf("append: %v", err)
			}
			again := svc.AppendEvent(t.Context(), s, numbered(4))
			if twice, _ := errors.AsType[*sqlite.RemovedError](again); twice != gone {
				t.Errorf("append again: %v", again)
			}
			wantCount(t, get(t, svc, "s"), 4) // what is open can be read
			if err := svc.Close(); err != nil {
				t.Error(err)
			}
			got, err := os.ReadFile(path)
			if tt.other == "" && !errors.Is(err, os.ErrNotExist) || !bytes.Equal(got, []byte(tt.other)) {
				t.Errorf("in its place: %q, %v", got, err)
			}

			wantCount(t, get(t, open(t, gone.Kept, sqlite.Config{}), "s"), 4)
		})
	}
}

// A file that is moved away and back is the same; what came meanwhile is in the copy.
func TestMovedFileComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	svc := open(t, path, sqlite.Config{})
	s := create(t, svc, "s")
	appendN(t, svc, s, 1)
	must(t, os.Rename(path, path+".away"))
	if _, ok := errors.AsType[*sqlite.RemovedError](svc.AppendEvent(t.Context(), s, numbered(2))); !ok {
		t.Error("it was taken while the file was away")
	}
	must(t, os.Rename(path+".away", path))
	appendN(t, svc, s, 1)
	wantCount(t, get(t, svc, "s"), 3)

	must(t, os.Remove(path))
	gone, ok := errors.AsType[*sqlite.RemovedError](svc.AppendEvent(t.Context(), s, numbered(4)))
	if !ok {
		t.Fatal("it was taken when the file was removed")
	}
	wantCount(t, get(t, open(t, gone.Kept, sqlite.Config{}), "s"), 4)
}

// Appends that are committed together are refused together.
func TestRemovedFileUnderManyRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	svc := open(t, path, sqlite.Config{})
	var sessions []session.Session
	for i := range 20 {
		sessions = append(sessions, create(t, svc, "s"+strconv.Itoa(i)))
	}
	must(t, os.Remove(path))
	var all sync.WaitGroup
	for _, s := range sessions {
		all.Go(func() {
			gone, ok := errors.AsType[*sqlite.RemovedError](svc.AppendEvent(t.Context(), s, numbered(1)))
			if !ok || gone.Kept == "" {
				t.Errorf("append to %s: %v", s.ID(), gone)
			}
		})
	}
	all.Wait()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
