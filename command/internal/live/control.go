// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// controls are the actions of a person at the keyboard.
type controls interface {
	// interrupt handles Ctrl-C. The first call pauses the run, the second cuts off the running steps, and the third returns
	// leave. say is a text to show.
	interrupt() (say string, leave bool)
	// pause, cancel and detach handle their keys.
	pause() (say string)
	cancel()
	detach() (say string)
}

// signal handles a signal that ends the process. Programs send signals other than Ctrl-C only once, so these cut off the
// running steps after a grace period. The terminal may be closed while the run moves to the background.
func (f *follower) signal(sig os.Signal) {
	if sig == syscall.SIGHUP && f.leaving.Load() {
		return
	}
	why := "the process was sent a signal: " + sig.String()
	if sig == os.Interrupt {
		why = ctrlC
	}
	f.why.Store(why)
	say, leave := f.interrupt()
	if leave {
		f.leave()
	}
	fmt.Fprintln(f.e.Stderr, say)
	if sig == os.Interrupt {
		return
	}
	time.AfterFunc(f.grace, func() {
		if f.presses.Load() == 1 {
			say, _ := f.interrupt()
			fmt.Fprintln(f.e.Stderr, say)
		}
	})
}

const ctrlC = "Ctrl-C"

func (f *follower) interrupt() (say string, leave bool) {
	why, _ := f.why.Load().(string)
	why = cmp.Or(why, ctrlC)
	switch f.presses.Add(1) {
	case 1:
		return f.pauseFor(why), false
	case 2:
		go f.ask(f.Supervisor.PauseNow, why)
		return f.stopping(), false
	}
	return "", true
}

func (f *follower) pause() (say string) { return f.pauseFor("") }

func (f *follower) pauseFor(why string) (say string) {
	f.leaving.Store(false)
	go f.ask(f.Supervisor.Pause, why)
	f.mu.Lock()
	defer f.mu.Unlock()
	verb, kept := "Pausing", " nothing already saved is lost."
	if !f.req.lasts {
		verb, kept = "Stopping", " the run is kept in memory, and ends with this process."
	}
	step, most := f.busy.waitsFor(f.def, time.Now())
	if step == "" {
		return verb + ". Ctrl-C again to stop now;" + kept
	}
	return fmt.Sprintf("%s after %s (%s). Ctrl-C again to stop now;%s", verb, step, most, kept)
}

// stopping returns what happens when running steps are cut off.
func (f *follower) stopping() string {
	const again = " Ctrl-C again to leave at once."
	if !f.req.lasts {
		return "Stopping now." + again
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	doubt, rest := f.busy.inDoubt(f.def)
	if len(doubt) == 0 {
		return "Stopping now; the steps that are cut off run again when the run is resumed." + again
	}
	them := "it"
	if len(doubt) > 1 {
		them = "them"
	}
	say := fmt.Sprintf("Stopping now. The effect of %s may have happened, and must not happen twice: refrain resume "+
		"asks about %s.", strings.Join(doubt, " and "), them)
	if rest {
		say += " Other steps that are cut off run again."
	}
	return say + again
}

func (f *follower) cancel() { go f.ask(f.Supervisor.Cancel, "") }

// toBackground is the reason of a pause after which a background process continues the run at once.
const toBackground = "to go on in the background"

// detach handles the key d: it pauses the run, and a background process continues it. Running steps end first, so that no work
// is lost or repeated.
func (f *follower) detach() (say string) {
	if f.presses.Load() > 0 {
		return "The run is being paused already; continue it with refrain resume."
	}
	f.leaving.Store(true)
	go f.ask(f.Supervisor.Pause, toBackground)
	f.mu.Lock()
	defer f.mu.Unlock()
	step, most := f.busy.waitsFor(f.def, time.Now())
	if step == "" {
		return "Leaving: the run continues in the background."
	}
	return fmt.Sprintf("Leaving after %s (%s): the run then continues in the background. Ctrl-C pauses it instead.",
		step, most)
}

// left reports whether the run was paused so that it continues in the background. It returns false if the run has ended before
// the pause, or was paused for another reason.
func (f *follower) left(end supervisor.Ending) bool {
	paused, ok := errors.AsType[*supervisor.PausedError](end.Err)
	return f.leaving.Load() && ok && paused.Reason == toBackground && end.Run.Status == mark.RunIsPaused
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
	for ev := range view.Log().Outline() {
		if ev.InvocationID != run.ID || ev.Seq <= f.seen {
			continue
		}
		f.seen = ev.Seq
		if v, ok := f.out.(*treeView); ok {
			v.more(view.Log().Full(ev))
		}
	}
	f.refold(f.current(math.MaxInt64))
	f.mu.Unlock()
	if err := view.Err(); err != nil {
		return term.Failure(err)
	}
	return f.finish(end)
}
