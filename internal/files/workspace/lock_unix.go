// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// lockWait is how long a tree waits for another process, such as a git command that outlives a
// process that was killed.
const lockWait = 10 * time.Second

// lockFile locks a file for this process, and for the commands that inherit it.
func lockFile(ctx context.Context, name string) (*os.File, error) {
	return lockAs(ctx, name, syscall.LOCK_EX, lockWait)
}

// lockPruning locks the file that keeps the pruning of a store apart from what counts on its contents. Any number of trees count at a
// time, and none while a run is removed. It waits until ctx ends.
func lockPruning(ctx context.Context, store string, prunes bool) (*os.File, error) {
	how := syscall.LOCK_SH
	if prunes {
		how = syscall.LOCK_EX
	}
	return lockAs(ctx, filepath.Join(store, "prune"), how, math.MaxInt64)
}

// lockAs takes a lock of a kind of flock, and waits for it.
func lockAs(ctx context.Context, name string, how int, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of a workspace: %w", err)
	}
	for begun := time.Now(); ; {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			err = fmt.Errorf("lock %s: %w", name, err)
		case time.Since(begun) > wait:
			err = fmt.Errorf("lock %s: %w", name, ErrLocked)
		default:
			err = nil
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// inherit has a command keep the lock as long as it runs.
func inherit(cmd *exec.Cmd, lock *os.File) {
	if lock != nil {
		cmd.ExtraFiles = []*os.File{lock}
	}
}

// free returns the bytes that the disk of a folder has left, -1 if that is unknown.
func free(folder string) int64 {
	var st syscall.Statfs_t
	if err := syscall.Statfs(folder, &st); err != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize)
}
