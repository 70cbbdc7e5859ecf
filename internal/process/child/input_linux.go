// SPDX-License-Identifier: Apache-2.0

package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// nameless returns a file in memory, or a temporary file if a sandbox forbids files in memory.
func nameless() (f *os.File, remove func(), err error) {
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return temporary()
	}
	return os.NewFile(uintptr(fd), "memory"), func() {}, nil
}
