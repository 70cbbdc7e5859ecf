// SPDX-License-Identifier: Apache-2.0

// Package tui shows a run in a terminal while it goes on: its loops as a tree,
// iteration by iteration, with keys to look into it and to stop it. It draws
// below what the terminal shows already, on no screen of its own, and its last
// frame stays.
//
//	v := tui.Start(tui.Config{Run: "r_8f3k", Input: os.Stdin, Output: os.Stderr})
//	for ev := range events {
//		v.Add(ev)
//	}
//	v.Finish()
//
// The output must be a terminal: whoever starts a view has to look first.
package tui

import (
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Config says what a view shows besides events, and what its keys do.
type Config struct {
	// Name is what runs, such as a definition, until the first event says it
	// better. Run is the run's ID; it may be empty.
	Name, Run string
	// Budget is what the whole run may use; nil if nobody has said.
	Budget *loop.Budget
	Hooks  Hooks
	// Input is where keys come from, a terminal; nil: there are no keys.
	Input *os.File
	// Output is the terminal.
	Output *os.File
	// Environ is what the terminal's abilities are read from: TERM, NO_COLOR,
	// CLICOLOR_FORCE and others. nil: the environment of the process.
	Environ []string
	// Tick is how often times move on between two events. 0 is five times a
	// second; below 0 they stand still.
	Tick time.Duration
}

// Hooks are what keys do to the run. They are called in goroutines of their own.
// A key without one is not offered.
type Hooks struct {
	Pause  func() // p: at the next boundary
	Cancel func() // c, twice: now
	Detach func() // d: leave, and let it run
	// Interrupt is Ctrl-C, which the terminal makes no signal of while a view reads
	// keys. It is called each time.
	Interrupt func()
}

// View is a view that is up.
type View struct {
	prog *tea.Program
	wake chan struct{}
	quit chan struct{}
	pump sync.WaitGroup
	done chan struct{}
	once sync.Once
	err  error // written before done is closed

	mu      sync.Mutex
	pending []*session.Event
}

// Start puts a view up. It does not wait: a terminal that cannot be used ends it
// at once, see [View.Done].
func Start(cfg Config) *View {
	opts := []tea.ProgramOption{tea.WithOutput(cfg.Output), tea.WithoutSignalHandler()}
	if cfg.Input != nil {
		opts = append(opts, tea.WithInput(cfg.Input))
	} else {
		opts = append(opts, tea.WithInput(nil))
	}
	if cfg.Environ != nil {
		opts = append(opts, tea.WithEnvironment(cfg.Environ))
	}
	m := newModel(cfg)
	v := &View{
		prog: tea.NewProgram(guarded{m}, opts...),
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go func() {
		defer close(v.done)
		if _, v.err = v.prog.Run(); v.err == nil && m.failed != nil {
			v.err = m.failed
		}
	}()
	v.pump.Go(v.carry)
	return v
}

// Add shows an event. It never waits for the terminal: a run is as fast with a
// view as without. The event must not be changed any more.
func (v *View) Add(ev *session.Event) {
	v.mu.Lock()
	v.pending = append(v.pending, ev)
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default: // it is awake
	}
}

// Note shows a line above the keys, until the next.
func (v *View) Note(text string) { v.prog.Send(noteMsg(text)) }

// Finish shows what is left, without keys, and takes the view down. The last frame
// stays, and the terminal is as it was before. It may be called again.
func (v *View) Finish() { v.end(finishMsg{}) }

// Close takes the view down as it is, while the run goes on.
func (v *View) Close() { v.end(closeMsg{}) }

func (v *View) end(last tea.Msg) {
	v.once.Do(func() {
		close(v.quit)
		v.pump.Wait()
		v.send()
		v.prog.Send(last)
	})
	<-v.done
}

// Done is closed when the view is down, for whatever reason.
func (v *View) Done() <-chan struct{} { return v.done }

// Err is why the view went down by itself, such as a [*PanicError]; nil if it did
// not, or is up.
func (v *View) Err() error {
	select {
	case <-v.done:
		return v.err
	default:
		return nil
	}
}

// carry brings events to the view, as many at a time as have come in.
func (v *View) carry() {
	for {
		select {
		case <-v.quit:
			return
		case <-v.wake:
			v.send()
		}
	}
}

func (v *View) send() {
	v.mu.Lock()
	batch := v.pending
	v.pending = nil
	v.mu.Unlock()
	if len(batch) > 0 {
		v.prog.Send(eventsMsg(batch))
	}
}

type (
	eventsMsg []*session.Event
	noteMsg   string
	finishMsg struct{}
	closeMsg  struct{}
	tickMsg   struct{}
)
