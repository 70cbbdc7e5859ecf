// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/command/internal/events"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/tui"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// WatchOptions are the flags of refrain watch.
type WatchOptions struct {
	Store, Progress   string
	JSON, ZeroOnLimit bool
	// After is the last event of a run that others were asked to continue: the run goes on after it.
	After int64
}

// errLeft is the cause of a context that the key d has ended.
var errLeft = errors.New("left")

// viewer shows a run that another process drives.
type viewer struct {
	e    *term.Env
	err  io.Writer
	json *ndjson   // nil: for people
	view *tui.View // a tree in the terminal; nil: lines

	log  []*session.Event // an outline
	fold progress.Fold
	last time.Time // when something was shown

	whole progress.Whole // reads an event of log
}

// Watch follows the run that word names, which another process drives.
func Watch(ctx context.Context, e *term.Env, f WatchOptions, word string) error {
	v := &viewer{e: e, err: e.Stderr}
	mode, err := term.Mode(e, f.Progress)
	if err != nil {
		return err
	}
	switch mode {
	case term.Quiet:
		v.err = io.Discard
	case term.JSON:
		v.json = &ndjson{out: e.Stdout}
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
	for _, ev := range run.Events {
		w.Add(ev)
	}
	past := session.Current(w.log)
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	if mode == term.TTY && !w.Over() {
		stop, detach := func() { leave(term.ErrInterrupted) }, func() { leave(errLeft) }
		v.view = tui.Start(tui.Config{
			Name: w.Summary().Name, Run: run.ID, Input: term.KeyboardOf(e.Stdin), Output: term.ScreenOf(e.Stderr),
			Hooks: tui.Hooks{Interrupt: stop, Detach: detach},
		})
		defer v.view.Close()
	}
	if err := v.started(run.ID, w.Summary(), past); err != nil {
		return term.Failure(err)
	}
	v.whole = run.Wholes.Of
	v.fold.Whole = v.whole
	told := run.Wholes.Recent(past)
	if v.json != nil {
		told = run.Wholes.All(past)
	}
	for ev := range told {
		if err := v.event(ev); err != nil {
			return term.Failure(err)
		}
	}
	if run.Wholes.Err != nil {
		return term.Failure(run.Wholes.Err)
	}
	if !w.Over() {
		err = w.Follow(ctx, v.event, v.alive)
	}
	return v.finished(ctx, w, f, err)
}

func (v *viewer) started(id string, sum *progress.Summary, past []*session.Event) error {
	switch {
	case v.json != nil:
		return v.json.started(Request{Session: id, definition: sum.Name})
	case v.view != nil:
		return nil
	}
	v.line(past[0].Timestamp, fmt.Sprintf("run %s started definition=%s%s", id, sum.Name, limitText(limitIn(past))))
	return nil
}

// limitIn returns the iteration limit of the run's loop; 0 if it has none or has not begun.
func limitIn(log []*session.Event) uint {
	for _, ev := range log {
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

// line writes a line with a time of day, that of what it tells of.
func (v *viewer) line(at time.Time, text string) {
	v.last = time.Now()
	fmt.Fprintln(v.err, at.Local().Format(time.TimeOnly), progressLine(text))
}

// progressLine is a line without what could command a terminal, but with the
// spaces that it begins with.
func progressLine(s string) string {
	text := strings.TrimLeft(s, " ")
	return s[:len(s)-len(text)] + progress.Clean(text)
}

func (v *viewer) event(ev *session.Event) error {
	v.log = append(v.log, ev.Outlined())
	lines := v.add(ev)
	switch {
	case v.json != nil:
		return v.json.event(ev, nil, nil)
	case v.view != nil:
		v.view.Add(ev)
		return nil
	}
	for _, l := range lines {
		v.line(ev.Timestamp, l)
	}
	if ev.Mark != nil {
		switch ev.Mark.Kind {
		case mark.KindAsked, mark.KindAnswered, mark.KindRunResumed:
			v.line(ev.Timestamp, strings.TrimSpace(strings.ReplaceAll(string(ev.Mark.Kind), "_", " ")+" "+
				events.MarkText(ev.Mark)))
		}
	}
	return nil
}

// add folds an event. When the run goes on without some of what was told, it reads
// the log again.
func (v *viewer) add(ev *session.Event) []string {
	if ev.Mark.Supersedes() == nil {
		return v.fold.Add(ev)
	}
	v.fold = progress.Fold{Whole: v.whole}
	for _, old := range session.Current(v.log) {
		v.fold.Add(old)
	}
	return nil
}

// alive gives a sign of life after a long silence.
func (v *viewer) alive(held *lease.HeldError) {
	if held == nil {
		v.alone()
		return
	}
	at, iteration := v.fold.Running()
	if v.json != nil || v.view != nil || at == "" || time.Since(v.last) < silence {
		return
	}
	for _, ev := range slices.Backward(v.log) {
		if ev.Address == at && ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted {
			took := progress.Clock(time.Since(ev.Timestamp))
			v.line(time.Now(), fmt.Sprintf("… still running: %s (%s, %s)", runningText(at, iteration), took,
				runstore.OwnerText(held.Owner)))
			return
		}
	}
}

// alone says that no worker drives a run of a cluster.
func (v *viewer) alone() {
	text := "… " + runstore.NoWorker(progress.Summarize(v.log).Driver) + "; the run waits for one"
	switch {
	case v.json != nil:
	case v.view != nil:
		v.view.Note(text)
	default:
		v.line(time.Now(), text)
	}
}
