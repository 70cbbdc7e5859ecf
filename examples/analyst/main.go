// SPDX-License-Identifier: Apache-2.0

// Analyst is a stand-in for agents elsewhere: two of the examples ask it over A2A,
// on this computer. It asks no model. What it answers is computed: /performance
// compares two results and names a better one in reach, /code reads a Go file and
// gives it a mark.
//
// With a command it runs that while it is there, and ends with it:
//
//	go run ./examples/analyst
//	go run ./examples/analyst refrain run examples/optimize/loop.yaml
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// usual is the address that the loops of the examples name.
const usual = "127.0.0.1:8701"

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case failed && exit.ExitCode() > 0: // the command has said why
		os.Exit(exit.ExitCode())
	case err != nil && !errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(os.Stderr, "analyst:", err)
		os.Exit(1)
	}
}

// run serves until it is interrupted, or until the command in args has ended.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("analyst", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", usual, "listen on this `address`; port 0 takes a free one, and the command "+
		"finds it in $ANALYST")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("%w; -listen takes another address, and the endpoint in loop.yaml has to name it too", err)
	}
	base := "http://" + l.Addr().String()
	server := &http.Server{Handler: newHandler(base), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		_ = server.Close()
		<-served
	}()
	fmt.Fprintf(stderr, "analyst: a stand-in for agents elsewhere, and no model, is at %s/performance and /code\n",
		base)

	// Ctrl-C reaches the command as well, which decides what follows: refrain pauses.
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	defer signal.Stop(interrupted)
	if flags.NArg() == 0 {
		select {
		case <-interrupted:
			return nil
		case err := <-served:
			served <- nil // for the defer
			return err
		}
	}
	return command(flags.Args(), base, stdin, stdout, stderr)
}

// command runs a command that finds the address in $ANALYST.
func command(args []string, base string, stdin io.Reader, stdout, stderr io.Writer) error {
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "ANALYST="+base)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	return cmd.Run()
}
