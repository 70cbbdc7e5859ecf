// SPDX-License-Identifier: Apache-2.0

// Package command is the command refrain, for the programs that are it: cmd/refrain, and
// temporal/cmd/refrain-temporal, which has the SDK of Temporal linked in.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	_ "github.com/refrain-dev/refrain/command/internal/firstgc" // a short command needs no collection
	"github.com/refrain-dev/refrain/command/internal/otlp"
	"github.com/refrain-dev/refrain/command/internal/term"
)

// Main runs the command with the arguments of the process, and returns its exit code. Without a
// cluster it starts refrain-temporal, which has one, for what needs Temporal.
func Main(c Cluster) int {
	ctx, stop := term.Interruptible(context.Background())
	defer stop()
	return run(ctx, c, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
}

// run is the program, but for its process.
func run(ctx context.Context, c Cluster, args []string, getenv func(string) string, stdin io.Reader, stdout,
	stderr io.Writer) int {
	e := &term.Env{Getenv: getenv, Stdin: stdin, Stdout: term.Readable(stdout), Stderr: term.Readable(stderr), Ctx: ctx,
		Args: args}
	if c != nil {
		if say := otherVersion(e); say != "" {
			fmt.Fprintln(e.Stderr, "refrain:", say)
		}
		_ = os.Unsetenv(callerVersion) // it is not for the programs that a run starts
	}
	e.Telemetry = otlp.New(getenv, version, func(err error) { term.PrintError(e.Stderr, err) })
	defer e.Telemetry.Stop()
	if getenv("TRACEPARENT") != "" {
		ctx = e.Telemetry.Within(ctx)
	}
	cmd := newRoot(e, c)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var exit *term.Exit
	switch {
	case err == nil:
		return term.ExitOK
	case !errors.As(err, &exit):
		exit = &term.Exit{Code: term.ExitUsage, Err: err}
	}
	if exit.Err != nil {
		term.PrintError(e.Stderr, exit.Err)
	}
	return exit.Code
}
