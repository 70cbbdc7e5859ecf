// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// DefaultTimeout limits the time of a call.
const DefaultTimeout = 10 * time.Second

// OnError says what happens after a hook has failed, because it cannot be reached, does not
// answer in time, or gives an invalid answer.
type OnError string

// The choices. The default is Fail for a hook with Veto and for a Go function, and Continue for
// others.
const (
	Fail     OnError = "fail"     // the action of the event fails
	Continue OnError = "continue" // the action continues as if there were no hook
)

// Config has the settings of all kinds of hook. A hook with the zero value cannot veto.
type Config struct {
	// Timeout limits the time of a call, with its second attempt; 0 means [DefaultTimeout].
	Timeout time.Duration
	// Veto lets the hook stop the action that an event announces.
	Veto    bool
	OnError OnError
	// Failed is called with failures that have no other effect, by several goroutines at a time.
	// Nil writes a warning to [slog.Default].
	Failed func(error)
}

func (c *Config) check() error {
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("the timeout is negative: %s", c.Timeout)
	case c.OnError != "" && c.OnError != Fail && c.OnError != Continue:
		return fmt.Errorf("OnError is %q; use %s or %s", c.OnError, Fail, Continue)
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	if c.OnError == "" {
		if c.OnError = Continue; c.Veto {
			c.OnError = Fail
		}
	}
	if c.Failed == nil {
		c.Failed = func(err error) { slog.Warn("a callback failed", "error", err) }
	}
	return nil
}

// Hook sends events to one receiver. It is safe for concurrent use.
type Hook struct {
	name string
	cfg  Config
	call func(context.Context, *Event) error
}

// String returns the name of the hook, without secrets that its address may contain.
func (h *Hook) String() string { return h.name }

// Call sends an event and waits for the hook's answer. The error is a [*VetoError] if the hook
// vetoes the action, the cause of ctx if ctx has ended, or the failure of the hook.
func (h *Hook) Call(ctx context.Context, ev Event) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if ev.Timestamp.IsZero() {
		ev.Timestamp = time.Now().UTC().Truncate(time.Millisecond)
	}
	late := fmt.Errorf("it did not answer in %s: %w", h.cfg.Timeout, context.DeadlineExceeded)
	within, cancel := context.WithTimeoutCause(ctx, h.cfg.Timeout, late)
	defer cancel()
	err := h.call(within, &ev)
	veto, stops := errors.AsType[*VetoError](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case stops && ev.Type.Before():
		veto.By, veto.Point = h.String(), ev.Type
		return err
	case within.Err() != nil:
		err = context.Cause(within)
	}
	err = fmt.Errorf("%s of %s: %w", ev.Type, h, err)
	if h.cfg.OnError == Continue {
		h.cfg.Failed(err)
		return nil
	}
	return err
}

// VetoError reports that a hook stopped an action.
type VetoError struct {
	// By is the hook's name, and Point the kind of event. Call sets both.
	By    string
	Point Point
	// Reason is the hook's reason; empty if it gives none.
	Reason string
}

// Error names the point and the hook, and has the reason.
func (e *VetoError) Error() string {
	text := fmt.Sprintf("%s vetoes the %s", e.By, e.Point.what())
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Permanent returns true, because a retry would get the same veto.
func (e *VetoError) Permanent() bool { return true }

// Func is a Go function that gets events. An error stops the announced action, or fails the action
// that has ended, unless OnError says otherwise; a [*VetoError] always stops it.
type Func func(ctx context.Context, ev Event) error

// NewFunc returns a hook that calls a function. The function must return when its context ends,
// because it cannot be interrupted otherwise.
func NewFunc(name string, f Func, cfg Config) (*Hook, error) {
	cfg.OnError = cmp.Or(cfg.OnError, Fail)
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("function %q: %w", name, err)
	}
	if f == nil {
		return nil, fmt.Errorf("function %q is nil", name)
	}
	return &Hook{name: "function " + name, cfg: cfg, call: func(ctx context.Context, ev *Event) error {
		return f(ctx, *ev)
	}}, nil
}

// reasonText is the most characters of a reason from outside the process.
const reasonText = 499
