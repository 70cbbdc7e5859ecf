// SPDX-License-Identifier: Apache-2.0

package term

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// ErrInterrupted is the cause of a context that Ctrl-C has canceled.
var ErrInterrupted = errors.New("interrupted")

// interrupts are the signals that end a process.
type interrupts struct {
	mu      sync.Mutex
	handler func(os.Signal) // nil: the first ends the context, the second the process
}

type interruptsKey struct{}

// Interruptible returns a context that the first of the signals that end a
// process cancels, so that commands which are under way end with it. The second
// ends the process at once. A command that follows a run has its own mind about
// them: see OnInterrupt. A closed pipe is no signal but an error of whoever writes
// to it.
func Interruptible(parent context.Context) (context.Context, func()) {
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
				os.Exit(ExitInterrupted)
			default:
				fmt.Fprintln(os.Stderr, "Stopping. Ctrl-C again to leave at once.")
				cancel(ErrInterrupted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// OnInterrupt has the signals handled by a function of its own, until release is
// called.
func OnInterrupt(ctx context.Context, handler func(os.Signal)) (release func()) {
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

// EndsReading lets a signal end the process while files are read, until release is
// called: a named pipe that nobody writes to is waited for without end. The error
// is of a signal that came before.
func EndsReading(e *Env) (release func(), err error) {
	if e.Ctx == nil {
		return func() {}, nil
	}
	release = OnInterrupt(e.Ctx, func(os.Signal) { os.Exit(ExitInterrupted) })
	return release, context.Cause(e.Ctx)
}
