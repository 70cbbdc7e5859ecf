// SPDX-License-Identifier: Apache-2.0

package term

import (
	"errors"
	"fmt"
	"io"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/supervisor"
)

// The exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitLimit       = 3
	ExitWaits       = 4 // the run is paused, or waits for a person
	ExitInterrupted = 130
)

// Exit is an error with the code that the process ends with. A nil err has
// been told already.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Exit) Unwrap() error { return e.Err }

// UsageError returns an error with ExitUsage, for a mistake in the arguments or in a definition; nil for nil.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return &Exit{Code: ExitUsage, Err: err}
}

// Failure returns err with its exit code: the code of an [Exit] in its chain, or the code of its kind, see [supervisor.Kind].
// Other errors get ExitFailed, and nil stays nil.
func Failure(err error) error {
	if err == nil {
		return nil
	}
	code := ExitFailed
	if exit, ok := errors.AsType[*Exit](err); ok {
		code = exit.Code
	} else if k, ok := supervisor.KindOf(err); ok {
		code = k.Exit
	}
	return &Exit{Code: code, Err: err}
}

// PrintError writes an error for people: the problems of a definition with their places in the file, and any other error on one
// line.
func PrintError(w io.Writer, err error) {
	var problems definition.Problems
	if errors.As(err, &problems) {
		problems.Format(w)
		if other, ok := errors.AsType[*program.OtherProgramError](err); ok {
			fmt.Fprintln(w, "refrain:", other.Hint())
		}
		return
	}
	fmt.Fprintln(w, "refrain:", err.Error())
}
