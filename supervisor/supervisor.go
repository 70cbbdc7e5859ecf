// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// Supervisor drives runs. It is safe for concurrent use. Call Close at the end.
type Supervisor struct {
	cfg     Config
	leaser  lease.Leaser
	watcher store.Watcher
	queue   queue
	ctx     context.Context // of the work that no caller asked for, such as looks for interrupted runs
	stop    context.CancelFunc
	work    sync.WaitGroup
	closing chan struct{} // closed by Close

	recovering sync.Mutex // held during a look for interrupted runs; guards verdicts
	verdicts   map[string]verdict

	mu                sync.Mutex
	recoversRegularly bool                   // recoverRegularly has started
	runs              map[string]*Run        // runs that this supervisor drives, by ID
	enrolling         map[string]bool        // IDs of runs whose lease enroll is acquiring
	alarms            map[string]*time.Timer // timers for the deadlines of waiting runs, by ID
	closed            bool
}

// New returns a supervisor that drives no run yet. It fails if a required field of the config is
// missing.
func New(cfg Config) (*Supervisor, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Supervisor{
		cfg: cfg, leaser: cfg.Service.(lease.Leaser), watcher: cfg.Service.(store.Watcher),
		queue:   queue{mostWaiting: cfg.MaxQueued, all: newPlaces(cfg.MaxRuns), guests: newPlaces(cfg.MaxGuests)},
		closing: make(chan struct{}), runs: make(map[string]*Run), enrolling: make(map[string]bool), alarms: make(map[string]*time.Timer),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// closeWait is how long Close waits for the goroutines of runs whose steps it has cut off.
const closeWait = 5 * time.Second

// reasonProcessEnds is the reason that Close and HandOver record for a pause. Recover continues a run that was paused for this reason.
const reasonProcessEnds = "the process that drives the run ends"

// Close pauses each run that the supervisor drives at its next step boundary, and waits for it.
// [Supervisor.Recover] continues these runs. When ctx ends, Close cuts off the steps that are still
// running; those runs can be resumed too, and repeat these steps. The error names the runs that did not end
// even then. The session service stays open.
func (s *Supervisor) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		close(s.closing)
	}
	s.closed = true
	for _, a := range s.alarms {
		a.Stop()
	}
	clear(s.alarms)
	runs := slices.Collect(maps.Values(s.runs))
	s.mu.Unlock()
	why := func(r *Run) *PausedError { return &PausedError{By: r.owner, Reason: reasonProcessEnds, HandOver: true} }
	for _, r := range runs {
		r.askPause(why(r))
	}
	for _, r := range runs {
		select {
		case <-r.done:
		case <-ctx.Done():
			r.cutOff(why(r))
		}
	}
	ended := make(chan struct{})
	go func() { s.work.Wait(); close(ended) }()
	late := time.NewTimer(closeWait)
	defer late.Stop()
	select {
	case <-ended:
		s.stop()
		return nil
	case <-late.C:
	}
	s.stop()
	var left []string
	for _, r := range runs {
		select {
		case <-r.done:
		default:
			left = append(left, r.ID())
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("close supervisor: runs that do not end: %s", strings.Join(left, ", "))
}

// key returns the key of a run's session.
func (s *Supervisor) key(id string) lease.Key {
	return lease.Key{AppName: s.cfg.AppName, UserID: s.cfg.UserID, SessionID: id}
}

// driving returns a run that this process drives; nil if it does not drive it.
func (s *Supervisor) driving(id string) *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id]
}

// Driving returns the runs that this supervisor drives, in no order, including those that wait for their
// turn.
func (s *Supervisor) Driving() []*Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.runs))
}

// get returns a run's session and the status of the run; if brief is true, the session has only its last event. If
// nothing has run in the session, get returns the session and an error that wraps ErrNotFound.
func (s *Supervisor) get(ctx context.Context, id string, brief bool) (*session.View, *mark.Run, error) {
	req := &session.GetRequest{AppName: s.cfg.AppName, UserID: s.cfg.UserID, SessionID: id}
	if brief {
		req.NumRecentEvents = 1
	}
	got, err := s.cfg.Service.Get(ctx, req)
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if err != nil {
		return nil, nil, err
	}
	view := session.ViewOf(got.Session)
	run := session.RunOf(view)
	if run == nil {
		return view, nil, fmt.Errorf("%w: in session %q nothing has run", ErrNotFound, id)
	}
	return view, run, nil
}

// refresh returns what get returns, but does not read the log again if nobody has appended an event since the view
// known was read. Then it returns known. A nil known means that the caller has no view.
func (s *Supervisor) refresh(ctx context.Context, id string, known *session.View) (*session.View, *mark.Run, error) {
	if known == nil {
		return s.get(ctx, id, false)
	}
	now, run, err := s.get(ctx, id, true)
	if err != nil {
		return nil, nil, err
	}
	if known.RefreshShared(now) {
		return known, run, nil
	}
	return s.get(ctx, id, false)
}

// Watch yields the events of a run whose Seq is greater than after, and then each new event, in
// whichever process drives the run; see [store.Watcher]. It does not end when the run ends.
func (s *Supervisor) Watch(ctx context.Context, id string, after int64) iter.Seq2[*session.Event, error] {
	return s.watcher.Watch(ctx, s.key(id), after)
}

// Info describes a run.
type Info struct {
	// ID is the ID of the run and of its session.
	ID string
	// Run is the status of the run according to the log.
	Run mark.Run
	// Updated is when the run's last event was appended.
	Updated time.Time
	// Here is true if this supervisor drives the run, Queued if the run waits here for its turn.
	Here, Queued bool
}

// List describes all runs without reading their logs. A run with the status running may have been
// interrupted; [Supervisor.Driver] reports whether a process drives it.
func (s *Supervisor) List(ctx context.Context) ([]Info, error) {
	got, err := s.cfg.Service.List(ctx, &session.ListRequest{AppName: s.cfg.AppName, UserID: s.cfg.UserID, Brief: true})
	if err != nil {
		return nil, err
	}
	return s.infos(got.Sessions), nil
}

// ListOpen describes the runs that are not over, at a cost that does not grow with the number of
// other runs; see [store.OpenLister]. With an error it also returns the runs that could be read,
// if any.
func (s *Supervisor) ListOpen(ctx context.Context) ([]Info, error) {
	open, err := store.ListOpen(ctx, s.cfg.Service, &session.ListRequest{AppName: s.cfg.AppName, UserID: s.cfg.UserID})
	return s.infos(open), err
}

// infos describes the last run of each session. It skips sessions in which nothing has run.
func (s *Supervisor) infos(sessions []session.Session) (all []Info) {
	for _, one := range sessions {
		run := session.RunOf(one)
		if run == nil {
			continue
		}
		info := Info{ID: one.ID(), Run: *run, Updated: one.LastUpdateTime()}
		if r := s.driving(one.ID()); r != nil {
			info.Here, info.Queued = true, r.Queued()
		}
		all = append(all, info)
	}
	return all
}
