// SPDX-License-Identifier: Apache-2.0

// Package tui shows a running run in a terminal: the loops as a tree with their iterations, and keys that show details or stop the
// run. It draws below the terminal's earlier output, without an alternate screen, and its last frame stays.
//
//	v := tui.Start(tui.Config{Run: "r_8f3k", Input: os.Stdin, Output: os.Stderr})
//	for ev := range events {
//		v.Add(ev)
//	}
//	v.Finish()
//
// The output must be a terminal; the caller checks this before it starts a view.
package tui

import (
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Config says what a view shows besides events, and how its keys act on the run.
type Config struct {
	// Name is the name of the definition or agent, shown until the first event gives a better one. Run is the run's ID; it may be
	// empty.
	Name, Run string
	// Budget is the budget of the whole run; nil if the run has none.
	Budget *loop.Budget
	Hooks  Hooks
	// Input is the terminal that keys are read from; nil means no keys.
	Input *os.File
	// Output is the terminal.
	Output *os.File
	// Environ holds the variables that describe the terminal, such as TERM, NO_COLOR and CLICOLOR_FORCE. nil means the environment
	// of the process.
	Environ []string
	// Tick is the interval at which the shown times are updated between two events. 0 means 200 ms; a negative value turns the
	// updates off.
	Tick time.Duration
}

// Hooks are the functions that keys call. Each call has a goroutine of its own. A key without a function is not offered.
type Hooks struct {
	Pause  func() // p: at the next boundary
	Cancel func() // c, twice: now
	Detach func() // d: leave, and let it run
	// Interrupt is called at each Ctrl-C. While a view reads keys, the terminal sends no signal for Ctrl-C.
	Interrupt func()
}

// View is a view that has been started.
type View struct {
	prog *tea.Program
	wake chan struct{}
	quit chan struct{}
	pump sync.WaitGroup
	done chan struct{}
	once sync.Once
	err  error // written before done is closed

	mu      sync.Mutex
	pending eventsMsg
}

// Start starts a view and returns at once. If the terminal cannot be used, the view ends at once; see [View.Done].
func Start(cfg Config) *View {
	var input io.Reader
	if cfg.Input != nil {
		input = cfg.Input
	}
	opts := []tea.ProgramOption{tea.WithInput(input), tea.WithOutput(cfg.Output), tea.WithoutSignalHandler()}
	if cfg.Environ != nil {
		opts = append(opts, tea.WithEnvironment(cfg.Environ))
	}
	m := newModel(cfg)
	v := &View{
		prog: tea.NewProgram(panicGuard{m}, opts...),
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

// Add shows an event. It never waits for the terminal, so a view does not slow the run. The event must not be changed afterwards.
func (v *View) Add(ev *session.Event) {
	v.mu.Lock()
	v.pending.events = append(v.pending.events, ev)
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default: // it is awake
	}
}

// Restart drops what the view has shown. A run that is resumed begins again with its log: its clock counts from the first event.
func (v *View) Restart() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pending = eventsMsg{restart: true}
}

// Note shows a line above the keys until the next note.
func (v *View) Note(text string) { v.prog.Send(noteMsg(text)) }

// Finish draws the last frame, without keys, and ends the view. The last frame stays, and the terminal is restored. Further calls do
// nothing.
func (v *View) Finish() { v.end(finishMsg{}) }

// Close ends the view as it is. The run continues.
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

// Done returns a channel that is closed when the view has ended, for any reason.
func (v *View) Done() <-chan struct{} { return v.done }

// Err returns the reason why the view ended by itself, such as a [*PanicError]. It is nil if the view runs, or if Finish or Close
// ended it.
func (v *View) Err() error {
	select {
	case <-v.done:
		return v.err
	default:
		return nil
	}
}

// carry sends events to the program. Each message has all events that have arrived since the last one.
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
	v.pending = eventsMsg{}
	v.mu.Unlock()
	if len(batch.events) > 0 {
		v.prog.Send(batch)
	}
}

type (
	eventsMsg struct {
		events  []*session.Event
		restart bool // the events are the run from its beginning
	}
	noteMsg   string
	finishMsg struct{}
	closeMsg  struct{}
	tickMsg   struct{}
)
