// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

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
// just before Recover still has its lease, and other processes may die later. [Config.OnRecovery] hears of the runs
// that a later look continues.
func (s *Supervisor) Recover(ctx context.Context) ([]*Run, error) {
	runs, err := s.look(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.looks && !s.closed {
		s.looks = true
		s.work.Go(s.lookAgain)
	}
	return runs, err
}

// lookAgain looks for interrupted runs until the supervisor is closed.
func (s *Supervisor) lookAgain() {
	tick := time.NewTicker(s.tick())
	defer tick.Stop()
	before := ""
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
		}
		runs, err := s.look(s.ctx)
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

// tick returns the time between two looks.
func (s *Supervisor) tick() time.Duration { return max(1, s.cfg.LeaseTTL/3) }

// verdict is why a look leaves a run alone that has not changed since.
type verdict struct {
	updated time.Time     // the last change of the run
	until   time.Time     // when to try again; zero if the run is not one of this supervisor's
	wait    time.Duration // after the last failure
}

// look continues the runs that are interrupted now.
func (s *Supervisor) look(ctx context.Context) ([]*Run, error) {
	s.looking.Lock()
	defer s.looking.Unlock()
	var taken []*Run
	var failed []error
	all, err := s.ListOpen(ctx)
	if err != nil {
		failed = append(failed, fmt.Errorf("recover runs: %w", err))
	}
	sort.SliceStable(all, func(i, k int) bool { return all[i].Run.Started.Before(all[k].Run.Started) }) // smaller than slices
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
			wait := min(max(2*known.wait, s.tick()), 64*s.tick())
			verdicts[info.ID] = verdict{info.Updated, time.Now().Add(wait), wait}
		}
		interrupted, err := s.interrupted(ctx, info)
		if err != nil {
			failed = append(failed, err)
		}
		if !interrupted {
			continue
		}
		mine, err := s.recovers(ctx, info)
		switch {
		case err != nil:
			failure(err)
			continue
		case !mine:
			verdicts[info.ID] = verdict{updated: info.Updated}
			continue
		case info.Run.Status == mark.RunWaiting && time.Now().Before(info.Run.Deadline):
			s.alarm(info.ID, info.Run.Deadline)
			continue
		}
		r, err := s.Resume(ctx, info.ID, ResumeOptions{})
		if _, held := errors.AsType[*lease.HeldError](err); held || errors.Is(err, ErrUnderWay) ||
			errors.Is(err, ErrOver) || errors.Is(err, ErrClosed) {
			continue // somebody else was faster, or it has a driver
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

// interrupted reports whether no process drives a run that goes on without a person, as far as its description tells,
// or whether a run waits until a deadline for which no alarm is set.
func (s *Supervisor) interrupted(ctx context.Context, info Info) (bool, error) {
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
		held, err := s.Driver(ctx, info.ID) // before its log is read
		return held == nil && err == nil, ignore(err, ErrNotFound)
	}
	return false, nil
}

// recovers reports whether Recover is to continue a run: it is one of its own, and if it is paused,
// the end of a process has paused it.
func (s *Supervisor) recovers(ctx context.Context, info Info) (bool, error) {
	paused := info.Run.Status == mark.RunIsPaused
	if !paused && s.cfg.Recovers == nil {
		return true, nil
	}
	view, run, err := s.get(ctx, info.ID, paused)
	if errors.Is(err, ErrNotFound) {
		return false, nil // somebody has removed it
	}
	if err != nil {
		return false, err
	}
	if paused {
		var p mark.RunPaused
		last := view.Events()
		if last.Len() == 0 || run.Status != mark.RunIsPaused {
			return false, nil
		}
		m := last.At(last.Len() - 1).Mark
		if m == nil || m.Kind != mark.KindRunPaused || m.Decode(&p) != nil || p.Reason != ends {
			return false, nil
		}
		if s.cfg.Recovers == nil {
			return true, nil
		}
		if view, run, err = s.get(ctx, info.ID, false); err != nil {
			return false, err
		}
	}
	started, err := startedWith(view, run.ID)
	return err == nil && s.cfg.Recovers(started), nil
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
