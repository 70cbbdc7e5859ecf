// SPDX-License-Identifier: Apache-2.0

// Package scheduler starts the runs of a file of schedules. Any number of servers can do so with one store: the ID of a run says
// its schedule and its time, so each time starts one run.
//
//	s := scheduler.New(scheduler.Config{Runs: runs})
//	s.Start()
//	defer s.Close()
//
// Package schedule reads the file and computes the times.
package scheduler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// Config describes a scheduler.
type Config struct {
	// Runs start the runs. Their folder has the file of schedules. Required.
	Runs *operations.Runs
	// Now is the clock; nil means time.Now. The scheduler looks at it at least every 5 s, because clocks jump.
	Now func() time.Time
}

// Times of the scheduler.
const (
	lookEvery  = 5 * time.Second // the longest time between two looks at the file and the clock
	retryAfter = time.Second     // the time between two tries of a start that waits or that the store has refused
	retryMost  = time.Minute     // the longest time between two tries of a start that the store has refused
)

// parallel is how many runs are started at once.
const parallel = 8

// Scheduler starts runs. It is safe for concurrent use.
type Scheduler struct {
	Records

	runs   *operations.Runs
	log    *slog.Logger
	now    func() time.Time
	ctx    context.Context // ends when Close is called
	cancel context.CancelFunc

	work, dealing sync.WaitGroup
	wake          chan struct{} // gets a value when a goroutine has dealt with a schedule
	places        chan struct{} // has one value for each start in progress

	mu       sync.Mutex
	text     []byte // of the file when it was last read; nil if there was none
	loaded   bool   // the file has been read, or there was none
	unread   string // why the last look could not read the file
	list     []*entry
	problems definition.Problems
}

// entry is a schedule of the file.
type entry struct {
	*schedule.Schedule

	now func() time.Time

	mu     sync.Mutex
	busy   bool          // a goroutine deals with a time of the schedule
	found  bool          // the store has a record of the schedule
	done   time.Time     // the last time that needs nothing more from this process
	queued bool          // a time waits for the end of an earlier run
	failed time.Time     // the time whose start has failed here
	pause  time.Duration // the wait after the last error; until is its end
	until  time.Time
}

// New returns a scheduler that starts nothing yet.
func New(cfg Config) *Scheduler {
	r := cfg.Runs
	s := &Scheduler{Records: Records{Service: r.Service, AppName: r.AppName, UserID: r.UserID}, runs: r, log: r.Log, now: cfg.Now,
		wake: make(chan struct{}, 1), places: make(chan struct{}, parallel)}
	if s.now == nil {
		s.now = time.Now
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start starts the runs of the schedules from now on, until Close.
func (s *Scheduler) Start() {
	s.work.Go(func() {
		for s.ctx.Err() == nil {
			s.begin(s.ctx)
			select {
			case <-s.ctx.Done():
			case <-s.wake:
			case <-time.After(s.wait()):
			}
		}
	})
}

// Close ends the goroutines of Start and waits for them. The runs go on.
func (s *Scheduler) Close() {
	s.cancel()
	s.work.Wait()
}

// Look reads the file if it has changed, and deals with the times that are due. Start does so again and again.
func (s *Scheduler) Look(ctx context.Context) {
	s.begin(ctx)
	s.dealing.Wait()
}

// begin begins to deal with the schedules that are due. A start that takes long does not delay other schedules.
func (s *Scheduler) begin(ctx context.Context) {
	list, _ := s.read()
	now := s.now()
	var due []*entry
	for _, e := range list {
		if e.claim(now) {
			due = append(due, e)
		}
	}
	if len(due) == 0 {
		return
	}
	open, err := s.openRuns(ctx)
	for _, e := range due {
		s.dealing.Add(1)
		s.work.Go(func() {
			defer s.dealing.Done()
			wrong := err
			if wrong == nil {
				s.places <- struct{}{}
				wrong = s.deal(ctx, e, open, now)
				<-s.places
			}
			e.release(wrong)
			if wrong != nil && ctx.Err() == nil {
				s.log.Warn("a schedule is tried again", "schedule", e.Name, "error", credential.Masked(wrong.Error()))
			}
			select {
			case s.wake <- struct{}{}:
			default:
			}
		})
	}
}

// wait returns the time until the next look.
func (s *Scheduler) wait() time.Duration {
	wait, now := lookEvery, s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.list {
		wait = min(wait, e.wait(now))
	}
	return max(wait, time.Millisecond)
}

// claim reports whether a schedule has something to do now that no goroutine does already. The caller deals with it and then calls
// release. After a clock was turned back, times are due again; their runs exist.
func (e *entry) claim(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy || e.until.After(now) && e.until.Before(now.Add(2*retryMost)) {
		return false
	}
	if e.done.After(now) {
		e.done = now
	}
	e.busy = !e.found || e.queued || !e.Newest(e.done, now).IsZero()
	return e.busy
}

// release ends what claim began. After an error, such as that of a store that does not answer, the schedule is tried again, after a
// wait that grows.
func (e *entry) release(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy = false
	if err == nil {
		e.pause, e.until = 0, time.Time{}
		return
	}
	e.pause = min(max(2*e.pause, retryAfter), retryMost)
	e.until = e.now().Add(e.pause)
}

// wait returns the time until the schedule may have something to do.
func (e *entry) wait(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.busy:
		return lookEvery // release ends the wait
	case e.until.After(now):
		return e.until.Sub(now)
	case e.queued:
		return retryAfter
	case !e.found:
		return 0
	}
	t := e.Next(e.done)
	if !t.IsZero() && !e.Due(t).After(now) && e.Newest(e.done, now).IsZero() { // it is too late for t
		t = e.Next(now)
	}
	if t.IsZero() {
		return lookEvery
	}
	return e.Due(t).Sub(now)
}

// errVanished reports that there was a file, and is none.
var errVanished = errors.New("it has vanished: no schedule starts a run, and no run is removed, until it is back or the server restarts")

// read reads the file if it has changed. A file that has vanished is a problem: it may have said how long runs are kept.
func (s *Scheduler) read() ([]*entry, definition.Problems) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := s.runs.Folder.ReadFile(schedule.File)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && (!missing || s.text != nil) {
		if missing {
			err, s.list = errVanished, nil
		}
		if s.unread != err.Error() {
			s.log.Error("the file of schedules cannot be read", "error", err.Error())
		}
		s.unread = err.Error()
		s.problems = definition.Problems{{File: schedule.File, Severity: definition.SeverityError, Code: definition.CodeFile, Message: err.Error()}}
		return s.list, s.problems
	}
	if s.loaded && s.unread == "" && bytes.Equal(text, s.text) {
		return s.list, s.problems
	}
	all, problems := schedule.Parse(schedule.File, text)
	s.text, s.loaded, s.unread, s.problems = text, true, "", problems
	for _, p := range problems {
		s.log.Error("the file of schedules has a mistake", "problem", p.Error(), "hint", p.Hint)
	}
	if len(problems) == 0 {
		s.replace(all)
	}
	return s.list, s.problems
}

// Schedules returns the schedules of the last valid text of the file, and the problems of the present one, which it reads if it has
// changed. A file that has vanished has a problem and no schedules.
func (s *Scheduler) Schedules() (list []*schedule.Schedule, problems definition.Problems) {
	entries, problems := s.read()
	for _, e := range entries {
		list = append(list, e.Schedule)
	}
	return list, problems
}

// replace takes over the schedules of a new text. A schedule whose rule is the same keeps its progress.
func (s *Scheduler) replace(all []*schedule.Schedule) {
	list := make([]*entry, len(all))
	for i, one := range all {
		list[i] = &entry{Schedule: one, now: s.now}
		for _, old := range s.list {
			if old.Name == one.Name && old.Rule() == one.Rule() {
				old.mu.Lock()
				list[i].found, list[i].done, list[i].queued, list[i].failed = old.found, old.done, old.queued, old.failed
				old.mu.Unlock()
			}
		}
		if err := s.runs.Folder.CheckSchedule(one); err != nil {
			s.log.Warn("a schedule can start no run", "schedule", one.Name, "at", one.At.String(), "error", err.Error())
		}
	}
	s.list = list
}

// deal deals with the newest time of a schedule that is due: it starts the run, or records why it does not. The caller has claimed
// the schedule.
func (s *Scheduler) deal(ctx context.Context, e *entry, open []openRun, now time.Time) error {
	if !e.found {
		if err := s.find(ctx, e.Name, e.Rule(), now); err != nil {
			return err
		}
	}
	rec, p, err := s.Read(ctx, e.Name)
	if err != nil {
		return err
	}
	e.mu.Lock()
	after := e.done
	e.mu.Unlock()
	for _, t := range []time.Time{rec.Since, p.decided(e.failed)} {
		if t.After(after) && !t.After(now) {
			after = t
		}
	}
	t := e.Newest(after, now)
	if t.IsZero() && p.Queued.After(rec.Since) {
		t = p.Queued
	}
	switch {
	case !rec.Paused.IsZero():
		e.settle(now, false)
		return nil
	case t.IsZero():
		e.settle(after, false)
		return nil
	}
	return s.decide(ctx, e, t, open)
}

// settle records that the times up to t need nothing more from this process, or that one of them waits.
func (e *entry) settle(t time.Time, queued bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found, e.queued = true, queued
	if t.After(e.done) {
		e.done = t
	}
}

// decided returns the last time that needs no decision. A start that has failed on another server is tried here too; failed is the
// time whose start has failed here.
func (p *Progress) decided(failed time.Time) time.Time {
	if p.Last == nil || p.Last.Outcome == Failed && !p.Last.Time.Equal(failed) {
		return time.Time{}
	}
	return p.Last.Time
}

// decide starts the run of a time, unless an earlier run of the schedule has not ended.
func (s *Scheduler) decide(ctx context.Context, e *entry, t time.Time, open []openRun) error {
	id := e.RunID(t)
	earlier := slices.DeleteFunc(slices.Clone(open), func(r openRun) bool { return !e.Owns(r.id) || r.id == id })
	if len(earlier) == 0 {
		return s.start(ctx, e, t, id)
	}
	if _, err := s.runs.Brief(ctx, id, 1); err == nil { // another server has started it
		return s.record(ctx, e, Last{Time: t, Outcome: Started, Run: id})
	}
	if e.Overlap == schedule.Skip {
		return s.record(ctx, e, Last{Time: t, Outcome: Skipped, Run: earlier[0].id, Why: earlier[0].status})
	}
	if e.Overlap == schedule.CancelPrevious {
		if err := s.cancelAll(ctx, e.Name, earlier); err != nil {
			return err
		}
	}
	err := s.changeProgress(ctx, e.Name, func(p *Progress) bool {
		later := t.After(p.Queued)
		if later {
			p.Queued = t
		}
		return later
	})
	if err == nil {
		e.settle(t, true)
	}
	return err
}

// start starts the run of a time.
func (s *Scheduler) start(ctx context.Context, e *entry, t time.Time, id string) error {
	err := s.launch(ctx, e.Schedule, id)
	if err == nil {
		s.log.Info("a schedule has started a run", "schedule", e.Name, "run", id)
	}
	if err == nil || errors.Is(err, session.ErrExists) || errors.Is(err, supervisor.ErrUnderWay) {
		return s.record(ctx, e, Last{Time: t, Outcome: Started, Run: id})
	}
	what := problem.Of(err)
	if ctx.Err() != nil || what.Status >= http.StatusInternalServerError {
		return fmt.Errorf("start run %s: %w", id, err) // it is tried again, here or by another server
	}
	why := credential.Masked(what.Whole())
	s.log.Warn("a schedule cannot start its run", "schedule", e.Name, "time", t.Format(time.RFC3339), "error", why)
	e.mu.Lock()
	e.failed = t
	e.mu.Unlock()
	return s.record(ctx, e, Last{Time: t, Outcome: Failed, Why: why})
}

// record stores the outcome of a time, unless a later time or a start of this time is stored.
func (s *Scheduler) record(ctx context.Context, e *entry, last Last) error {
	err := s.changeProgress(ctx, e.Name, func(p *Progress) bool {
		if known := p.Last; known != nil && known.Time.After(last.Time) && !known.Time.After(s.now()) ||
			known != nil && known.Time.Equal(last.Time) && known.Outcome == Started {
			return false
		}
		p.Last = &last
		if !p.Queued.After(last.Time) {
			p.Queued = time.Time{}
		}
		return true
	})
	if err == nil {
		e.settle(last.Time, false)
	}
	return err
}

// launch starts a run of a schedule. It fails with session.ErrExists if the run exists.
func (s *Scheduler) launch(ctx context.Context, one *schedule.Schedule, id string) error {
	args := operations.StartArgs{Definition: one.Definition, Input: one.Request, State: one.Set}
	_, err := s.runs.Start(ctx, &operations.StartRequest{StartArgs: args, ID: id, New: true}, "", nil)
	return err
}

// openRun is a run that has not ended.
type openRun struct{ id, status string }

// openRuns returns the runs of the store that have not ended, the newest first.
func (s *Scheduler) openRuns(ctx context.Context) ([]openRun, error) {
	infos, err := s.runs.Supervisor.ListOpen(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(infos, func(a, b supervisor.Info) int { return b.Run.Started.Compare(a.Run.Started) })
	open := make([]openRun, len(infos))
	for i, info := range infos {
		open[i] = openRun{info.ID, string(info.Run.Status)}
	}
	return open, nil
}

// cancelAll asks earlier runs of a schedule to end.
func (s *Scheduler) cancelAll(ctx context.Context, name string, earlier []openRun) error {
	ctx = supervisor.As(ctx, "schedule "+name)
	for _, r := range earlier {
		err := s.runs.Cancel(ctx, r.id, "the schedule starts its next run")
		if err != nil && !errors.Is(err, supervisor.ErrOver) && !errors.Is(err, supervisor.ErrNotFound) {
			return err
		}
	}
	return nil
}
