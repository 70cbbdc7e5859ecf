// SPDX-License-Identifier: Apache-2.0

// Refrain runs loops of agents that know when to stop, from a YAML file.
//
//	refrain run loop.yaml "Write a document about a cat"
//	refrain validate loop.yaml
//	refrain run loop.yaml --record run.jsonl
//	refrain verify run.jsonl
//	refrain backtest run.jsonl --set plan.max_iterations=3
//
// The answer goes to stdout and everything else to stderr. Exit codes: 0 the
// run completed; 1 it failed; 2 wrong usage or an invalid definition; 3 a limit
// stopped it before its own criterion did; 130 it was interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(mainCode())
}

// mainCode is main for tests, which run it in a process of their own.
func mainCode() int {
	ctx, stop := interruptible(context.Background())
	defer stop()
	return run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
}

// run is the program, but for its process.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := newRoot(&env{getenv: getenv, stdin: stdin, stdout: stdout, stderr: stderr})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case !errors.As(err, &exit):
		exit = &exitError{code: exitUsage, err: err}
	}
	if exit.err != nil {
		printError(stderr, exit.err)
	}
	return exit.code
}

// errInterrupted is the cause of a context that Ctrl-C has canceled.
var errInterrupted = errors.New("interrupted")

// interruptible returns a context that the first of the signals that end a
// process cancels, so that commands which are under way end with it. The second
// ends the process at once. A closed pipe is no signal but an error of whoever
// writes to it.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Ignore(syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		fmt.Fprintln(os.Stderr, "Stopping: ending the step that is under way. Ctrl-C again to leave at once.")
		cancel(errInterrupted)
		select {
		case <-signals:
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}
