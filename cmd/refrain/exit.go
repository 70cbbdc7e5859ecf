// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/refrain-dev/refrain/definition"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitLimit       = 3
	exitInterrupted = 130
)

// exitError is an error with the code that the process ends with. A nil err has
// been told already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// printError writes an error for people: the problems of a definition with
// their places in the file, anything else on a line.
func printError(w io.Writer, err error) {
	var problems definition.Problems
	if errors.As(err, &problems) {
		problems.Format(w)
		return
	}
	fmt.Fprintln(w, "refrain:", plainText(err.Error()))
}
