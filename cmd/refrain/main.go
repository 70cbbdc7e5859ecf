// SPDX-License-Identifier: Apache-2.0

// Refrain runs loops of agents that know when to stop, from a YAML file.
//
//	refrain run loop.yaml "Write a document about a cat"
//	refrain validate loop.yaml
//	refrain resume last
//	refrain run loop.yaml --record run.jsonl
//	refrain verify run.jsonl
//	refrain backtest run.jsonl --set plan.max_iterations=3
//
// The answer goes to stdout and everything else to stderr. Exit codes: 0 the
// run completed; 1 it failed; 2 wrong usage or an invalid definition; 3 a limit
// stopped it before its own criterion did; 4 it is paused, or waits for a person;
// 130 it was interrupted, and can be resumed.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	_ "github.com/refrain-dev/refrain/cmd/refrain/internal/firstgc" // a short command needs no collection
	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"
)

func main() {
	os.Exit(mainCode())
}

// mainCode is main for tests, which run it in a process of their own.
func mainCode() int {
	ctx, stop := term.Interruptible(context.Background())
	defer stop()
	return run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
}

// run is the program, but for its process.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout,
	stderr io.Writer) int {
	e := &term.Env{Getenv: getenv, Stdin: stdin, Stdout: term.Readable(stdout), Stderr: term.Readable(stderr), Ctx: ctx}
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
