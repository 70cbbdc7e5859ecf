// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// ErrInterrupted reports that the log says that a run is running, but no process drives it. Resume continues the run.
var ErrInterrupted = errors.New("the run was interrupted: resume it")

// Wait waits until a run has ended, is paused or waits for a person, in whichever process
// drives it, and returns its status according to the log. Errors to expect are [ErrNotFound],
// [ErrInterrupted] for a run without a driver, and the context's cause.
func (s *Supervisor) Wait(ctx context.Context, id string) (mark.Run, error) {
	for {
		if r := s.driving(id); r != nil {
			if _, err := r.Wait(ctx); err != nil {
				return mark.Run{}, err
			}
		}
		view, run, err := s.get(ctx, id, true)
		if err != nil {
			return mark.Run{}, err
		}
		if run.Status != mark.RunRunning {
			return *run, nil
		}
		held, err := s.Driver(ctx, id)
		if err != nil {
			return mark.Run{}, err
		}
		if held == nil {
			// The run may have ended since its status was read.
			if _, run, err = s.get(ctx, id, true); err == nil && run.Status == mark.RunRunning {
				err = ErrInterrupted
			}
			if run == nil {
				run = new(mark.Run)
			}
			return *run, err
		}
		if err := s.watchMarks(ctx, id, view.LastSeq(), time.Until(held.Until)); err != nil {
			return mark.Run{}, err
		}
	}
}

// watchMarks waits until an event sets the run's status, but at most as long as the lease lasts.
func (s *Supervisor) watchMarks(ctx context.Context, id string, after int64, lasts time.Duration) error {
	lasts = max(50*time.Millisecond, min(lasts, s.cfg.LeaseTTL)) // the end of a lease is in the store's time, not ours
	waits, cancel := context.WithTimeoutCause(ctx, lasts, errNotConfirmed)
	defer cancel()
	for ev, err := range s.Watch(waits, id, after) {
		if err != nil {
			return ignore(err, errNotConfirmed)
		}
		if _, says := ev.Actions.StateDelta[mark.KeyRun]; says {
			return nil
		}
	}
	return nil
}

// Driver returns the process that drives a run, or nil if no process does or if that process is
// known to have died.
func (s *Supervisor) Driver(ctx context.Context, id string) (*lease.HeldError, error) {
	held, err := s.leaser.Holder(ctx, s.key(id))
	if errors.Is(err, session.ErrNotFound) {
		err = fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if held != nil && s.cfg.Dead(held.Owner) {
		held = nil
	}
	return held, err
}
