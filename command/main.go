// SPDX-License-Identifier: Apache-2.0

// Package command has the command refrain as a library: your own program is the whole command, with its tools, its
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

	"github.com/refrain-dev/refrain/command/internal/clusters"
	_ "github.com/refrain-dev/refrain/command/internal/firstgc" // a short command needs no collection
	"github.com/refrain-dev/refrain/command/internal/otlp"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/process/child"
)

// Main runs the command, and returns its exit code. It panics if an option is a mistake of the program, such as two agents
// or two tools with one name, or a tool that is nil.
func Main(opts ...Option) int {
	ctx, stop := term.Interruptible(context.Background())
	defer stop()
	return run(ctx, opts, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
}

// ExitError says that a command has not succeeded.
type ExitError struct {
	// Code is the exit code for the process: see the help of the verb run.
	Code int
	// Err is the reason; nil if the command has printed it already.
	Err error
}

// Error returns the reason.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the reason.
func (e *ExitError) Unwrap() error { return e.Err }

// Run is [Main] for a program that goes on when the command has ended. It does not print the error that it returns, an
// [*ExitError]. When ctx ends, the command ends as it does after the first Ctrl-C.
func Run(ctx context.Context, opts ...Option) error {
	ctx, stop := term.Interruptible(ctx)
	defer stop()
	e := &term.Env{Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Args: os.Args[1:]}
	if exit := do(ctx, e, opts); exit != nil {
		return &ExitError{exit.Code, exit.Err}
	}
	return nil
}

// run is the program, but for its process.
func run(ctx context.Context, opts []Option, args []string, getenv func(string) string, stdin io.Reader, stdout,
	stderr io.Writer) int {
	e := &term.Env{Getenv: getenv, Stdin: stdin, Stdout: stdout, Stderr: stderr, Args: args}
	exit := do(ctx, e, opts)
	if exit == nil {
		return term.ExitOK
	}
	if exit.Err != nil {
		term.PrintError(e.Stderr, exit.Err)
	}
	return exit.Code
}

// do does what the arguments say. It returns nil if that has succeeded.
func do(ctx context.Context, e *term.Env, opts []Option) *term.Exit {
	o := collect(opts)
	e.Stdout, e.Stderr = term.Readable(e.Stdout), term.Readable(e.Stderr)
	c := o.config
	e.Ctx, e.Code, e.Cluster, e.Around, e.Began = ctx, o.code, c.Cluster, c.Around, c.Began
	e.Code.Refrain, _ = os.Executable() // without it, PATH decides
	e.Keeps = term.Services{Sessions: c.SessionService, Files: c.ArtifactService, Memory: c.MemoryService, Plugins: c.PluginConfig}
	if c.Args != nil {
		e.Args = c.Args
	}
	if e.Cluster != nil {
		if say := clusters.OtherVersion(e); say != "" {
			fmt.Fprintln(e.Stderr, "refrain:", say)
		}
		_ = os.Unsetenv(clusters.CallerVersion) // it is not for the programs that a run starts
	}
	getenv, err := child.FromFiles(e.Getenv)
	if err == nil {
		err = child.BecomeUser(e.Getenv("REFRAIN_USER"))
	}
	if err != nil {
		return &term.Exit{Code: term.ExitUsage, Err: err}
	}
	e.Getenv = getenv
	e.Telemetry = otlp.New(e.Getenv, term.ShortVersion, func(err error) { term.PrintError(e.Stderr, err) })
	defer e.Telemetry.Stop()
	if e.Getenv("TRACEPARENT") != "" {
		ctx = e.Telemetry.Within(ctx)
	}
	cmd := newRoot(e)
	cmd.SetArgs(e.Args)
	err = cmd.ExecuteContext(ctx)
	var exit *term.Exit
	if err != nil && !errors.As(err, &exit) {
		exit = &term.Exit{Code: term.ExitUsage, Err: err}
	}
	return exit
}
