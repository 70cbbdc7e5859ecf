// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package procgroup

import (
	"os"
	"os/exec"
)

// Lead does nothing: there are no process groups here.
func Lead(*exec.Cmd) {}

// Kill kills the process itself.
func Kill(p *os.Process) error { return p.Kill() }

// Terminate kills the process: there is no way to ask it.
func Terminate(p *os.Process) error { return p.Kill() }
