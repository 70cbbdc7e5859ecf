// SPDX-License-Identifier: Apache-2.0

//go:build unix

package trust

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// writers returns why others than this user may change a file or a folder; empty if they may not.
func writers(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return err.Error()
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int64(st.Uid) != int64(os.Geteuid()) {
		return fmt.Sprintf("it belongs to another user (%d)", st.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Sprintf("other users may write to it (mode %04o)", info.Mode().Perm())
	}
	return ""
}

// writable reports whether this user may make files in a folder.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }
