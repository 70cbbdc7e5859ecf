// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"math"

	"github.com/refrain-dev/refrain/command/internal/term"
)

// manyFiles is the most files that a command takes; the machine limits them earlier.
const manyFiles = math.MaxInt

// eachFile does one thing with each file. A mistake in one file does not keep the others from being
// read: it is written to stderr, and the process ends with the code of the first. An interrupt ends
// all.
func eachFile(e *term.Env, files []string, do func(file string) error) error {
	if len(files) == 1 {
		return do(files[0])
	}
	var first *term.Exit
	for _, file := range files {
		err := do(file)
		if err == nil {
			continue
		}
		exit, ok := errors.AsType[*term.Exit](err)
		if !ok {
			exit = &term.Exit{Code: term.ExitUsage, Err: err}
		}
		if exit.Code == term.ExitInterrupted {
			return exit
		}
		if exit.Err != nil {
			term.PrintError(e.Stderr, exit.Err)
		}
		if first == nil {
			first = &term.Exit{Code: exit.Code}
		}
	}
	if first == nil {
		return nil
	}
	return first
}
