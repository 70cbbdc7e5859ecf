// SPDX-License-Identifier: Apache-2.0

package child

import "golang.org/x/sys/unix"

// Shield makes the environment and the memory of this process unreadable for programs of the same
// user, as those that it starts: /proc/PID/environ would show them what they do not inherit. Programs
// of root can read both. Where there is no such switch it does nothing.
func Shield() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
