// SPDX-License-Identifier: Apache-2.0

//go:build unix

package hook

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// group makes the command the leader of a process group, which is killed with it.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
}

// killGroup kills what is left of the process and of all that it has started.
func killGroup(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
