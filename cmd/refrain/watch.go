// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/cmd/refrain/internal/tui"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// watchFlags are the flags of refrain watch.
type watchFlags struct {
	store, progress   string
	json, zeroOnLimit bool
}

// exitWaits is the exit code of a run that is paused, or waits for a person.
const exitWaits = 4

func newWatch(e *env) *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:   "watch RUN",
		Short: "Look on while another process runs",
		Long: `Show the progress of a run from its beginning, as refrain run does, while another
process drives it. It ends with the run: the answer goes to stdout, and the exit code
is the run's, or 4 if it is paused or waits for a person, and 130 if it was canceled or
the process that drove it is gone. To stop looking does nothing to the run.`,
		Example: `  refrain watch last
  refrain watch r_1f0c --progress json`,
		Args:              between(1, 1),
		ValidArgsFunction: completeRuns(e, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if f.progress, err = chosenProgress(e, f.progress, cmd.Flags().Changed("progress"), f.json); err != nil {
				return err
			}
			return watch(cmd.Context(), e, f, args[0])
		},
	}
	fl := cmd.Flags()
	storeFlag(fl, &f.store)
	fl.StringVar(&f.progress, "progress", progressAuto, progressUsage)
	fl.BoolVar(&f.json, "json", false, "the same as --progress json")
	fl.BoolVar(&f.zeroOnLimit, "exit-zero-on-limit", false, "exit with 0 instead of 3 if a limit stopped the run")
	return cmd
}

// viewer shows a run that another process drives.
type viewer struct {
	e    *env
	err  io.Writer
	json *ndjson   // nil: for people
	view *tui.View // a tree in the terminal; nil: lines

	fold progress.Fold
	last time.Time // when something was shown
}

func watch(ctx context.Context, e *env, f watchFlags, word string) error {
	v := &viewer{e: e, err: e.stderr}
	mode, err := progressMode(e, f.progress)
	if err != nil {
		return err
	}
	switch mode {
	case progressQuiet:
		v.err = io.Discard
	case progressJSON:
		v.json = &ndjson{out: e.stdout}
	}
	run, err := openRun(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer run.close()
	if run.store == nil {
		return &exitError{exitUsage, fmt.Errorf("%s is a file, in which nothing happens; refrain show FILE shows it", word)}
	}
	w := newWatching(run)
	for _, ev := range run.events {
		w.add(ev)
	}
	past := session.Current(w.log)
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	if mode == progressTTY && !w.over() {
		detach := func() { leave(errInterrupted) }
		v.view = tui.Start(tui.Config{
			Name: w.summary().Name, Run: run.id, Input: keyboardOf(e.stdin), Output: screenOf(e.stderr),
			Hooks: tui.Hooks{Interrupt: detach, Detach: detach},
		})
		defer v.view.Close()
	}
	if err := v.started(run.id, w.summary(), past); err != nil {
		return &exitError{exitFailed, err}
	}
	for _, ev := range past {
		if err := v.event(ev); err != nil {
			return &exitError{exitFailed, err}
		}
	}
	if !w.over() {
		err = w.follow(ctx, v.event, v.alive)
	}
	return v.finished(ctx, w, f, err)
}

func (v *viewer) started(id string, sum *progress.Summary, past []*session.Event) error {
	switch {
	case v.json != nil:
		return v.json.started(request{session: id, definition: sum.Name})
	case v.view != nil:
		return nil
	}
	v.line(past[0].Timestamp, fmt.Sprintf("run %s started definition=%s", id, sum.Name))
	return nil
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
	lines := v.fold.Add(ev)
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
		case session.MarkAsked, session.MarkAnswered, session.MarkRunResumed, session.MarkRunPaused:
			v.line(ev.Timestamp, strings.TrimSpace(strings.ReplaceAll(string(ev.Mark.Kind), "_", " ")+" "+markText(ev.Mark)))
		}
	}
	return nil
}

// alive gives a sign of life after a long silence.
func (v *viewer) alive(held *session.HeldError) {
	at, iteration := v.fold.Running()
	if v.json != nil || v.view != nil || at == "" || time.Since(v.last) < silence {
		return
	}
	where := string(at)
	if iteration > 0 {
		where = fmt.Sprintf("iteration %d, %s", iteration, at.Agent())
	}
	v.line(time.Now(), fmt.Sprintf("… still running: %s (%s)", where, held.Owner))
}

// finished tells how the run ended, or why nobody looks on any more.
func (v *viewer) finished(ctx context.Context, w *watching, f watchFlags, err error) error {
	if v.view != nil {
		v.view.Finish()
		v.view = nil
	}
	if gone, ok := errors.AsType[*goneError](err); ok {
		return &exitError{exitInterrupted, gone}
	}
	if err != nil {
		if ctx.Err() != nil { // the run goes on
			return &exitError{code: exitInterrupted}
		}
		return &exitError{exitFailed, err}
	}
	sum := w.summary()
	res := result{answer: v.fold.Answer(), stop: v.fold.Stop()}
	switch sum.Status {
	case session.RunFailed:
		res.err, res.code = errors.New(sum.Error), exitFailed
	case session.RunCanceled:
		res.status, res.err, res.code = string(sum.Status), errInterrupted, exitInterrupted
		if sum.Error != "" {
			res.next = append(res.next, sum.Error)
		}
	case session.RunWaiting:
		res.status, res.code = "waits for a person", exitWaits
		for _, q := range sum.Waits {
			res.next = append(res.next, "asked: "+questionText(q))
		}
		res.next = append(res.next, "Answer with: refrain answer "+w.id)
	case session.RunIsPaused:
		res.status, res.code = string(sum.Status), exitWaits
		res.next = append(res.next, "Resume with: refrain resume "+w.id)
	default:
		res.code = exitCode(nil, v.fold.Stops(), f.zeroOnLimit)
	}
	if err := v.end(w, sum, res); err != nil {
		return &exitError{exitFailed, err}
	}
	switch res.code {
	case exitOK:
		return nil
	case exitFailed:
		return &exitError{res.code, res.err}
	}
	return &exitError{code: res.code}
}

func (v *viewer) end(w *watching, sum *progress.Summary, res result) error {
	req := request{session: w.id, definition: sum.Name}
	if v.json != nil {
		return v.json.finished(req, res)
	}
	v.line(sum.Updated, summary(req, res))
	for _, line := range res.next {
		v.line(sum.Updated, line)
	}
	answer := strings.TrimRight(res.answer, "\n")
	if answer == "" || res.code == exitWaits {
		return nil
	}
	if isTerminal(v.e.stdout) {
		answer = plainText(answer)
	}
	_, err := fmt.Fprintln(v.e.stdout, answer)
	return err
}
