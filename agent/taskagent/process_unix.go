// SPDX-License-Identifier: Apache-2.0

//go:build unix

package taskagent

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// group makes the command the leader of a process group, which is killed with
// it.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
}

// killGroup kills what is left of the group that the process leads or led. If
// the process is gone and the group with it, its number is free; that a new
// group has it a moment later would take a whole round of process numbers.
func killGroup(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
