// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// PanicError reports that drawing or a hook panicked. The view has ended, the terminal is restored, and the run continues.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the value of the panic, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// guarded is a model that ends the view in order if a method panics. The library would restore the terminal too, but while it still
// reads from it.
type guarded struct{ *model }

func (g guarded) Update(msg tea.Msg) (next tea.Model, cmd tea.Cmd) {
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

func (g guarded) View() (v tea.View) {
	defer g.recover(func() { v = tea.NewView("") })
	if g.failed != nil {
		return tea.NewView("")
	}
	return g.model.View()
}

func (g guarded) recover(then func()) {
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
