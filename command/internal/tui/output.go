// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// output returns the part of the open step's output for which there is room, and a title.
func (m *model) output(room int) (title string, lines []string) {
	s := m.live.Tree().Find(session.Address(m.opened))
	if s == nil {
		return brief.Clean(m.opened) + ":", []string{faint.of(" it has not begun yet")}
	}
	word, look := statusWord(s.Status)
	title = strong.of(brief.Clean(string(s.Address))) + " " + look.of(word) + " " + progress.Clock(s.Took(m.now()))
	if t := tokens(s.Usage()); t != "" {
		title += "  " + t
	}
	all := m.wrapped(s)
	room = max(1, room-1)
	from := m.first(len(all), room)
	lines = append(lines, all[from:min(len(all), from+room)]...)
	if len(all) > room {
		lines = append(lines, faint.of(fmt.Sprintf(" lines %d to %d of %d", from+1, min(len(all), from+room),
			len(all))))
	}
	return title, lines
}

// wrapped returns the step's text, broken into lines that fit into the window.
func (m *model) wrapped(s *progress.Step) []string {
	var out []string
	add := func(text string, look style) {
		for line := range strings.Lines(text) {
			line = brief.Clean(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "))
			for part := range strings.SplitSeq(ansi.WrapWc(line, max(1, m.width-2), ""), "\n") {
				out = append(out, " "+look.of(part))
			}
		}
	}
	switch {
	case s.Error == "":
	case s.Again:
		add(fmt.Sprintf("Attempt %d failed, another follows: %s", s.Attempt, s.Error), yellow)
	case s.Status == progress.StatusRunning:
		add(fmt.Sprintf("Attempt %d failed: %s", s.Attempt-1, s.Error), yellow)
	default:
		add("Failed: "+s.Error, red)
	}
	if x := s.Exit; x != nil {
		add("Wants to leave: "+x.Reason, yellow)
		if x.Refused != "" {
			add("Refused: "+x.Refused, yellow)
		}
	}
	add(s.Text, plainly)
	if len(out) == 0 {
		out = append(out, faint.of(" it has said nothing yet"))
	}
	return out
}

// first returns the index of the first line of output that is shown.
func (m *model) first(lines, room int) int {
	end := max(0, lines-room)
	if m.scroll < 0 {
		return end
	}
	return min(m.scroll, end)
}

// scrollBy scrolls the open output.
func (m *model) scrollBy(key string) {
	s := m.live.Tree().Find(session.Address(m.opened))
	if s == nil {
		return
	}
	room := max(1, m.height/2)
	n := len(m.wrapped(s))
	if m.scroll < 0 {
		m.scroll = max(0, n-room)
	}
	switch key {
	case "up", "k":
		m.scroll--
	case "down", "j":
		m.scroll++
	case "pgup":
		m.scroll -= room
	case "pgdown", "space":
		m.scroll += room
	case "home":
		m.scroll = 0
	case "end":
		m.scroll = -1
		return
	case "enter", "left":
		m.opened = ""
		return
	}
	m.scroll = max(0, min(m.scroll, n-1))
}
