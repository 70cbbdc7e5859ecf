// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// toBackground is the reason of a pause after which a background process continues the run at once.
const toBackground = "to go on in the background"

// detach handles the key d: it pauses the run, and a background process continues it. Running steps end first, so that no work
// is lost or repeated.
func (f *follower) detach() (say string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.presses.Load() > 0 {
		return "The run is being paused already; continue it with refrain resume."
	}
	f.leaving = true
	go f.ask(f.Supervisor.Pause, toBackground)
	step, most := f.busy.waitsFor(f.def, time.Now())
	if step == "" {
		return "Leaving: the run continues in the background."
	}
	return fmt.Sprintf("Leaving after %s (%s): the run then continues in the background. Ctrl-C pauses it instead.",
		step, most)
}

// stay cancels detach.
func (f *follower) stay() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaving = false
}

// leaves reports whether the run is about to continue in the background.
func (f *follower) leaves() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leaving
}

// left reports whether the run was paused so that it continues in the background. It returns false if the run has ended before
// the pause, or was paused for another reason.
func (f *follower) left(end supervisor.Ending) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	paused, ok := errors.AsType[*supervisor.PausedError](end.Err)
	return f.leaving && ok && paused.Reason == toBackground && end.Run.Status == mark.RunIsPaused
}

// handOver lets the run continue in the background. The terminal may already be closed.
func (f *follower) handOver(ctx context.Context) error {
	id := f.req.Session
	err := inBackground(ctx, f.e, f.stock, Launch{id: id, Grace: f.grace, Brief: f.sees.Fold.Stop() != nil})
	if err != nil {
		f.out.close()
		return term.Failure(fmt.Errorf("run %s is paused, and does not go on in the background: %w. %s", id, err,
			runstore.HowToResumeIn(ctx, f.stock.Service, id)))
	}
	view, run, err := f.stock.View(ctx, id)
	if err == nil && run != nil && (run.Status == mark.RunCompleted || run.Status == mark.RunFailed) {
		return f.overAlready(view, run) // the run had only its end left
	}
	f.out.close() // the last frame stays
	tellStanding(ctx, f.e, f.stock, id, "gone on")
	return nil
}

// overAlready shows the end of a run that another process has finished.
func (f *follower) overAlready(view *session.View, run *mark.Run) error {
	end := supervisor.Ending{Run: *run}
	if run.Status == mark.RunFailed {
		end.Err = errors.New(run.Error)
	}
	f.mu.Lock()
	for ev := range view.Outline() {
		if ev.InvocationID != run.ID || ev.Seq <= f.seen {
			continue
		}
		f.seen = ev.Seq
		if v, ok := f.out.(*viewed); ok {
			v.more(view.Whole(ev))
		}
	}
	f.refold(f.current(math.MaxInt64))
	f.mu.Unlock()
	if err := view.Err(); err != nil {
		return term.Failure(err)
	}
	return f.finish(end)
}
