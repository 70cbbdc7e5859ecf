// SPDX-License-Identifier: Apache-2.0

//go:build unix

package clusters

import (
	"context"
	"syscall"
)

// become replaces this process with another program. It returns only an error.
func become(_ context.Context, path string, args, env []string) error {
	return syscall.Exec(path, args, env)
}
