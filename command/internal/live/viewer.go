// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/events"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// WatchOptions are the flags of refrain watch.
type WatchOptions struct {
	Store string
	Shown term.Shown
	// After is the number of the last event before a request to continue the run; the run continues after this event.
	After int64
}

// errLeft is the cause of a context that the key d has canceled.
var errLeft = errors.New("left")

// viewer shows a run that another process drives.
type viewer struct {
	e     *term.Env
	out   output
	leave context.CancelCauseFunc // ends refrain watch

	w     *Watching
	fold  progress.Fold
	whole progress.Whole // reads an event of the log

	follows bool // the events are new
}

// Watch follows the run that word names, and that another process drives.
func Watch(ctx context.Context, e *term.Env, f WatchOptions, word string) error {
	mode, err := term.Mode(e, f.Shown.Mode)
	if err != nil {
		return err
	}
	run, err := runstore.Open(ctx, e, f.Store, word)
	if err != nil {
		return err
	}
	defer run.Close()
	if run.Store == nil {
		return term.UsageError(fmt.Errorf("%s is a file, so there is nothing to follow; show it with refrain show FILE",
			word))
	}
	w := NewWatching(run)
	w.after = f.After
	past := run.Current()
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	v := &viewer{e: e, leave: leave, w: w, whole: run.Wholes.Of, fold: progress.Fold{Whole: run.Wholes.Of}}
	if mode == term.TTY && w.Over() {
		mode = term.Plain // no further event will come
	}
	if v.out, err = newOutput(e, mode, v); err != nil {
		return err
	}
	defer v.out.close()
	began := Request{Session: run.ID, definition: w.Summary().Name, Most: limitIn(past), at: w.Summary().Began, leaves: true, watched: true}
	if err := v.out.started(began); err != nil {
		return term.Failure(err)
	}
	told := run.Wholes.Recent(past)
	if mode == term.JSON {
		told = run.Wholes.All(past)
	}
	for ev := range told {
		if err := v.event(ev); err != nil {
			return term.Failure(err)
		}
	}
	if err := run.Err(); err != nil {
		return term.Failure(err)
	}
	if v.follows = true; !w.Over() {
		err = w.Follow(ctx, v.event, v.alive)
	}
	return v.finished(ctx, f, err)
}

// tree returns the tree of the run with its last iterations.
func (w *Watching) tree(ctx context.Context) *progress.Tree {
	return treeOf(func(yield func(*session.Event) bool) {
		for ev, err := range w.until(context.WithoutCancel(ctx), w.last) {
			if err != nil || !yield(ev) {
				return
			}
		}
	})
}

// Ctrl-C and the key d end only refrain watch; the run goes on. The other keys have no effect.
func (v *viewer) interrupt() (say string, leave bool) {
	v.leave(term.ErrInterrupted)
	return "", false
}

func (v *viewer) detach() (say string) {
	v.leave(errLeft)
	return ""
}

func (v *viewer) pause() (say string) { return "" }
func (v *viewer) cancel()             {}

// limitIn returns the iteration limit of the run's loop; 0 if the loop has no limit or has not begun.
func limitIn(log iter.Seq[*session.Event]) uint {
	for ev := range log {
		if ev.Mark == nil || ev.Mark.Kind != mark.KindLoopStarted || strings.Contains(string(ev.Address), "/") {
			continue
		}
		var plan loop.Plan
		if ev.Mark.Decode(&plan) == nil {
			return plan.MaxIterations
		}
	}
	return 0
}

func (v *viewer) event(ev *session.Event) error {
	lines, err := v.add(ev)
	if err != nil {
		return err
	}
	if ev.Mark != nil {
		switch ev.Mark.Kind {
		case mark.KindAsked, mark.KindAnswered, mark.KindRunResumed:
			lines = append(lines, brief.Clean(strings.TrimSpace(strings.ReplaceAll(string(ev.Mark.Kind), "_", " ")+" "+
				events.MarkText(ev.Mark))))
		}
	}
	return v.out.event(ev, lines, &v.fold)
}

// add adds an event to the view. If a new event supersedes earlier ones, add reads the log again.
func (v *viewer) add(ev *session.Event) ([]string, error) {
	if ev.Mark.Supersedes() == nil || !v.follows {
		return v.fold.Add(ev), nil
	}
	v.fold = progress.Fold{Whole: v.whole}
	for old, err := range v.w.until(context.Background(), ev) { // the log may have later events, which are not shown yet
		if err != nil {
			return nil, err
		}
		v.fold.Add(old)
	}
	return nil, nil
}

// alive prints that no worker drives a run of a cluster.
func (v *viewer) alive(held *lease.HeldError) {
	if held == nil {
		v.out.note("… " + runstore.NoWorker(v.w.Summary().Driver) + "; the run waits for one")
	}
}

// finished prints how the run ended, or why refrain watch ends before the run.
func (v *viewer) finished(ctx context.Context, f WatchOptions, err error) error {
	w := v.w
	if err != nil {
		v.out.close()
	}
	if gone, ok := errors.AsType[*GoneError](err); ok {
		return &term.Exit{Code: term.ExitInterrupted, Err: gone}
	}
	if err != nil {
		if errors.Is(err, errLeft) {
			fmt.Fprintf(v.e.Stderr, "run %s continues: follow it again with refrain watch %s\n", w.id, w.id)
			return nil
		}
		if ctx.Err() != nil { // the run goes on
			if w.Summary().Driver != "" {
				fmt.Fprintf(v.e.Stderr, "run %s continues in its cluster: follow it with refrain watch %s; end it with "+
					"refrain pause %s or refrain cancel %s\n", w.id, w.id, w.id, w.id)
			}
			return &term.Exit{Code: term.ExitInterrupted}
		}
		return term.Failure(err)
	}
	sum := w.Summary()
	res := result{answer: v.fold.Answer(), stop: v.fold.Stop(), at: sum.Updated}
	switch sum.Status {
	case mark.RunFailed:
		res.err, res.code = errors.New(sum.Error), term.ExitFailed
	case mark.RunCanceled:
		res.canceled(sum.Error)
	case mark.RunWaiting:
		res.waits(runstore.Asks(w.id, sum)...)
	case mark.RunIsPaused:
		res.paused(w.tree(ctx), sum, runstore.HowToResumeIn(ctx, w.store, w.id))
	default:
		res.code = exitCode(v.fold.Stops(), f.Shown.ZeroOnLimit)
	}
	return res.show(v.out, Request{Session: w.id, definition: sum.Name})
}
