// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session/mark"
)

// finished tells how the run ended, or why nobody looks on any more.
func (v *viewer) finished(ctx context.Context, w *Watching, f WatchOptions, err error) error {
	if v.view != nil {
		v.view.Finish()
		v.view = nil
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
	res := result{answer: v.fold.Answer(), stop: v.fold.Stop()}
	switch sum.Status {
	case mark.RunFailed:
		res.err, res.code = errors.New(sum.Error), term.ExitFailed
	case mark.RunCanceled:
		res.status, res.err, res.code = string(sum.Status), term.ErrInterrupted, term.ExitInterrupted
		if sum.Error != "" {
			res.next = append(res.next, sum.Error)
		}
	case mark.RunWaiting:
		res.status, res.code = runstore.WaitsForPerson, term.ExitWaits
		res.next = runstore.Asks(w.id, sum)
	case mark.RunIsPaused:
		res.status, res.code = string(sum.Status), term.ExitWaits
		res.next = append(runstore.PausedLines(w.log, sum), runstore.HowToResumeIn(ctx, w.store, w.id))
	default:
		res.code = exitCode(nil, v.fold.Stops(), f.ZeroOnLimit)
	}
	if err := v.end(w, sum, res); err != nil {
		return term.Failure(err)
	}
	switch res.code {
	case term.ExitOK:
		return nil
	case term.ExitFailed:
		return &term.Exit{Code: res.code, Err: res.err}
	}
	return &term.Exit{Code: res.code}
}

func (v *viewer) end(w *Watching, sum *progress.Summary, res result) error {
	req := Request{Session: w.id, definition: sum.Name}
	if v.json != nil {
		return v.json.finished(req, res)
	}
	v.line(sum.Updated, summary(req, res))
	for _, line := range res.next {
		v.line(sum.Updated, line)
	}
	answer := strings.TrimRight(res.answer, "\n")
	if answer == "" || res.code == term.ExitWaits {
		return nil
	}
	_, err := fmt.Fprintln(term.Exactly(v.e.Stdout), answer)
	return err
}
