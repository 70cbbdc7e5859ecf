// SPDX-License-Identifier: Apache-2.0

// Package command is the command refrain as a library: a program of one's own is the whole command, with its tools, its
// agents and its definitions.
//
//	func main() {
//		os.Exit(command.Main(
//			command.Tool(paint, count),          // names that a definition may use
//			command.Agent(reviewer),             // a step of a definition, or run by its name
//			command.Model("acme", acme.Open),    // the models acme/...
//			command.Definition(loopYAML),        // run by its name
//		))
//	}
//
// Every verb works on them. If the program is called bananas, so does:
//
//	bananas run reviewer "Is this right?"
//	bananas serve
//	bananas resume last
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

// Main runs the command with the arguments of the process, and returns its exit code. It panics if an option is a mistake
// of the program, such as two agents or two tools with one name, or a tool that is nil.
func Main(opts ...Option) int {
	ctx, stop := term.Interruptible(context.Background())
	defer stop()
	return run(ctx, opts, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
}

// run is the program, but for its process.
func run(ctx context.Context, opts []Option, args []string, getenv func(string) string, stdin io.Reader, stdout,
	stderr io.Writer) int {
	o := collect(opts)
	e := &term.Env{Getenv: getenv, Stdin: stdin, Stdout: term.Readable(stdout), Stderr: term.Readable(stderr), Ctx: ctx,
		Args: args, Cluster: o.cluster, Code: o.code}
	if e.Cluster != nil {
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
	cmd := newRoot(e)
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
