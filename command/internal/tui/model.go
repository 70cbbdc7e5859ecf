// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"runtime/debug"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// model is the state of a view. Only messages change it, one at a time.
type model struct {
	cfg  Config
	live progress.Live

	// heard is the time of the last event. since is the time from that event to the last tick.
	heard time.Time
	since time.Duration
	spin  int

	width, height int
	note          string
	finished      bool // the run is over
	down          bool // this is the last frame
	failed        *PanicError

	errors, help bool
	asked        bool            // whether to cancel, once
	selected     string          // the row's key; "" follows what happens
	toggled      map[string]bool // rows that are not as they would be by themselves
	opened       string          // the key of the step whose output is shown
	scroll       int             // its first line; below 0 the end of it
}

// Size of a terminal that does not report its size.
const (
	usualWidth  = 80
	usualHeight = 24
)

func newModel(cfg Config) *model {
	if cfg.Tick == 0 {
		cfg.Tick = time.Second / 5
	}
	return &model{cfg: cfg, width: usualWidth, height: usualHeight, toggled: make(map[string]bool)}
}

// Init starts the clock.
func (m *model) Init() tea.Cmd { return m.tick() }

func (m *model) tick() tea.Cmd {
	if m.cfg.Tick < 0 {
		return nil
	}
	return tea.Tick(m.cfg.Tick, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update handles a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			m.width, m.height = msg.Width, msg.Height
		}
	case eventsMsg:
		if msg.restart {
			m.live = progress.Live{}
		}
		for _, ev := range msg.events {
			m.live.Add(ev)
		}
		m.heard, m.since = time.Now(), 0
	case tickMsg:
		m.spin++
		if !m.heard.IsZero() {
			m.since = time.Since(m.heard)
		}
		return m, m.tick()
	case noteMsg:
		m.note = brief.Clean(string(msg))
	case finishMsg:
		m.finished, m.down, m.help, m.opened, m.selected, m.note = true, true, false, "", "", ""
		return m, tea.Quit
	case closeMsg:
		m.down, m.note = true, ""
		return m, tea.Quit
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

// now returns the time on the run's clock.
func (m *model) now() time.Duration {
	t := m.live.Tree()
	if m.finished || t.Paused || t.Root == nil || t.Root.Status != progress.StatusRunning {
		return t.Now
	}
	return t.Now + m.since
}

// View draws a frame.
func (m *model) View() tea.View {
	return tea.NewView(m.frame())
}

// PanicError reports that drawing or a hook panicked. The view has ended, the terminal is restored, and the run continues.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the value of the panic, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// panicGuard is a model that ends the view in order if a method panics. The library would restore the terminal too, but while it still
// reads from it.
type panicGuard struct{ *model }

func (g panicGuard) Update(msg tea.Msg) (next tea.Model, cmd tea.Cmd) {
	defer g.recover(func() { next, cmd = g, tea.Quit })
	if p, ok := msg.(*PanicError); ok && g.failed == nil {
		g.failed = p
	}
	if g.failed != nil {
		return g, tea.Quit
	}
	_, cmd = g.model.Update(msg)
	return g, cmd
}

func (g panicGuard) View() (v tea.View) {
	defer g.recover(func() { v = tea.NewView("") })
	if g.failed != nil {
		return tea.NewView("")
	}
	return g.model.View()
}

func (g panicGuard) recover(then func()) {
	if r := recover(); r != nil {
		g.failed = &PanicError{r, debug.Stack()}
		then()
	}
}

// call calls a hook in a goroutine of its own.
func call(hook func()) tea.Cmd {
	if hook == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = &PanicError{r, debug.Stack()}
			}
		}()
		hook()
		return nil
	}
}
