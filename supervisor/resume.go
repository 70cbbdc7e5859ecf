// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// takeover is the record that a process took up a run.
type takeover struct {
	mark.RunTaken

	oldProgram json.RawMessage // the program that Program replaces
	before     mark.Run        // the status of the run before it was taken up
	continues  bool            // the next segment continues a run that has ended: see ResumeOptions.Continue
}

// ResumeOptions says how a run continues. The zero value changes nothing.
type ResumeOptions struct {
	// Program replaces [mark.RunStarted.Program], also for later resumes. If the agents that
	// Build makes from it do not fit the log, or if Build fails, the run keeps its program and the
	// outcome has [agent.ErrDiverged] or Build's error. A run that was paused or canceled is paused
	// or canceled again, for the same reason; any other is paused.
	Program json.RawMessage
	// Continue continues a run that has ended. A run that a limit stopped continues with the higher limit
	// of Program; a failed run continues with a retry of the failed step. See [runner.Continue]. If the
	// run cannot continue, it stays ended.
	Continue bool
	// After, if it is not 0, is the Seq of the last event that the caller knows. If somebody has paused the
	// run, answered one of several questions or ended the run since, Resume fails with [ErrChanged] or
	// [ErrOver]. A pause with [mark.Run.HandOver] does not count.
	After int64
	// Owner names who drives the run; "" means Config.Owner.
	Owner string
	// TakeOver reports whether to take the run from the process that drives it, for a caller that knows
	// that this process has died or must no longer drive the run. It is called at most once. It may
	// compare the end of the lease with that seen at an earlier Resume, because a live driver renews the
	// lease. Nil means never.
	TakeOver func(held *lease.HeldError) bool
	// Refusable lets Resume fail with [ErrQueueFull] if the run would have to wait and too many do.
	Refusable bool
	// View is the run's session as the caller has read it. The caller must not use it until the run has
	// ended. If nobody has appended since, the log is not read again. Optional.
	View *session.View
	// Agents are used instead of calling Build, for a caller that has made them from Program, or from the program in View.
	// The supervisor calls Build nevertheless if the run has to wait for its turn, or if another process has appended to the log
	// of View and Program is nil. The supervisor closes Agents, even if Resume fails. Optional.
	Agents *Program
}

// Resume continues a run that is paused, waits, was interrupted or was canceled. It returns as soon
// as the log records this; if MaxRuns runs are driven already, the run continues later. Errors to
// expect are [ErrNotFound], [ErrOver], [ErrChanged], [ErrDriver], [ErrUnderWay], [ErrQueueFull] and a
// [*lease.HeldError], which names the process that drives the run.
func (s *Supervisor) Resume(ctx context.Context, id string, opts ResumeOptions) (*Run, error) {
	r, err := s.takeUp(ctx, id, opts)
	if err != nil {
		opts.Agents.close()
		return nil, fmt.Errorf("resume run %q: %w", id, err)
	}
	prog := opts.Agents
	if r.view == nil || opts.Program == nil && r.view != opts.View { // the run waits, or may have got another program
		prog.close()
		prog = nil
	}
	go r.drive(prog, nil)
	return r, nil
}

// takeUp acquires the lease of a run, checks that the run may continue, puts it into the queue and records in the log that
// it continues.
func (s *Supervisor) takeUp(ctx context.Context, id string, opts ResumeOptions) (*Run, error) {
	r, err := s.enroll(ctx, id, &opts)
	if err != nil {
		return nil, err
	}
	view, run, err := s.refresh(ctx, id, opts.View) // no other process appends while we hold the lease
	if err == nil {
		r.view = view
		view.Log().CacheOutline()
	}
	switch {
	case err != nil:
	case run.Driver != s.cfg.Driver:
		err = fmt.Errorf("%w: %q", ErrDriver, run.Driver)
	case run.Status == mark.RunCompleted && !opts.Continue:
		err = fmt.Errorf("%w: it completed", ErrOver)
	case run.Status == mark.RunFailed && !opts.Continue:
		err = fmt.Errorf("%w: it failed: %s", ErrOver, run.Error)
	case run.Status == mark.RunCompleted && run.Stop != "" && !stoppedByLimit(view, run):
		err = fmt.Errorf("%w: its loop stopped by %s, and no limit changes that", ErrOver, run.Stop)
	case opts.After > 0 && changedAfter(view, run, opts.After):
		err = fmt.Errorf("%w: it is %s", ErrChanged, run.Status)
	default:
		r.run = *run
		r.editor = findEditor(view, run.ID)
		if err = r.enqueue(view, &opts); err == nil {
			err = r.recordTakeover(ctx, view, opts)
		}
	}
	if err != nil {
		r.quit()
		return nil, err
	}
	if r.Queued() {
		r.view = nil // it is read again when the run has its turn
	}
	return r, nil
}

// enqueue puts the run into the queue. It ignores an error of the start record, because Build reports it later.
func (r *Run) enqueue(view *session.View, opts *ResumeOptions) error {
	var started mark.RunStarted
	if r.s.cfg.Guest != nil {
		started, _ = startedWith(view, r.run.ID)
		if opts.Program != nil {
			started.Program = opts.Program
		}
	}
	return r.join(started, opts.Refusable)
}

// changedAfter reports whether the run was paused or has ended after the event with the sequence number after. It returns
// false for a running run and for a pause that only hands the run over.
func changedAfter(view *session.View, run *mark.Run, after int64) bool {
	if run.Status == mark.RunRunning || run.HandOver {
		return false
	}
	for ev := range view.Log().OutlineByKind(mark.KindRunPaused, mark.KindRunEnded) {
		if ev.InvocationID == run.ID && ev.Seq > after {
			return true
		}
	}
	return false
}

// stoppedByLimit reports whether a limit has stopped any loop of the run, also one in another branch or inside another loop.
// The runner decides which of these loops can continue.
func stoppedByLimit(view *session.View, run *mark.Run) bool {
	if loop.StopReason(run.Stop).Limit() {
		return true
	}
	for ev := range currentMarks(view, run.ID, mark.KindLoopStopped) {
		var rec loop.StopRecord
		if ev.Mark.Decode(&rec) == nil && rec.Reason.Limit() {
			return true
		}
	}
	return false
}

// recordTakeover records in the log that the run runs again, and who asked for that or, if nobody did, which process took it up.
func (r *Run) recordTakeover(ctx context.Context, view *session.View, opts ResumeOptions) error {
	r.takeover = &takeover{
		RunTaken: mark.RunTaken{By: askerOr(ctx, r.owner), Program: opts.Program}, before: r.run, continues: opts.Continue,
	}
	if opts.Program != nil {
		started, err := startedWith(view, r.run.ID)
		if err != nil {
			return err
		}
		r.takeover.oldProgram = started.Program
	}
	return r.appendMark(mark.KindRunTaken, r.takeover.RunTaken, func(run *mark.Run) {
		*run = mark.Run{ID: run.ID, Name: run.Name, Input: run.Input, Status: mark.RunRunning, Started: run.Started,
			Parent: run.Parent, Driver: run.Driver}
	})
}

// StartedWith returns what the last run of a session was started with, and in Program the program that has
// replaced the first one since. It fails with [ErrNotFound] if the session does not record it.
func StartedWith(s session.Session) (mark.RunStarted, error) {
	view := session.ViewOf(s)
	run := session.RunOf(view)
	if run == nil {
		return mark.RunStarted{}, fmt.Errorf("%w: in session %q nothing has run", ErrNotFound, s.ID())
	}
	return startedWith(view, run.ID)
}

// startedWith returns what StartedWith returns, for the run with an invocation ID.
func startedWith(view *session.View, id string) (started mark.RunStarted, err error) {
	found := false
	for ev := range view.Log().OutlineByKind(mark.KindRunStarted, mark.KindRunTaken) {
		if ev.InvocationID != id {
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindRunStarted:
			found = true
			err = ev.Mark.Decode(&started)
		case mark.KindRunTaken:
			var t mark.RunTaken
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

// currentMarks yields the events of a run that have a mark of one of the kinds and are not superseded. It omits their long
// texts: see [session.Log.Outline].
func currentMarks(view *session.View, id string, kinds ...mark.Kind) iter.Seq[*session.Event] {
	gone := view.Log().Superseded()
	return func(yield func(*session.Event) bool) {
		for ev := range view.Log().OutlineByKind(kinds...) {
			if ev.InvocationID == id && !gone.Has(ev.Seq) && !yield(ev) {
				return
			}
		}
	}
}
