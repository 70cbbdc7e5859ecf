// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package workspace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// lockFile opens the lock. Here it does not keep out another process; the lease of the run does.
func lockFile(_ context.Context, name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of a workspace: %w", err)
	}
	return f, nil
}

func lockPruning(ctx context.Context, store string, _ bool) (*os.File, error) {
	return lockFile(ctx, filepath.Join(store, "prune"))
}

func inherit(*exec.Cmd, *os.File) {}

// free returns -1, because this package does not know the space here.
func free(string) int64 { return -1 }
