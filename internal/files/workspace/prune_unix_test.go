// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// A start counts on contents of the store, so it waits while a run is removed, and the removal waits for the start.
func TestNothingIsPrunedBesideAStart(t *testing.T) {
	from, store := amended(t), t.TempDir()
	open(t, workspace.Config{From: from, Store: store, Run: "one"}).Close()
	lock := func(how int) *os.File {
		f, err := os.OpenFile(filepath.Join(store, "prune"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
			t.Fatal(err)
		}
		return f
	}
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	starts := lock(syscall.LOCK_SH)
	if err := workspace.Remove(soon(), store, "one"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run is removed beside a start: %v", err)
	}
	open(t, workspace.Config{From: from, Store: store, Run: "two"}).Close() // two starts at a time
	starts.Close()
	prunes := lock(syscall.LOCK_EX)
	for _, cfg := range []workspace.Config{{Run: "three"}, {Run: "four", ForkOf: "one"}} {
		cfg.From, cfg.Store = from, store
		if _, err := workspace.Open(soon(), cfg); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("run %s starts beside a removal: %v", cfg.Run, err)
		}
	}
	prunes.Close()
	if err := workspace.Remove(t.Context(), store, "one"); err != nil {
		t.Error(err)
	}
}

// The user's repository is read again for the history of the tree only if git has deleted something in it.
func TestAStepDoesNotReadTheHistoryAgain(t *testing.T) {
	from, bin := amended(t), t.TempDir()
	real := strings.TrimSpace(sh(t, from, "command -v git"))
	log := filepath.Join(bin, "log")
	write(t, bin, "git", "#!/bin/sh\necho \"$*\" >>"+log+"\nexec "+real+" \"$@\"\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	tree := open(t, workspace.Config{From: from, Store: t.TempDir()})
	worksOn(t, tree, "package a // one\n")
	worksOn(t, tree, "package a // two\n")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Ensure(t.Context(), snapshot(t, tree)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(got), "--git-path") || strings.Contains(string(got), "cat-file --batch-check") {
		t.Errorf("git runs as %s: %v", got, err)
	}
}
