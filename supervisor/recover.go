// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// Recover continues all interrupted runs. These are the runs whose log says that they are running while no live process
// holds their lease, the runs that [Supervisor.Close] has paused, and the runs that have waited for a person beyond
// the deadline. Call it when a process that serves runs starts. The runs continue in the order in which they were
// started, at most MaxRuns at once. A run that waits for a person continues when its deadline passes. Recover skips
// the runs of another driver. The error lists the runs that could not be continued.
//
// From then on the supervisor looks again, three times in LeaseTTL, until it is closed: a run whose process died
// just before Recover still has its lease, and other processes may die later. The supervisor calls
// [Config.OnRecovery] with the runs that a later look continues.
func (s *Supervisor) Recover(ctx context.Context) ([]*Run, error) {
	runs, err := s.recoverOnce(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.recoversRegularly && !s.closed {
		s.recoversRegularly = true
		s.work.Go(s.recoverRegularly)
	}
	return runs, err
}

// recoverRegularly looks for interrupted runs until the supervisor is closed.
func (s *Supervisor) recoverRegularly() {
	tick := time.NewTicker(s.recoveryInterval())
	defer tick.Stop()
	before := ""
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
		}
		runs, err := s.recoverOnce(s.ctx)
		now := ""
		if err != nil {
			now = err.Error()
		}
		if each := s.cfg.OnRecovery; each != nil && (len(runs) > 0 || err != nil && now != before) {
			each(runs, err)
		}
		before = now
	}
}

// recoveryInterval returns the time between two looks.
func (s *Supervisor) recoveryInterval() time.Duration { return max(1, s.cfg.LeaseTTL/3) }

// verdict is the result of an earlier look at a run. A later look skips the run if it has not changed and until has not
// passed.
type verdict struct {
	updated time.Time     // the last change of the run
	until   time.Time     // when to try again; zero means never, because Recover does not continue this run
	wait    time.Duration // the wait after the last failure; the next one is twice as long, up to 64 recoveryIntervals
}

// recoverOnce continues the runs that are interrupted now, and returns them. The error lists the runs that it could not
// continue. A run that failed is tried again after a wait that grows.
func (s *Supervisor) recoverOnce(ctx context.Context) ([]*Run, error) {
	s.recovering.Lock()
	defer s.recovering.Unlock()
	var taken []*Run
	var failed []error
	all, err := s.ListOpen(ctx)
	if err != nil {
		failed = append(failed, fmt.Errorf("recover runs: %w", err))
	}
	slices.SortStableFunc(all, func(a, b Info) int { return a.Run.Started.Compare(b.Run.Started) })
	verdicts := make(map[string]verdict, len(s.verdicts))
	for _, info := range all {
		if s.isClosed() {
			break
		}
		known, ok := s.verdicts[info.ID]
		if ok && known.updated.Equal(info.Updated) && (known.until.IsZero() || time.Now().Before(known.until)) {
			verdicts[info.ID] = known
			continue
		}
		failure := func(err error) {
			failed = append(failed, err)
			wait := min(max(2*known.wait, s.recoveryInterval()), 64*s.recoveryInterval())
			verdicts[info.ID] = verdict{info.Updated, time.Now().Add(wait), wait}
		}
		interrupted, err := s.isInterrupted(ctx, info)
		if err != nil {
			failed = append(failed, err)
		}
		if !interrupted {
			continue
		}
		view, mine, err := s.shouldRecover(ctx, info)
		if err == nil && mine && info.Run.Status == mark.RunRunning {
			err = s.pauseIfDeadly(ctx, info.ID, view)
		}
		switch {
		case err != nil:
			failure(err)
			continue
		case !mine:
			verdicts[info.ID] = verdict{updated: info.Updated}
			continue
		case info.Run.Status == mark.RunWaiting && time.Now().Before(info.Run.Deadline):
			s.setAlarm(info.ID, info.Run.Deadline)
			continue
		}
		r, err := s.Resume(ctx, info.ID, ResumeOptions{View: view})
		if _, held := errors.AsType[*lease.HeldError](err); held || errors.Is(err, ErrUnderWay) ||
			errors.Is(err, ErrOver) || errors.Is(err, ErrClosed) {
			continue // another process was faster, or a process drives the run
		}
		if err != nil {
			failure(err)
			continue
		}
		taken = append(taken, r)
	}
	s.verdicts = verdicts
	return taken, errors.Join(failed...)
}

func (s *Supervisor) isClosed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// isInterrupted reports whether Recover may have to continue a run. Such a run is of this supervisor's driver and not
// driven here. It is paused, or running without a live process, or it waits until a deadline for which no timer is set.
func (s *Supervisor) isInterrupted(ctx context.Context, info Info) (bool, error) {
	if info.Here || info.Run.Driver != s.cfg.Driver {
		return false, nil
	}
	switch info.Run.Status {
	case mark.RunIsPaused:
		return true, nil
	case mark.RunWaiting:
		s.mu.Lock()
		defer s.mu.Unlock()
		return !info.Run.Deadline.IsZero() && s.alarms[info.ID] == nil, nil
	case mark.RunRunning:
		held, err := s.Driver(ctx, info.ID)
		return held == nil && err == nil, ignore(err, ErrNotFound)
	}
	return false, nil
}

// shouldRecover reports whether Recover must continue an interrupted run. Config.Recovers must allow it, and a paused run must
// have been paused because its process stopped. The view has the run's log; it is nil if the log was not read.
func (s *Supervisor) shouldRecover(ctx context.Context, info Info) (*session.View, bool, error) {
	paused := info.Run.Status == mark.RunIsPaused
	if info.Run.Status == mark.RunWaiting && s.cfg.Recovers == nil {
		return nil, true, nil
	}
	view, run, err := s.get(ctx, info.ID, paused)
	if errors.Is(err, ErrNotFound) {
		return nil, false, nil // the run was deleted
	}
	if err != nil {
		return nil, false, err
	}
	if paused {
		var p mark.RunPaused
		last := view.Events()
		if last.Len() == 0 || run.Status != mark.RunIsPaused {
			return nil, false, nil
		}
		m := last.At(last.Len() - 1).Mark
		if m == nil || m.Kind != mark.KindRunPaused || m.Decode(&p) != nil || p.Reason != reasonProcessEnds {
			return nil, false, nil
		}
		if s.cfg.Recovers == nil {
			return nil, true, nil
		}
		if view, run, err = s.get(ctx, info.ID, false); err != nil {
			return nil, false, err
		}
	}
	if s.cfg.Recovers == nil {
		return view, true, nil
	}
	started, err := startedWith(view, run.ID)
	return view, err == nil && s.cfg.Recovers(started), nil
}

// maxDeaths is the number of processes that may end in a row while they drive a run, without finishing a step of it.
// Then Recover pauses the run and does not resume it.
const maxDeaths = 3

// pauseIfDeadly pauses a run that may have caused the end of the processes that drove it, such as by using too much memory. If
// it pauses the run, it returns an error that gives the reason.
func (s *Supervisor) pauseIfDeadly(ctx context.Context, id string, view *session.View) error {
	n, step := deaths(view)
	if n < maxDeaths {
		return view.Err()
	}
	l, err := s.acquire(ctx, s.key(id), &ResumeOptions{})
	if _, held := errors.AsType[*lease.HeldError](err); held {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.release(l)
	now, run, err := s.get(ctx, id, false)
	if err != nil || run.Status != mark.RunRunning || now.LastSeq() != view.LastSeq() {
		return err
	}
	why := fmt.Sprintf("%d processes in a row ended while they drove it, before a step had finished (the last that began "+
		"is %s): find out why, such as too little memory, and resume the run then", n, step)
	err = s.undrivenRun(ctx, l, run).carryOutUndriven(now, &runRequest{Do: doPauseNow, By: s.cfg.Owner, Reason: why})
	return errors.Join(fmt.Errorf("pause run %q: %s", id, why), err)
}

// deaths returns how many processes in a row have taken up the last run of a session and ended before a step of it
// finished, and the step that began last.
func deaths(view *session.View) (n int, step session.Address) {
	run, gone := session.RunOf(view), view.Log().Superseded()
	// All three are about the time since the run was last taken up: it was driven, a step finished, a step yielded events.
	went, finished, worked := false, false, false
	for ev := range view.Log().Outline() {
		switch {
		case run == nil || ev.InvocationID != run.ID || gone.Has(ev.Seq):
			continue
		case ev.Mark == nil:
			worked = worked || ev.Address != ""
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindRunStarted, mark.KindRunPaused:
			n, went = 0, false
		case mark.KindRunTaken:
			n = deathsAfter(n, went, finished || worked)
			went, finished, worked = false, false, false
		case mark.KindRunResumed: // before that the run may have waited for its turn
			went = true
		case mark.KindStepStarted:
			step = ev.Address
		case mark.KindStepFinished:
			var fin mark.StepFinished
			finished = finished || ev.Mark.Decode(&fin) == nil && !fin.Canceled
		case mark.KindIterationFinished, mark.KindLoopStopped, mark.KindAnswered:
			finished = true
		}
	}
	// Events of the last process (worked) are no progress yet, because the resumed run may repeat the step that yielded them.
	return deathsAfter(n, went, finished), step
}

// deathsAfter returns the new number of deaths in a row after one more process has ended: 0 after progress, n+1 if the process
// drove the run without progress, and n if the run still waited for its turn.
func deathsAfter(n int, went, progress bool) int {
	switch {
	case progress:
		return 0
	case went:
		return n + 1
	}
	return n
}

// setAlarm sets a timer that resumes a waiting run at its deadline. It replaces an earlier timer of the run. A zero
// deadline sets no timer.
func (s *Supervisor) setAlarm(id string, at time.Time) {
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
		_, _ = s.Resume(s.ctx, id, ResumeOptions{}) // an error is normal if another process drives the run
	})
}
