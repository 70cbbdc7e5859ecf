// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// lockWait is how long a tree waits for another process, such as a git command that outlives a
// process that was killed.
const lockWait = 10 * time.Second

// lockFile locks a file for this process, and for the commands that inherit it.
func lockFile(ctx context.Context, name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of a workspace: %w", err)
	}
	for until := time.Now().Add(lockWait); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			err = fmt.Errorf("lock %s: %w", name, err)
		case time.Now().After(until):
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
