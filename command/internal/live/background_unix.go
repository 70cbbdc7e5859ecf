// SPDX-License-Identifier: Apache-2.0

//go:build unix

package live

import (
	"os/exec"
	"syscall"
)

// apart gives a process its own session, so that the process does not end with the terminal.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
