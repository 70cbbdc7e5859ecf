// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/session/mark"
)

// Status is the present status of a run.
type Status struct {
	// Run is the status of the run according to the log.
	Run mark.Run
	// Seq is the Seq of the last event of the log.
	Seq int64
	// Open are the IDs of the questions that a waiting run asks. It is nil for a run with another
	// status, see [Supervisor.Questions].
	Open []string
}

// Status returns the present status of a run. It reads only the last event of the log. The
// error to expect is [ErrNotFound].
func (s *Supervisor) Status(ctx context.Context, id string) (Status, error) {
	view, run, err := s.get(ctx, id, true)
	if err != nil {
		return Status{}, err
	}
	st := Status{Run: *run, Seq: view.LastSeq()}
	if evs := view.Events(); run.Status == mark.RunWaiting && evs.Len() > 0 {
		var p mark.RunPaused
		if m := evs.At(evs.Len() - 1).Mark; m != nil && m.Kind == mark.KindRunPaused && m.Decode(&p) == nil {
			st.Open = p.Waits
		}
	}
	return st, nil
}

// HandTo gives a run to a driver: see [Config.Driver]; "" means any process. A paused run is paused
// with [mark.Run.HandOver] from then on, so that its driver continues it; a waiting run continues to
// wait. No process may drive the run at the moment. Errors to expect are [ErrNotFound], [ErrUnderWay],
// [ErrOver] and a [*lease.HeldError], which names the process that drives the run.
func (s *Supervisor) HandTo(ctx context.Context, id, driver string) error {
	if err := s.handTo(ctx, id, driver); err != nil {
		return fmt.Errorf("hand run %q to %q: %w", id, driver, err)
	}
	return nil
}

// handTo does what HandTo does, and returns its error without the run and the driver.
func (s *Supervisor) handTo(ctx context.Context, id, driver string) error {
	if s.driving(id) != nil {
		return fmt.Errorf("%w: this process drives it", ErrUnderWay)
	}
	l, err := s.acquire(ctx, s.key(id), &ResumeOptions{})
	if err != nil {
		return err
	}
	defer s.release(l)
	view, run, err := s.get(ctx, id, false)
	if err != nil {
		return err
	}
	open, err := openQuestions(view, run.ID)
	switch {
	case err != nil:
		return err
	case run.Status.IsFinal():
		return fmt.Errorf("%w: it is %s", ErrOver, run.Status)
	case run.Driver == driver && (run.HandOver || run.Status == mark.RunRunning):
		return nil
	}
	data := mark.RunPaused{By: s.cfg.Owner, Reason: "handed to " + driver, Waits: questionIDs(open)}
	if driver == "" {
		data.Reason = "handed to any process"
	}
	r := s.undrivenRun(ctx, l, run)
	r.view = view
	return r.appendMark(mark.KindRunPaused, data, func(run *mark.Run) {
		if run.Driver = driver; run.Status == mark.RunWaiting && len(open) > 0 {
			return
		}
		run.Status, run.HandOver, run.Deadline = mark.RunIsPaused, true, time.Time{}
	})
}
