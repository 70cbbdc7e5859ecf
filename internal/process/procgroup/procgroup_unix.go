// SPDX-License-Identifier: Apache-2.0

//go:build unix

package procgroup

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Lead makes the command the leader of a new process group, which [Kill] kills as a whole.
func Lead(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return Kill(cmd.Process) }
}

// Kill kills the processes that are left in the group that the process leads or led. If the whole group is gone, its
// number is free. A new group is very unlikely to have this number, because process numbers are reused only after all
// others.
func Kill(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// Terminate sends SIGTERM to the group that the process leads.
func Terminate(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGTERM)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
