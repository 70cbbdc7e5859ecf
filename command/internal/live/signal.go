// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
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
	if sig == syscall.SIGHUP && f.leaves() {
		return
	}
	f.why.Store(whySignal(sig))
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

// whySignal returns the reason that the log keeps when a signal has paused a run.
func whySignal(sig os.Signal) string {
	if sig == os.Interrupt {
		return ctrlC
	}
	return "the process was sent a signal: " + sig.String()
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
	f.stay()
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
