// SPDX-License-Identifier: Apache-2.0

// Package live shows a run while it happens.
package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/notify"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Request describes what a run does.
type Request struct {
	File, definition, Session string
	Config                    agent.RunConfig
	ZeroOnLimit               bool
	// Resumed says that the run is not new, and Changed that it continues with another program.
	Resumed, Changed bool
	// Stands is the status of a resumed run, and View its session, as read before the run was resumed.
	Stands *mark.Run
	View   *session.View
	// lasts says that the run is kept in a store and can be resumed, and leaves that it can continue in the background.
	lasts, leaves bool
	// watched says that another process drives the run. at is the start of the run; zero means now.
	watched bool
	at      time.Time
	// Asks says that the caller asks the questions of the run.
	Asks bool
	// Notify says who is notified besides those of the definition, and NotifyCommand is the command of --notify-command.
	Notify        definition.Notify
	NotifyCommand string
	// Most is the iteration limit of the definition's loop; 0 if it is unknown.
	Most uint
}

// follower drives a run and shows its events.
type follower struct {
	e          *term.Env
	stderr     io.Writer // standard error of the command
	stock      *runstore.Stock
	req        Request
	out        output
	diary      *diary
	def        *definition.Definition
	grace      time.Duration
	Supervisor *supervisor.Supervisor
	notifier   *notify.Notifier
	meter      term.Meter

	mu     sync.Mutex
	begun  bool          // the output has been started
	seen   int64         // number of the last event
	wholes runlog.Wholes // reads whole events of the log
	sees   prose.Watch
	busy   clocks
	broken error // error of standard output

	leaving atomic.Bool  // the run will continue in the background
	presses atomic.Int32 // number of Ctrl-C and similar signals
	why     atomic.Value // a string: the name of the signal, unless a key has sent it
}

// NewFollower prepares to drive a run of a stock.
func NewFollower(e *term.Env, s *runstore.Stock, mode string, def *definition.Definition, req Request,
	grace time.Duration) (*follower, error) {
	req.definition, req.lasts, req.leaves = def.Name, s.Durable, s.Durable && !s.Recorded
	f := &follower{e: e, stderr: e.Stderr, stock: s, req: req, def: def, grace: grace, meter: term.NewMeter(),
		sees: prose.Watch{Fold: progress.Fold{Owned: true}}}
	var err error
	if f.out, err = newOutput(e, mode, f); err != nil {
		return nil, err
	}
	f.wholes.Fetch = func(ctx context.Context) (*session.View, error) {
		view, _, err := s.View(ctx, f.req.Session)
		return view, err
	}
	to := make(definition.Notify)
	maps.Copy(to, def.Notify)
	maps.Copy(to, req.Notify)
	f.notifier = s.Notifier(e, to, false, req.NotifyCommand, func(ctx context.Context, id string) string { return s.Served(ctx, e, id) })
	if f.Supervisor, err = s.Supervise(e, f.event, f.notifier.Observe); err == nil && s.Durable {
		var lost error
		if f.diary, lost = newDiary(def, func() (*os.File, error) { return runstore.OpenDiary(e, s, req.Session) },
			func() string { return f.sees.Resources.SoFar().CostText() }); lost != nil {
			fmt.Fprintf(f.stderr, "The run goes on without its log: %v\n", lost)
		}
	}
	return f, err
}

// Follow starts or resumes a run, and follows the run to its end. The error has the exit code of the process.
func (f *follower) Follow(ctx context.Context, begin func(context.Context) (*supervisor.Run, error)) error {
	defer f.notified(ctx)
	defer func() {
		f.out.close()
		f.diary.close()
		f.e.Stderr = f.stderr // the output may have replaced it
	}()
	run, err := begin(ctx)
	if err != nil {
		return f.refused(err)
	}
	release := term.OnInterrupt(ctx, f.signal)
	defer release()
	if ctx.Err() != nil { // ctx ended before the run was taken over
		f.signal(os.Interrupt)
	} else {
		stop := context.AfterFunc(ctx, func() { f.ask(f.Supervisor.Pause, "its context ended: "+context.Cause(ctx).Error()) })
		defer stop()
	}
	end, err := run.Wait(context.WithoutCancel(ctx)) // signals end the run, and with it this wait
	if err == nil {
		err = f.Supervisor.Close(context.WithoutCancel(ctx))
	}
	if err != nil {
		return term.Failure(err)
	}
	if f.left(end) {
		return f.handOver(context.WithoutCancel(ctx))
	}
	return f.finish(end)
}

// notified waits until people are notified of the run, for a limited time.
func (f *follower) notified(ctx context.Context) {
	most := notifyTime
	if f.req.Asks { // the person at the terminal waits for the question
		most = askTime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	f.notifier.Close(ctx)
}

// notifyTime is how long the end of a command waits for notifications, and askTime how long a person waits for them.
const notifyTime, askTime = 10 * time.Second, 2 * time.Second

// event receives an event of the run from the supervisor. If the output fails, event pauses the run, so that another output can
// show the rest.
func (f *follower) event(_ string, ev *session.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return
	}
	if f.broken = f.show(ev); f.broken != nil {
		go f.ask(f.Supervisor.PauseNow, "the output of the run cannot be written")
	}
}

func (f *follower) show(ev *session.Event) error {
	if !f.begun {
		f.begun = true
		if err := f.out.started(f.req); err != nil {
			return err
		}
		f.diary.line(f.req.at, startedLine(f.req))
	}
	f.seen = max(f.seen, ev.Seq)
	var lines []string
	switch {
	case ev.Partial:
	case ev.Mark != nil && ev.Mark.Kind == mark.KindRunResumed:
		f.again(ev.Seq)
	default:
		f.busy.add(ev)
		lines = f.sees.Add(ev)
	}
	if all := f.diary.event(ev, lines); f.plain() {
		lines = all
	}
	return f.out.event(ev, lines, &f.sees.Fold)
}

// plain reports whether the output has lines, as without a terminal.
func (f *follower) plain() bool {
	_, is := f.out.(*plain)
	return is
}

// again rebuilds the view from the log up to an event, skipping superseded events.
func (f *follower) again(seq int64) {
	f.refold(f.current(seq))
	if v, ok := f.out.(*treeView); ok {
		v.restart(f.wholes.Recent(f.log(seq - 1))) // the event at seq follows
	}
}

// log yields the outline of the run's log in the store up to an event. The superseded events are there, because the run's clock
// counts them.
func (f *follower) log(upTo int64) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		view, run := f.stored()
		if run == nil {
			return
		}
		for ev := range view.Log().Outline() {
			if ev.Seq > upTo || ev.InvocationID == run.ID && !yield(ev) {
				return
			}
		}
	}
}

// refold rebuilds the view from a log.
func (f *follower) refold(log iter.Seq[*session.Event]) {
	f.sees = prose.Watch{Fold: progress.Fold{Owned: true, Whole: f.wholes.Of}}
	f.busy = clocks{}
	for ev := range log {
		f.sees.Add(ev)
		f.busy.add(ev)
	}
}

// current yields the outline of the run's log in the store up to an event, without the events that were superseded by then.
// It yields nothing if the store is gone.
func (f *follower) current(upTo int64) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		if view, run := f.stored(); run != nil {
			currentOf(view, run.ID, upTo)(yield)
		}
	}
}

// stored returns the run as it is in the store now; nil if the store is gone.
func (f *follower) stored() (*session.View, *mark.Run) {
	if view := f.req.View; view != nil && view.LastSeq() == f.seen {
		return view, session.RunOf(view)
	}
	view, run, err := f.stock.View(context.Background(), f.req.Session)
	if err != nil {
		return nil, nil
	}
	return view, run
}

// files returns where the files of the result are; empty if the definition has no workspace.
func (f *follower) files() []string {
	w := f.def.Workspace
	view, _ := f.stored()
	if w == nil || view == nil {
		return nil
	}
	v, _ := view.State().Get(runfiles.Key)
	if _, where := runfiles.Value(v); where == "" && w.Result.Branch != "" {
		return []string{"Files: no step has changed any, so there is no branch " + strings.ReplaceAll(w.Result.Branch, "{{run}}", f.req.Session)}
	}
	if line := runstore.FilesOf(context.Background(), f.req.Session, view); line != "" {
		return []string{line}
	}
	return nil
}

// ask sends a request to the supervisor, and prints its error.
func (f *follower) ask(do func(ctx context.Context, id, reason string) error, reason string) {
	err := do(context.Background(), f.req.Session, reason)
	if err != nil && !errors.Is(err, supervisor.ErrOver) && !errors.Is(err, supervisor.ErrPaused) {
		term.PrintError(f.e.Stderr, err)
	}
}

// leave ends the process at once.
func (f *follower) leave() {
	f.out.close()
	os.Exit(term.ExitInterrupted)
}
