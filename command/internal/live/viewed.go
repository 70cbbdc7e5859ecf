// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/tui"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// treeView shows the run as a tree while the view is up, and as lines if the view fails.
type treeView struct {
	plain
	screen, keyboard *os.File
	keys             controls

	view atomic.Pointer[tui.View] // nil before the run has begun
	down bool                     // and the run is shown in lines
	ends []*session.Event         // the last events, which say that steps were cut off
}

// newViewed replaces standard error for the rest of the program.
func newViewed(e *term.Env, keys controls) *treeView {
	v := &treeView{
		plain:  plain{out: e.Stdout, err: e.Stderr},
		screen: term.ScreenOf(e.Stderr), keyboard: term.KeyboardOf(e.Stdin), keys: keys,
	}
	e.Stderr = term.Readable(v)
	return v
}

func (v *treeView) started(req Request) error {
	cfg := tui.Config{
		Name: req.definition, Run: req.Session, Budget: plannedBudget(req.Config.Budget),
		Input: v.keyboard, Output: v.screen,
		Hooks: tui.Hooks{Interrupt: v.interrupt},
	}
	if !req.watched {
		cfg.Hooks.Cancel = v.keys.cancel
	}
	if req.lasts { // otherwise nobody could resume the run
		cfg.Hooks.Pause = v.pause
	}
	if req.leaves {
		cfg.Hooks.Detach = v.detach
	}
	v.view.Store(tui.Start(cfg))
	return nil
}

// plannedBudget converts a run's budget to the budget of a plan.
func plannedBudget(l *budget.Limits) *loop.Budget {
	if l == nil {
		return nil
	}
	return &loop.Budget{Calls: l.Calls, Tokens: l.Tokens, Cost: l.Cost}
}

// Write replaces standard error for the rest of the program. While the view is up, the text becomes a note in the view, because
// only the view may draw on the terminal.
func (v *treeView) Write(b []byte) (int, error) {
	view := v.up()
	if view == nil {
		return v.err.Write(b)
	}
	view.Note(strings.TrimSpace(string(b)))
	return len(b), nil
}

// up returns the view if it is up, otherwise nil.
func (v *treeView) up() *tui.View {
	view := v.view.Load()
	if view == nil {
		return nil
	}
	select {
	case <-view.Done():
		return nil
	default:
		return view
	}
}

// interrupt handles Ctrl-C as a key, in the same way as the signal.
func (v *treeView) interrupt() {
	say, leave := v.keys.interrupt()
	if leave {
		v.close()
		os.Exit(term.ExitInterrupted)
	}
	v.note(say)
}

// pause handles the key p.
func (v *treeView) pause() { v.note(v.keys.pause()) }

// detach handles the key d.
func (v *treeView) detach() { v.note(v.keys.detach()) }

func (v *treeView) note(say string) {
	if say != "" {
		fmt.Fprintln(v, say)
	}
}

// restart shows the run from the beginning of its log.
func (v *treeView) restart(log iter.Seq[*session.Event]) {
	if view := v.up(); view != nil {
		view.Restart()
		for ev := range log {
			view.Add(ev)
		}
	}
}

// more shows an event of another process.
func (v *treeView) more(ev *session.Event) {
	if view := v.up(); view != nil {
		view.Add(ev)
	}
}

func (v *treeView) event(ev *session.Event, lines []string, f *progress.Fold) error {
	if view := v.up(); view != nil {
		v.show(view, ev)
		return v.plain.event(ev, nil, f)
	}
	if !v.down {
		v.down = true
		v.begin()
		err := v.view.Load().Err()
		v.line(time.Now(), "the view failed; progress continues as plain lines: "+brief.Clean(fmt.Sprint(err)))
		if p, ok := errors.AsType[*tui.PanicError](err); ok {
			v.err.Write(p.Stack)
		}
	}
	return v.plain.event(ev, lines, f)
}

// show shows an event once it is clear that it does not belong to a pause after which the run goes on in the background: for the
// person who leaves, the run is neither paused nor stopped.
func (v *treeView) show(view *tui.View, ev *session.Event) {
	switch {
	case cutsOff(ev):
		v.ends = append(v.ends, ev)
		return
	case !handsOver(ev):
		v.ends = append(v.ends, ev)
		v.flush(view)
	}
	v.ends = nil
}

// flush shows what was held back.
func (v *treeView) flush(view *tui.View) {
	for _, ev := range v.ends {
		view.Add(ev)
	}
	v.ends = nil
}

// cutsOff reports whether an event says that a loop or a step was cut off.
func cutsOff(ev *session.Event) bool {
	switch {
	case ev.Mark == nil:
		return false
	case ev.Mark.Kind == mark.KindLoopStopped:
		var rec loop.StopRecord
		return ev.Mark.Decode(&rec) == nil && rec.Reason == loop.ReasonCanceled
	case ev.Mark.Kind == mark.KindStepFinished:
		var fin mark.StepFinished
		return ev.Mark.Decode(&fin) == nil && fin.Canceled
	}
	return false
}

func (v *treeView) finished(req Request, res result) error {
	v.flush(v.view.Load())
	v.view.Load().Finish()
	return v.plain.finished(req, res)
}

// close returns the terminal to its earlier state. It may be called repeatedly, and at any time.
func (v *treeView) close() {
	if view := v.view.Load(); view != nil {
		view.Close()
	}
	v.plain.close()
}
