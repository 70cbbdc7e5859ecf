// SPDX-License-Identifier: Apache-2.0

package live

import (
	"os/exec"
	"syscall"
)

// apart gives a process its own group and no console, so that the process does not end with the console of its parent.
func apart(cmd *exec.Cmd) {
	const detached = 0x00000008
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detached}
}
