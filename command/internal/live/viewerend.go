// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session/mark"
)

// finished prints how the run ended, or why refrain watch ends before the run.
func (v *viewer) finished(ctx context.Context, w *Watching, f WatchOptions, err error) error {
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
		res.status, res.err, res.code = string(sum.Status), term.ErrInterrupted, term.ExitInterrupted
		if sum.Error != "" {
			res.next = append(res.next, sum.Error)
		}
	case mark.RunWaiting:
		res.status, res.code, res.answer = runstore.WaitsForPerson, term.ExitWaits, ""
		res.next = runstore.Asks(w.id, sum)
	case mark.RunIsPaused:
		res.status, res.code, res.answer = string(sum.Status), term.ExitWaits, ""
		res.next = append(runstore.PausedLines(w.log, sum), runstore.HowToResumeIn(ctx, w.store, w.id))
	default:
		res.code = exitCode(v.fold.Stops(), f.Shown.ZeroOnLimit)
	}
	if err := v.out.finished(Request{Session: w.id, definition: sum.Name}, res); err != nil {
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
