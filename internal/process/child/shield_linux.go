// SPDX-License-Identifier: Apache-2.0

package child

import "golang.org/x/sys/unix"

// Shield makes the environment and the memory of this process unreadable for programs of the same user, such as the
// programs that it starts. Otherwise /proc/PID/environ would show them variables that they do not inherit. Programs
// of root can still read both. Other systems have no such setting.
func Shield() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
