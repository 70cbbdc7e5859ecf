// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/web/runpage"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// feed follows one run for all of its clients. Each event is read, encoded and folded once. Each client takes events from the
// feed at its own speed, so a slow client does not delay the others.
type feed struct {
	s      *Server
	id     string
	cancel context.CancelFunc
	ready  chan struct{} // closed when the log was folded
	done   chan struct{} // closed when the feed has stopped following the run

	mu      sync.Mutex
	users   int           // how many callers of follow have not called leave
	idle    *time.Timer   // ends the feed after the last user has left
	changed chan struct{} // closed at the next change
	version int64         // counts changes
	err     error         // why the run is no longer followed; nil while it is
	seq     int64         // the sequence number of the last event that clients can take
	readers int           // how many clients read events; if there are none, ring is empty
	ring    []line        // the last events
	size    int           // of ring, in bytes

	folds
	status   string // the status of the run according to the log and the lease
	drivenBy string // the owner of the lease; "" if no process drives the run
	parent   *mark.RunParent

	renderings map[renderKey]rendering // the cached results of render
}

// feeds has the feeds of the runs that clients follow.
type feeds struct {
	mu    sync.Mutex
	byRun map[string]*feed
}

// folds holds the results of folding a run's events. Each event is folded once, and only the last few events are kept.
type folds struct {
	folded     int64  // the sequence number of the last folded event
	invocation string // the ID of the session's last run; events of other runs are not folded
	live       *progress.Live
	watch      *prose.Watch
	page       runpage.Page
	whole      *runlog.Wholes   // reads the long texts that the folds do not keep
	last       []*session.Event // a few of the last events, for a summary
	began      time.Time        // see progress.StartTime

	name, definition string // the run's name, and the name of its definition in the folder
	looks            map[string]runpage.Look
	workspace        *runfiles.Config
}

// renderKey is the key of a cached result of render: the kind ("snapshot" or "view") and the language.
type renderKey struct {
	what string
	lang prose.Language
}

// rendering is JSON that was made from the run at one moment.
type rendering struct {
	text         []byte
	version, seq int64     // the version of the feed, and the last event in text
	at           time.Time // when it was made
}

// line is an event as JSON, as clients get it.
type line struct {
	seq  int64
	text []byte
}

// Limits and times of a feed.
const (
	ringMost    = 1 << 20          // the most bytes of events in the ring
	lastMost    = 64               // the least number of last events that are kept for a summary
	idleTime    = 30 * time.Second // how long a feed without users continues
	statusEvery = 2 * time.Second  // the time between two checks whether a process drives the run
)

// follow returns the feed of a run, once the feed has read the log. The caller must call leave on it.
func (s *Server) follow(ctx context.Context, id string) (*feed, error) {
	s.feeds.mu.Lock()
	f := s.feeds.byRun[id]
	if f == nil {
		s.feeds.mu.Unlock()
		if _, err := s.runs.Brief(ctx, id, 1); err != nil { // a run that does not exist gets no feed
			return nil, err
		}
		s.feeds.mu.Lock()
		if f = s.feeds.byRun[id]; f == nil {
			running, cancel := context.WithCancel(context.Background())
			f = &feed{s: s, id: id, cancel: cancel, ready: make(chan struct{}), done: make(chan struct{}), changed: make(chan struct{})}
			go f.run(running)
			s.feeds.byRun[id] = f
		}
	}
	f.mu.Lock()
	f.users++
	if f.idle != nil {
		f.idle.Stop()
		f.idle = nil
	}
	f.mu.Unlock()
	s.feeds.mu.Unlock()
	select {
	case <-f.ready:
	case <-ctx.Done():
		f.leave()
		return nil, context.Cause(ctx)
	}
	f.mu.Lock()
	err := f.err
	f.mu.Unlock()
	if err != nil {
		f.leave()
		return nil, err
	}
	return f, nil
}

// leave ends the use of the feed by one caller of follow. A feed without users continues for a while, because a client that
// reloads a page needs it again.
func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users--; f.users > 0 {
		return
	}
	after := idleTime
	if f.err != nil {
		after = 0
	}
	f.idle = time.AfterFunc(after, f.retire)
}

// retire ends the feed if it has no users.
func (f *feed) retire() {
	f.s.feeds.mu.Lock()
	defer f.s.feeds.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users == 0 && f.s.feeds.byRun[f.id] == f {
		delete(f.s.feeds.byRun, f.id)
		f.cancel()
	}
}

// run reads the log, and then follows it until ctx ends or reading fails.
func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	err := f.fold(ctx)
	if err == nil {
		f.updateStatus(ctx)
	}
	f.fail(err)
	close(f.ready)
	if err != nil {
		return
	}
	var watchers sync.WaitGroup
	defer watchers.Wait()
	inner, stop := context.WithCancel(ctx)
	defer stop()
	watchers.Go(func() { f.watchDriver(inner) })
	for ev, err := range f.s.runs.Supervisor.Watch(ctx, f.id, f.seq) {
		if err == nil {
			err = f.add(ctx, ev)
		}
		if err != nil {
			f.fail(err)
			return
		}
	}
}

// fail sets the error of the feed, unless it is nil, and wakes the clients that wait.
func (f *feed) fail(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.notify()
}

// notify counts a change, and wakes the clients that wait for one. f.mu is held.
func (f *feed) notify() {
	f.version++
	close(f.changed)
	f.changed = make(chan struct{})
}

// fold reads the whole log and folds it from the beginning. The folds get only the newest of the long texts.
func (f *feed) fold(ctx context.Context) error {
	view, err := f.view(ctx)
	if err != nil {
		return err
	}
	whole := &runlog.Wholes{Fetch: f.view}
	now := folds{live: &progress.Live{Whole: whole.Of}, watch: &prose.Watch{Fold: progress.Fold{Whole: whole.Of}}, whole: whole}
	now.page = runpage.Page{Live: now.live, Watch: now.watch}
	if n := view.Log().Len(); n > 0 {
		now.invocation = view.Log().At(n - 1).InvocationID
	}
	gone := view.Log().Superseded()
	for ev := range runlog.Recent(outlines(view), view.Log().Full) {
		now.foldEvent(f.s, ev, !gone.Has(ev.Seq))
	}
	if err := view.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.folds = now; f.seq == 0 {
		f.seq = f.folded
	}
	return nil
}

// outlines yields the log without its long texts.
func outlines(view *session.View) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for ev := range view.Log().Outline() {
			if !yield(ev.Outlined()) {
				return
			}
		}
	}
}

// view fetches the session of the run.
func (f *feed) view(ctx context.Context) (*session.View, error) {
	return f.s.runs.Brief(ctx, f.id, 0)
}

// foldEvent folds the next event of the log. counts is false if the event is superseded.
func (f *folds) foldEvent(s *Server, ev *session.Event, counts bool) {
	f.folded = ev.Seq
	f.page.Wrote(ev)
	if ev.InvocationID != f.invocation {
		return
	}
	f.began = progress.StartTime(f.began, ev)
	if f.last = append(f.last, ev); len(f.last) > 2*lastMost {
		f.last = slices.Clone(f.last[lastMost:])
	}
	f.live.AddOnce(ev, counts)
	if !counts {
		return
	}
	f.watch.Add(ev)
	f.page.Add(ev)
	if f.name == "" {
		f.readStart(s, ev)
	}
}

// add folds the next event and offers it to the clients. If the event supersedes others or belongs to another run, add folds
// the whole log again.
func (f *feed) add(ctx context.Context, ev *session.Event) error {
	f.mu.Lock()
	again, read := ev.InvocationID != f.invocation || ev.Mark.Supersedes() != nil, f.readers > 0
	f.mu.Unlock()
	if again {
		if err := f.fold(ctx); err != nil {
			return err
		}
	}
	var text []byte
	if read {
		var err error
		if text, err = wire.Event(ev); err != nil {
			return err
		}
	}
	run := ev.Mark != nil && ev.Actions.StateDelta[mark.KeyRun] != nil
	f.mu.Lock()
	if ev.Seq > f.folded {
		f.foldEvent(f.s, ev, true)
	}
	f.seq = ev.Seq
	if text == nil || f.readers == 0 {
		f.ring, f.size = nil, 0
	} else {
		f.ring, f.size = append(f.ring, line{ev.Seq, text}), f.size+len(text)
	}
	for f.size > ringMost && len(f.ring) > 1 {
		f.size -= len(f.ring[0].text)
		f.ring = f.ring[1:]
	}
	f.notify()
	f.mu.Unlock()
	if run {
		f.updateStatus(ctx)
	}
	return nil
}

// beginReading counts a client that reads events, until it calls end. The feed keeps events only while there is such a client.
func (f *feed) beginReading() (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.readers--; f.readers == 0 {
			f.ring, f.size = nil, 0
		}
	}
}

// onEvent receives an event from the supervisor. It passes on pieces of streamed answers to the run's feed. All other events
// reach the feed through the log, whichever process drives the run.
func (s *Server) onEvent(id string, ev *session.Event) {
	s.pieces.Hear(id, ev)
	if !ev.Partial {
		s.list.onEvent(ev)
		return
	}
	s.feeds.mu.Lock()
	f := s.feeds.byRun[id]
	s.feeds.mu.Unlock()
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.live != nil && ev.InvocationID == f.invocation {
		f.live.Add(ev)
		f.notify()
	}
}

// watchDriver checks from time to time whether a process still drives the run, because the death of a process is not an event
// of the log.
func (f *feed) watchDriver(ctx context.Context) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.mu.Lock()
			running := !mark.RunStatus(f.status).IsFinal()
			f.mu.Unlock()
			if running {
				f.updateStatus(ctx)
			}
		}
	}
}

// updateStatus updates the status of the run and its driver from the store.
func (f *feed) updateStatus(ctx context.Context) {
	one, err := f.s.runs.Brief(ctx, f.id, 1)
	if err != nil {
		return // the goroutine that watches the log reports it
	}
	by := mark.RunRunning
	run := session.RunOf(one)
	if run != nil {
		by = run.Status
	}
	status, held, err := runlog.PresentStatus(ctx, f.s.runs.Service, f.s.runs.Key(f.id), by, f.s.runs.Dead)
	if err != nil {
		return
	}
	if run == nil && status == runlog.StatusInterrupted {
		status = runlog.StatusNotBegun
	}
	owner := ""
	if held != nil {
		owner = held.Owner
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if run != nil {
		f.parent = run.Parent
	}
	if f.status != status || f.drivenBy != owner {
		f.status, f.drivenBy = status, owner
		f.notify()
	}
}

// snapshot is a run at one moment.
type snapshot struct {
	// Seq is the sequence number of the last event in it. A client that reads events after Seq misses none.
	Seq int64 `json:"seq"`
	*runlog.Report
	Loops []loopView `json:"loops"`
	// Outlooks describe the loops: the sentence, the ledger, the forecast.
	Outlooks []prose.Outlook `json:"outlooks"`
	// Now is the time of the server.
	Now time.Time `json:"now"`
}

// loopView is a loop with the number of its iterations. The tree of a snapshot has only the last of them.
type loopView struct {
	Loop  session.Address `json:"loop"`
	Count int             `json:"count"`
}

// How many iterations of an outermost loop, and of a loop inside another one, are in a snapshot.
const (
	outerIterations = 30
	innerIterations = 5
)

// render returns the result of the function of as JSON without secrets. It returns a cached result if the run has not changed
// since, or if the cached result is younger than old. So it is made at most once for each change, for all clients.
func (f *feed) render(key renderKey, old time.Duration, of func() any) (rendering, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return rendering{}, f.err
	}
	if was := f.renderings[key]; was.text != nil && (was.version == f.version || time.Since(was.at) < old) {
		return was, nil
	}
	at := time.Now()
	text, err := progress.MarshalJSON(of())
	if err == nil && f.whole.Err != nil {
		err, *f.whole = f.whole.Err, runlog.Wholes{Fetch: f.view} // the next call tries again to read the store
	}
	if err != nil {
		return rendering{}, err
	}
	if f.renderings == nil {
		f.renderings = make(map[renderKey]rendering)
	}
	f.renderings[key] = rendering{[]byte(credential.Masked(string(text))), f.version, f.folded, at}
	return f.renderings[key], nil
}

// snapshot returns the whole run as JSON, with the last iterations of each loop. The result may be up to old out of date.
func (f *feed) snapshot(lang prose.Language, old time.Duration) (rendering, error) {
	return f.render(renderKey{"snapshot", lang}, old, func() any {
		sum := progress.Summarize(f.last)
		if !f.began.IsZero() {
			sum.Began = f.began
		}
		rep := runlog.Tell(f.id, sum, f.live, f.watch)
		rep.Status, rep.DrivenBy = f.status, f.drivenBy
		snap := snapshot{Seq: f.folded, Report: rep, Loops: []loopView{}, Now: time.Now()}
		tree := *rep.Tree
		for step := range tree.Loops() {
			if step.Loop.Plan != nil && len(snap.Loops) < pageMost {
				snap.Loops = append(snap.Loops, loopView{step.Address, len(step.Loop.Iterations)})
			}
		}
		snap.Outlooks = prose.Outlooks(f.live.Tree(), lang)
		tree.Root = clip(tree.Root, outerIterations)
		rep.Tree = &tree
		return snap
	})
}

// clip returns a copy of a step with only the last iterations of its loops: most of an outermost loop, and innerIterations
// of a loop inside another one.
func clip(step *progress.Step, most int) *progress.Step {
	if step == nil {
		return nil
	}
	one := *step
	one.Steps = clipAll(step.Steps, most)
	if step.Loop == nil {
		return &one
	}
	l := *step.Loop
	l.Iterations = nil
	for _, it := range step.Loop.Iterations[max(0, len(step.Loop.Iterations)-most):] {
		pass := *it
		pass.Steps = clipAll(it.Steps, innerIterations)
		l.Iterations = append(l.Iterations, &pass)
	}
	l.Finalizer = clip(l.Finalizer, most)
	one.Loop = &l
	return &one
}

// clipAll returns copies of the steps: see clip.
func clipAll(steps []*progress.Step, most int) []*progress.Step {
	if steps == nil {
		return nil
	}
	all := make([]*progress.Step, len(steps))
	for i, s := range steps {
		all[i] = clip(s, most)
	}
	return all
}

// take returns the events after a sequence number, at most about chunk bytes of them, and the feed's version. changed is
// closed at the next change, or at once if there are more events. ok is false if the feed no longer has the next event,
// because it keeps only the last ones; then read from the store.
func (f *feed) take(after int64) (lines []line, version int64, changed <-chan struct{}, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed = f.changed
	if after < f.seq {
		if len(f.ring) == 0 || f.ring[0].seq > after+1 {
			return nil, f.version, changed, false, f.err
		}
		from, _ := slices.BinarySearchFunc(f.ring, after+1, func(l line, seq int64) int { return int(l.seq - seq) })
		to := from
		for size := 0; to < len(f.ring) && size < chunk; to++ {
			size += len(f.ring[to].text)
		}
		if lines = slices.Clone(f.ring[from:to]); to < len(f.ring) {
			changed = closedChannel
		}
	}
	return lines, f.version, changed, true, f.err
}

// closedChannel is a closed channel.
var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
