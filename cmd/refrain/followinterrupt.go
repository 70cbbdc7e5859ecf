// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// errInterrupted is the cause of a context that Ctrl-C has canceled.
var errInterrupted = errors.New("interrupted")

// interrupts are the signals that end a process.
type interrupts struct {
	mu      sync.Mutex
	handler func(os.Signal) // nil: the first ends the context, the second the process
}

type interruptsKey struct{}

// interruptible returns a context that the first of the signals that end a
// process cancels, so that commands which are under way end with it. The second
// ends the process at once. A command that follows a run has its own mind about
// them: see onInterrupt. A closed pipe is no signal but an error of whoever writes
// to it.
func interruptible(parent context.Context) (context.Context, func()) {
	in := new(interrupts)
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, interruptsKey{}, in))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Ignore(syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			var sig os.Signal
			select {
			case sig = <-signals:
			case <-done:
				return
			}
			in.mu.Lock()
			handler := in.handler
			in.mu.Unlock()
			switch {
			case handler != nil:
				handler(sig)
			case ctx.Err() != nil:
				os.Exit(exitInterrupted)
			default:
				fmt.Fprintln(os.Stderr, "Stopping. Ctrl-C again to leave at once.")
				cancel(errInterrupted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// onInterrupt has the signals handled by a function of its own, until release is
// called.
func onInterrupt(ctx context.Context, handler func(os.Signal)) (release func()) {
	in, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		return func() {}
	}
	set := func(h func(os.Signal)) {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.handler = h
	}
	set(handler)
	return func() { set(nil) }
}
