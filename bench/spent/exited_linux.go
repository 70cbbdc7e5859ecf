// SPDX-License-Identifier: Apache-2.0

package main

import "golang.org/x/sys/unix"

// waitExited waits until a child has ended, and leaves it to be waited for.
func waitExited(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}
