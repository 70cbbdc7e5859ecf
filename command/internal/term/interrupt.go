// SPDX-License-Identifier: Apache-2.0

package term

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// ErrInterrupted is the cause of a context that Ctrl-C has canceled.
var ErrInterrupted = errors.New("interrupted")

// interrupts handles the signals that end a process.
type interrupts struct {
	handler atomic.Pointer[func(os.Signal)] // if nil, the first signal cancels the context, and the second ends the process
}

type interruptsKey struct{}

// Interruptible returns a context that the first terminating signal cancels, so that running commands end with it. The second
// signal ends the process at once. A command that follows a run handles signals itself: see OnInterrupt. A closed pipe is not a
// signal here, but an error of the writer.
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
			switch handler := in.handler.Load(); {
			case handler != nil:
				(*handler)(sig)
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

// OnInterrupt passes signals to handler until release is called.
func OnInterrupt(ctx context.Context, handler func(os.Signal)) (release func()) {
	in, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		return func() {}
	}
	in.handler.Store(&handler)
	return func() { in.handler.Store(nil) }
}

// EndsReading lets a signal end the process while files are read, until release is called, because reading from a named pipe
// without a writer blocks for ever. It returns an error if a signal has already arrived.
func EndsReading(e *Env) (release func(), err error) {
	if e.Ctx == nil {
		return func() {}, nil
	}
	release = OnInterrupt(e.Ctx, func(os.Signal) { os.Exit(ExitInterrupted) })
	return release, context.Cause(e.Ctx)
}
