// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// disk is a file system of a few hundred kilobytes.
func disk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("refrain", dir, "tmpfs", 0, "size=600k")
	if errors.Is(err, os.ErrPermission) {
		t.Skip("a file system cannot be mounted here; TestFullDatabaseLosesNothing does without")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A disk that is full is an error. With room again the same process goes on.
func TestFullDiskLosesNothing(t *testing.T) {
	dir := disk(t)
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 150<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	svc := open(t, filepath.Join(dir, "refrain.db"), sqlite.Config{})
	s := create(t, svc, "s1")
	n := fill(t, svc, s)
	t.Logf("%d events fit", n)
	wantCount(t, get(t, svc, "s1"), n)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	appendN(t, svc, s, 10)
	wantCount(t, get(t, svc, "s1"), n+10)
}

func TestDiskMountedReadOnlyIsAnError(t *testing.T) {
	dir := disk(t)
	path := filepath.Join(dir, "refrain.db")
	write(t, path, read(t, written(t, 3)))
	if err := syscall.Mount("refrain", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err == nil {
		defer svc.Close()
		err = svc.AppendEvent(t.Context(), get(t, svc, "s1"), &session.Event{})
	}
	if err == nil || !strings.Contains(err.Error(), "see who owns it and its folder") {
		t.Errorf("got %v, want an error that says what to look at", err)
	}
}
