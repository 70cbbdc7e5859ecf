// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// taken is how a run was taken up.
type taken struct {
	session.RunTaken

	was json.RawMessage // what Program takes the place of
}

// ResumeOptions say how a run goes on. The zero value leaves it as it was.
type ResumeOptions struct {
	// Program takes the place of [session.RunStarted.Program], for good. If the
	// agents that Build makes of it do not fit the log, the run keeps the program that it
	// had, and the outcome has [agent.ErrDiverged]. A run that was paused or canceled is
	// so again, for the reason that it had; any other is paused. The same holds if Build
	// fails.
	Program json.RawMessage
	// Continue lets a run go on that has come to its end: because a limit stopped
	// its loop, with agents that Program gives other limits, or because a step
	// failed, which is tried again, wherever it is. See [runner.Continue]. If that cannot be, the
	// run is over as it was.
	Continue bool
}

// Resume takes up a run that is paused, waits, was interrupted or canceled. It
// returns as soon as that is in the log; if there is no place for the run yet it
// goes on later. Errors to expect are [ErrNotFound], [ErrOver], [ErrUnderWay] and
// a [*session.HeldError], which names the process that drives the run.
func (s *Supervisor) Resume(ctx context.Context, id string, opts ResumeOptions) (*Run, error) {
	r, err := s.takeUp(ctx, id, opts)
	if err != nil {
		return nil, fmt.Errorf("resume run %q: %w", id, err)
	}
	go r.drive(nil, nil)
	return r, nil
}

func (s *Supervisor) takeUp(ctx context.Context, id string, opts ResumeOptions) (*Run, error) {
	r, err := s.enroll(ctx, id)
	if err != nil {
		return nil, err
	}
	view, run, err := s.get(ctx, id, false)
	switch {
	case err != nil:
	case run.Status == session.RunCompleted && !opts.Continue:
		err = fmt.Errorf("%w: it completed", ErrOver)
	case run.Status == session.RunFailed && !opts.Continue:
		err = fmt.Errorf("%w: it failed: %s", ErrOver, run.Error)
	case run.Status == session.RunCompleted && run.Stop != "" && !limited(view, run):
		err = fmt.Errorf("%w: its loop stopped by %s, and no limit changes that", ErrOver, run.Stop)
	default:
		r.run, r.before, r.more = *run, *run, opts.Continue
		err = r.take(view, opts)
	}
	if err != nil {
		r.quit()
		return nil, err
	}
	return r, nil
}

// limited reports whether a limit has stopped a loop of the run: the last one, or one
// in another branch, or within it. Which of them can go on is the runner's to say.
func limited(view *session.View, run *session.Run) bool {
	if loop.StopReason(run.Stop).Limit() {
		return true
	}
	for ev := range counting(view) {
		var rec loop.StopRecord
		if ev.InvocationID == run.ID && ev.Mark != nil && ev.Mark.Kind == session.MarkLoopStopped && ev.Mark.Decode(&rec) == nil && rec.Reason.Limit() {
			return true
		}
	}
	return false
}

// take writes down that the run goes on.
func (r *Run) take(view *session.View, opts ResumeOptions) error {
	r.taken = &taken{RunTaken: session.RunTaken{By: r.s.cfg.Owner, Program: opts.Program}}
	if opts.Program != nil {
		started, err := startedWith(view, r.run.ID)
		if err != nil {
			return err
		}
		r.taken.was = started.Program
	}
	return r.write(session.MarkRunTaken, r.taken.RunTaken, func(run *session.Run) {
		*run = session.Run{ID: run.ID, Name: run.Name, Status: session.RunRunning, Started: run.Started, Parent: run.Parent}
	})
}

// StartedWith is what the last run of a session was started with, or goes on with
// since another program was given to it. It fails with [ErrNotFound] if the session
// does not say.
func StartedWith(s session.Session) (session.RunStarted, error) {
	view := session.ViewOf(s)
	run := session.RunOf(view)
	if run == nil {
		return session.RunStarted{}, fmt.Errorf("%w: in session %q nothing has run", ErrNotFound, s.ID())
	}
	return startedWith(view, run.ID)
}

func startedWith(view *session.View, id string) (started session.RunStarted, err error) {
	found := false
	for ev := range view.Outline() {
		if ev.InvocationID != id || ev.Mark == nil {
			continue
		}
		switch ev.Mark.Kind {
		case session.MarkRunStarted:
			found = true
			err = ev.Mark.Decode(&started)
		case session.MarkRunTaken:
			var t session.RunTaken
			if err = ev.Mark.Decode(&t); err == nil && t.Program != nil {
				started.Program = t.Program
			}
		}
		if err != nil {
			return started, err
		}
	}
	if err = view.Err(); err == nil && !found {
		err = fmt.Errorf("%w: its log does not say what it was started with", ErrNotFound)
	}
	return started, err
}

// Recover takes up all runs that have lost their driver: those that are running by
// their log and that nobody holds the lease of, and those that wait for a person
// whose time is over. It is for the start of a process that serves runs; they go
// on in the order in which they were started, as many at once as MaxRuns says.
// Runs that wait and have more time are taken up when that is over. The error is
// about those that could not be taken up.
func (s *Supervisor) Recover(ctx context.Context) ([]*Run, error) {
	all, err := s.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("recover runs: %w", err)
	}
	sortByStart(all)
	var taken []*Run
	var failed []error
	for _, info := range all {
		late := info.Run.Status == session.RunWaiting && !info.Run.Deadline.IsZero()
		switch {
		case info.Here || info.Run.Status != session.RunRunning && !late:
			continue
		case late && time.Now().Before(info.Run.Deadline):
			s.alarm(info.ID, info.Run.Deadline)
			continue
		}
		r, err := s.Resume(ctx, info.ID, ResumeOptions{})
		if _, held := errors.AsType[*session.HeldError](err); held || errors.Is(err, ErrUnderWay) || errors.Is(err, ErrOver) {
			continue // somebody else was faster, or it has a driver
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		taken = append(taken, r)
	}
	return taken, errors.Join(failed...)
}

// alarm takes up a run that waits for a person when that has no more time.
func (s *Supervisor) alarm(id string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || at.IsZero() {
		return
	}
	if a := s.alarms[id]; a != nil {
		a.Stop()
	}
	s.alarms[id] = time.AfterFunc(time.Until(at), func() {
		s.mu.Lock()
		delete(s.alarms, id)
		s.mu.Unlock()
		_, _ = s.Resume(s.ctx, id, ResumeOptions{}) // if somebody else has it, all is well
	})
}

// counting are the events that count, without their long texts.
func counting(view *session.View) iter.Seq[*session.Event] {
	gone := view.Superseded()
	return func(yield func(*session.Event) bool) {
		for ev := range view.Outline() {
			if !gone.Has(ev.Seq) && !yield(ev) {
				return
			}
		}
	}
}
