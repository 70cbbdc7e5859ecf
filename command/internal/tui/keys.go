// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// key carries out the command of a key.
func (m *model) key(key string) tea.Cmd {
	asked := m.asked
	if m.asked = false; asked {
		m.note = ""
	}
	switch key {
	case "ctrl+c", "ctrl+\\":
		return call(m.cfg.Hooks.Interrupt)
	case "ctrl+z":
		return tea.Suspend
	case "p":
		return m.say(m.cfg.Hooks.Pause, "Pausing after the running step.")
	case "d":
		return call(m.cfg.Hooks.Detach)
	case "c":
		return m.cancel(asked)
	case "e":
		m.errors = !m.errors
	case "?":
		m.help = !m.help
	case "esc":
		m.back()
	default:
		m.move(key)
	}
	return nil
}

// say calls a hook, and shows a note about its effect.
func (m *model) say(hook func(), what string) tea.Cmd {
	if hook != nil {
		m.note = what
	}
	return call(hook)
}

// cancel asks for confirmation first, because a key is easily pressed by mistake.
func (m *model) cancel(asked bool) tea.Cmd {
	switch {
	case m.cfg.Hooks.Cancel == nil:
		return nil
	case !asked:
		m.asked, m.note = true, "Press c again to cancel the run."
		return nil
	}
	m.note = "Canceling: ending the running step."
	return call(m.cfg.Hooks.Cancel)
}

// back closes the help, the open output, the selection or the list of errors: the first of them that is there.
func (m *model) back() {
	switch {
	case m.help:
		m.help = false
	case m.opened != "":
		m.opened = ""
	case m.selected != "":
		m.selected = ""
	default:
		m.errors = false
	}
}

// move moves the selection, or scrolls the output of the open step.
func (m *model) move(key string) {
	m.help = false
	if m.opened != "" {
		m.scrollBy(key)
		return
	}
	rows := m.rows()
	rows = slices.DeleteFunc(rows, func(r row) bool { return r.key == "" })
	if len(rows) == 0 {
		return
	}
	at := slices.IndexFunc(rows, func(r row) bool { return r.key == m.selected })
	page := max(1, m.height/2)
	switch key {
	case "up", "k":
		if at < 0 {
			at = len(rows)
			if i := lastRunning(rows); i >= 0 {
				at = i + 1
			}
		}
		at--
	case "down", "j":
		if at < 0 {
			return // it follows already
		}
		at++
	case "pgup":
		if at < 0 {
			at = len(rows)
		}
		at -= page
	case "pgdown":
		if at < 0 {
			return
		}
		at += page
	case "home":
		at = 0
	case "end":
		m.selected = ""
		return
	case "enter", "right", "left", "space":
		if at >= 0 {
			m.open(rows[at], key)
		}
		return
	default:
		return
	}
	m.selected = rows[max(0, min(at, len(rows)-1))].key
}

// open unfolds or folds a row.
func (m *model) open(r row, key string) {
	if r.foldable {
		if want := key == "right" || key != "left" && !r.unfolded; want != r.unfolded {
			m.toggled[r.key] = !m.toggled[r.key]
		}
		return
	}
	if r.step != nil && key != "left" {
		m.opened, m.scroll = r.key, -1
		if r.done {
			m.scroll = 0
		}
	}
}

// hints returns the keys that have an effect now, with words for the effects; a narrow window shows the keys alone. The last key
// opens the help.
func (m *model) hints() string {
	if m.cfg.Input == nil {
		return "Ctrl-C stops the run"
	}
	var words, alone []string
	add := func(there bool, key, what string) {
		if there {
			words, alone = append(words, key+" "+what), append(alone, key)
		}
	}
	h, opened, errors := m.cfg.Hooks, m.opened != "", "errors"
	if m.errors {
		errors = "all"
	}
	add(opened, "esc", "back")
	add(opened, "↑↓", "scroll")
	add(h.Pause != nil, "p", "pause")
	add(h.Cancel != nil, "c", "cancel")
	add(h.Detach != nil, "d", "detach")
	add(!opened, "↑↓ ⏎", "open")
	add(!opened, "e", errors)
	add(true, "?", "help")
	if s := strings.Join(words, " · "); ansi.StringWidthWc(s) <= m.width {
		return s
	}
	return strings.Join(alone, " · ") + " help"
}

// ctrlC returns a word for the effect of Ctrl-C. For a person who only watches the run, it does not end the run.
func (m *model) ctrlC() string {
	switch h := m.cfg.Hooks; {
	case h.Pause != nil:
		return "pause; again to cut off the running step, and again to leave at once"
	case h.Cancel == nil && h.Detach != nil:
		return "leave the run going"
	}
	return "end the run when its step is done; again to end it now"
}

// helpLines explain the keys.
func (m *model) helpLines() []string {
	h := m.cfg.Hooks
	var lines []string
	add := func(there bool, key, what string) {
		if there {
			lines = append(lines, " "+pad(key, 10)+what)
		}
	}
	add(h.Pause != nil, "p", "pause after the running step; nothing is lost")
	add(h.Cancel != nil, "c c", "cancel the run now; its result so far is kept")
	add(h.Detach != nil, "d", "leave; the run goes on in the background")
	add(h.Interrupt != nil, "Ctrl-C", m.ctrlC())
	add(true, "↑ ↓", "choose an iteration or a step; Home, End, PgUp, PgDn")
	add(true, "⏎", "open what a step has said, or the steps of an iteration")
	add(true, "← →", "close or open an iteration")
	add(true, "e", "only failed and running steps")
	add(true, "esc", "go back; at last, to the running step")
	return lines
}
