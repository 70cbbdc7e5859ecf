// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package hook

import (
	"os"
	"os/exec"
)

// group does nothing: there are no process groups here.
func group(*exec.Cmd) {}

// killGroup kills the process itself.
func killGroup(p *os.Process) error { return p.Kill() }
