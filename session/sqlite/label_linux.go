// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// labelName is the extended attribute of a log that says which file the log belongs to. It stays with the log when
// that is moved.
const labelName = "user.refrain.log-of"

// identity returns what distinguishes a file from others in its folder, also from a later one with its inode; empty if
// that is not known.
func identity(path string) string {
	var st unix.Statx_t
	const want = unix.STATX_INO | unix.STATX_BTIME
	if unix.Statx(unix.AT_FDCWD, path, 0, want, &st) != nil || st.Mask&want != want {
		return ""
	}
	return fmt.Sprintf("%d/%d.%09d", st.Ino, st.Btime.Sec, st.Btime.Nsec)
}

func setLabel(path, label string) error { return unix.Setxattr(path, labelName, []byte(label), 0) }

// getLabel returns the identities of the file that a log belongs to, and of the log that was labeled.
func getLabel(path string) (of, itself string) {
	buf := make([]byte, 200)
	n, err := unix.Getxattr(path, labelName, buf)
	if err != nil {
		return "", ""
	}
	of, itself, _ = strings.Cut(string(buf[:n]), " ")
	return of, itself
}
