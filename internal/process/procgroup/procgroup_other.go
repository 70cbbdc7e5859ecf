// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package procgroup

import (
	"os"
	"os/exec"
)

// Lead does nothing, because this system has no process groups.
func Lead(*exec.Cmd) {}

// Kill kills the process itself.
func Kill(p *os.Process) error { return p.Kill() }

// Terminate kills the process, because this system has no signal that asks a process to end.
func Terminate(p *os.Process) error { return p.Kill() }
