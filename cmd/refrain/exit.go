// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
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
	fmt.Fprintln(w, "refrain:", err.Error())
}

// valueError says of a flag's value that cannot be read what to write instead, and
// leaves other errors to [flagError].
func valueError(cmd *cobra.Command, err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return flagError(cmd, err)
	}
	want := map[string]string{
		"uint": "a whole number, not below 0", "int": "a whole number", "int64": "a whole number",
		"float64": "a number", "duration": "a time such as 90s, 30m or 2h, or a number of seconds",
	}[wrong.GetFlag().Value.Type()]
	if want == "" {
		return flagError(cmd, err)
	}
	if errors.Is(err, strconv.ErrRange) {
		want += ", and a smaller one"
	}
	return fmt.Errorf("invalid argument %q for --%s: give %s", wrong.GetValue(), wrong.GetFlag().Name, want)
}

// exitCode is how the process ends. A limit is a stop of its own kind only
// where the loop had something else to reach: a criterion or, for time and
// budget, its number of iterations.
func exitCode(err error, stops []*loop.StopRecord, zeroOnLimit bool) int {
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case err != nil:
		return exitFailed
	}
	for _, rec := range stops {
		if rec.Reason.Limit() && hasGoal(rec) && !zeroOnLimit {
			return exitLimit
		}
	}
	return exitOK
}

// hasGoal reports whether the loop could have stopped by anything but a limit.
// What only ends a loop that has gone wrong is no goal either.
func hasGoal(rec *loop.StopRecord) bool {
	for _, c := range rec.Conditions {
		switch {
		case c.Name == "max_iterations":
			if rec.Reason != loop.ReasonMaxIterations {
				return true
			}
		case c.Name == "max_consecutive_failures", c.Name == "no_progress", c.Name == "timeout", strings.HasPrefix(c.Name, "budget"):
		case c.Name == "exit_loop" && c.Threshold == "nobody":
		default:
			return true
		}
	}
	return false
}
