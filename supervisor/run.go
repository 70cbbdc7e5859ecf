// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// Run is a run that this supervisor drives, or has driven.
type Run struct {
	s      *Supervisor
	key    lease.Key
	lease  *lease.Lease
	owner  string // names the process that drives the run
	ctx    context.Context
	cancel context.CancelCauseFunc
	ticket *ticket       // in the queue
	wake   chan struct{} // closed by a request to pause, which ends the wait for a turn
	logged chan error    // gets nil when the first event is in the log, or an error if it never will be
	done   chan struct{} // closed when this process no longer drives the run

	takeover *takeover // how this process took up the run; nil for a new run

	view *session.View // the session as the driving goroutine has read it; nil if it must be read again

	hints  agent.Hints // for the next iterations
	editor *string     // who has paused the run to edit its files; nil if nobody has

	crash error // the first panic in a callback of Config, such as OnEvent; nil if there was none

	mu       sync.Mutex
	run      mark.Run // the status of the run according to the log
	requests requests
	outcome  Ending
}

// requests has the requests to a run that are not in its log yet.
type requests struct {
	pause      *agent.Pause // the pause of the last segment; nil before the first segment
	pauseCause error        // the cause of a requested pause; nil if no pause was requested
	answers    []mark.Answer
	closing    bool // accept refuses further requests
}

// Ending is the result of driving a run until it ended, paused or lost its lease.
type Ending struct {
	// Run is the status of the run according to the log.
	Run mark.Run
	// Err is why the run did not complete: a [*PausedError], an [*agent.WaitingError], a
	// [*CanceledError], [lease.ErrLost], [agent.ErrDiverged] or another error. Nil if it
	// completed.
	Err error
}

// Dropped reports whether the supervisor stopped driving the run without recording why, because the lease
// was lost or the store could not be written. The log still says that the run is running.
func (e Ending) Dropped() bool {
	return errors.Is(e.Err, lease.ErrLost) || e.Err != nil && e.Run.Status == mark.RunRunning
}

// PausedError reports who paused a run, and why. errors.Is finds [agent.ErrPaused] in it.
type PausedError struct {
	By, Reason string
	// Edit is true if somebody edits files of the run while it is paused: see [Supervisor.PauseToEdit].
	Edit bool
	// HandOver is true if the run paused only because its driver ended: see [mark.Run.HandOver].
	HandOver bool
}

// Error returns a text with the person or process that paused the run, and the reason.
func (e *PausedError) Error() string { return "paused" + byReason(e.By, e.Reason) }

// Is reports whether target is [agent.ErrPaused].
func (e *PausedError) Is(target error) bool { return target == agent.ErrPaused }

// CanceledError reports who canceled a run, and why. errors.Is finds [context.Canceled] in it.
type CanceledError struct{ By, Reason string }

// Error returns a text with the person or process that canceled the run, and the reason.
func (e *CanceledError) Error() string { return "canceled" + byReason(e.By, e.Reason) }

// Is reports whether target is [context.Canceled].
func (e *CanceledError) Is(target error) bool { return target == context.Canceled }

func byReason(by, reason string) (s string) {
	if by != "" {
		s = " by " + by
	}
	if reason != "" {
		s += ": " + reason
	}
	return s
}

// ID returns the ID of the run and of its session.
func (r *Run) ID() string { return r.key.SessionID }

// Done returns a channel that is closed when this supervisor no longer drives the run.
func (r *Run) Done() <-chan struct{} { return r.done }

// Wait waits until this supervisor no longer drives the run, and returns how it ended. The error is
// the context's cause.
func (r *Run) Wait(ctx context.Context) (Ending, error) {
	select {
	case <-r.done:
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.outcome, nil
	case <-ctx.Done():
		return Ending{}, context.Cause(ctx)
	}
}

// Queued reports whether the run waits for its turn.
func (r *Run) Queued() bool {
	return !r.ticket.hasTurn()
}

// HandOver pauses the run at its next step boundary, so that another process can continue it: see
// [mark.Run.HandOver]. When ctx ends, HandOver cuts off the steps that are still running; the process that
// continues the run repeats them. HandOver waits until this supervisor no longer drives the run. It does
// not replace a pause that a person has asked for.
func (r *Run) HandOver(ctx context.Context) {
	why := &PausedError{By: r.owner, Reason: reasonProcessEnds, HandOver: true}
	r.askPause(why)
	select {
	case <-r.done:
	case <-ctx.Done():
		r.cutOff(why)
		<-r.done
	}
}

// cutOff cancels the steps that are running. Their error is the cause of a pause that was requested before, if there is
// one, and cause otherwise.
func (r *Run) cutOff(cause error) {
	r.mu.Lock()
	if r.requests.pauseCause != nil {
		cause = r.requests.pauseCause
	}
	r.mu.Unlock()
	r.cancel(cause)
}

// askPause requests a pause at the next step boundary. If it is called again, the first cause stays, but a request of
// a person replaces a hand-over, and a pause to edit files replaces any other.
func (r *Run) askPause(cause *PausedError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.requests.pauseCause != nil {
		if handsOver(r.requests.pauseCause) || cause.Edit {
			r.requests.pauseCause = cause
		}
		return
	}
	r.requests.pauseCause = cause
	close(r.wake)
	if r.requests.pause != nil {
		r.requests.pause.Ask(cause)
	}
}

// handsOver reports whether a pause only hands the run over to another process, without a request of a person.
func handsOver(cause error) bool {
	paused, ok := errors.AsType[*PausedError](cause)
	return ok && paused.HandOver
}

// newPause returns the pause for the next segment. If a pause of the run was requested before, it is requested already.
func (r *Run) newPause() *agent.Pause {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests.pause = new(agent.Pause)
	if r.requests.pauseCause != nil {
		r.requests.pause.Ask(r.requests.pauseCause)
	}
	return r.requests.pause
}

// read returns the run's session with its whole log, and keeps it in r.view.
func (r *Run) read(ctx context.Context) (*session.View, error) {
	view, _, err := r.s.refresh(ctx, r.ID(), r.view)
	if err == nil {
		r.view = view
	}
	return view, err
}

// register records that this process drives a run. The run has no lease yet.
func (s *Supervisor) register(ctx context.Context, id string) (*Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkFree(id); err != nil {
		return nil, err
	}
	s.work.Add(1)
	return s.add(ctx, id), nil
}

// enroll acquires the lease of an existing session, and then records that this process drives its run.
func (s *Supervisor) enroll(ctx context.Context, id string, opts *ResumeOptions) (*Run, error) {
	s.mu.Lock()
	if err := s.checkFree(id); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	s.enrolling[id] = true
	s.work.Add(1)
	s.mu.Unlock()

	l, err := s.acquire(ctx, s.key(id), opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.enrolling, id)
	if err == nil && s.closed {
		s.release(l)
		err = ErrClosed
	}
	if err != nil {
		s.work.Done()
		return nil, err
	}
	r := s.add(ctx, id)
	r.owner = l.Owner
	r.setLease(l)
	return r, nil
}

// checkFree returns an error if the supervisor is closed or drives the run already. s.mu is held.
func (s *Supervisor) checkFree(id string) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.runs[id] != nil || s.enrolling[id]:
		return fmt.Errorf("%w: %q is driven by this process", ErrUnderWay, id)
	}
	return nil
}

// add adds a run to those that this supervisor drives, and stops the timer for its deadline. s.mu is held.
func (s *Supervisor) add(ctx context.Context, id string) *Run {
	r := &Run{
		s: s, key: s.key(id), owner: s.cfg.Owner, ticket: &ticket{admitted: make(chan struct{})},
		wake: make(chan struct{}), logged: make(chan error, 1), done: make(chan struct{}),
	}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.runs[id] = r
	if a := s.alarms[id]; a != nil {
		a.Stop()
		delete(s.alarms, id)
	}
	return r
}

// join puts the run into the queue, by its start record. It fails with [ErrQueueFull] if the run may be refused.
func (r *Run) join(started mark.RunStarted, refusable bool) error {
	if isGuest := r.s.cfg.Guest; isGuest != nil {
		r.ticket.guest = isGuest(started)
	}
	return r.s.queue.join(r.ticket, refusable)
}

// setLease sets the lease under which the run is driven.
func (r *Run) setLease(l *lease.Lease) {
	r.lease, r.ctx = l, lease.With(r.ctx, l)
}

// dismiss removes the run from those that this supervisor drives. It does not release the lease.
func (r *Run) dismiss() {
	r.cancel(nil)
	r.s.mu.Lock()
	delete(r.s.runs, r.ID())
	r.s.mu.Unlock()
	close(r.done)
	r.s.work.Done()
}

// acquire takes the lease of a session. It takes the lease over from another owner if that owner is dead or if
// opts.TakeOver allows it.
func (s *Supervisor) acquire(ctx context.Context, key lease.Key, opts *ResumeOptions) (*lease.Lease, error) {
	owner := cmp.Or(opts.Owner, s.cfg.Owner)
	l, err := s.leaser.Acquire(ctx, key, owner, s.cfg.LeaseTTL)
	held, isHeld := errors.AsType[*lease.HeldError](err)
	switch {
	case isHeld && (s.cfg.Dead(held.Owner) || opts.TakeOver != nil && opts.TakeOver(held)):
		l, err = s.leaser.TakeOver(ctx, held, owner, s.cfg.LeaseTTL)
	case errors.Is(err, session.ErrNotFound):
		err = fmt.Errorf("%w: %q", ErrNotFound, key.SessionID)
	}
	return l, err
}

// release gives a lease back. It ignores an error, because the lease then expires by itself.
func (s *Supervisor) release(l *lease.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.LeaseTTL)
	defer cancel()
	_ = s.leaser.Release(ctx, l)
}
