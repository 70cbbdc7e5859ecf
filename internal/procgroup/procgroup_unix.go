// SPDX-License-Identifier: Apache-2.0

//go:build unix

package procgroup

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Lead makes the command the leader of a process group, which is killed with
// it.
func Lead(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return Kill(cmd.Process) }
}

// Kill kills what is left of the group that the process leads or led. If
// the process is gone and the group with it, its number is free; that a new
// group has it a moment later would take a whole round of process numbers.
func Kill(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// Terminate asks the group that the process leads to end.
func Terminate(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGTERM)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
