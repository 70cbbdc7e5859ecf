// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"

	"github.com/refrain-dev/refrain/progress"
)

// frame is what the view shows now: never more lines than the window has, nor
// longer ones.
func (m *model) frame() string {
	// One line is left free: that is where the terminal goes on afterwards.
	height := max(1, m.height-1)
	low := height < 12 && !m.finished
	top, bottom := m.header(), m.footer()
	if low { // what happens now, and the keys
		top, bottom = top[:1], bottom[len(bottom)-1:]
	} else if height >= 16 {
		top = append(top, "")
		bottom = append([]string{""}, bottom...)
	}
	title := "Progress by Iteration:"
	var body []string
	left := max(2, height-len(top)-len(bottom)-1)
	switch {
	case m.help:
		title, body = "Keys:", m.helpLines()
	case m.opened != "":
		title, body = m.output(left)
	default:
		body = m.tree(left)
		if m.errors {
			title = "Errors by Iteration:"
		}
	}
	lines := append(append(append(top, title), body...), bottom...)
	if over := len(lines) - height; over > 0 {
		lines = lines[over:]
	}
	for i, l := range lines {
		lines[i] = fit(l, m.width)
	}
	if m.down {
		lines = append(lines, "") // the program leaves the terminal in the last one
	}
	return strings.Join(lines, "\n")
}

// tree is the part of the tree that there is room for: what is chosen, or what
// happens now, is in it.
func (m *model) tree(room int) []string {
	rows := m.rows()
	if len(rows) == 0 {
		if m.errors {
			return []string{faint.of(" nothing has failed")}
		}
		return []string{faint.of(" nothing has begun yet")}
	}
	from, to := 0, len(rows)
	if to > room {
		from = to - room + 1 // one line says what is missing
		focus := lastRunning(rows)
		for i, r := range rows {
			if m.selected != "" && r.key == m.selected {
				focus = i
			}
		}
		if focus >= 0 && focus <= from {
			from = max(0, focus-1)
		}
		if from < 2 {
			from = 0
		}
		to = min(len(rows), from+room)
		if from > 0 {
			to = min(len(rows), from+room-1)
		}
		if to < len(rows) {
			to--
		}
	}
	var out []string
	if from > 0 {
		out = append(out, faint.of(" … "+missing(rows[:from], "earlier")))
	}
	for _, r := range rows[from:to] {
		out = append(out, m.line(r))
	}
	if to < len(rows) {
		out = append(out, faint.of(" … "+missing(rows[to:], "later")))
	}
	return out
}

// missing says what there is no room for.
func missing(rows []row, where string) string {
	n := 0
	for _, r := range rows {
		if r.top > 0 {
			n++
		}
	}
	if n == 0 {
		return plural(len(rows), where+" line")
	}
	return plural(n, where+" iteration")
}

var spinner = []rune("⠹⠼⠶⠧⠏⠛")

// line is a row as text.
func (m *model) line(r row) string {
	mark := " "
	label := pad(r.label, r.wide)
	if r.key == m.selected && m.selected != "" {
		mark, label = strong.of("›"), "\x1b[7m"+label+"\x1b[m"
	}
	word, look := statusWord(r.status)
	glyph := " "
	switch {
	case r.status == progress.StatusRunning:
		glyph = string(spinner[m.spin%len(spinner)])
	case r.status == progress.StatusCompleted && r.step != nil:
		glyph = "✓"
	case r.status == progress.StatusFailed:
		glyph = "✗"
	}
	s := mark + faint.of(r.guide) + label + " " + look.of(pad(word, 11)+" "+glyph)
	took := ""
	if r.status != progress.StatusPending && r.status != progress.StatusSkipped {
		took = progress.Clock(r.took)
	}
	s += " " + pad(took, 7)
	if r.tokens != "" {
		s += "  " + faint.of(r.tokens)
	}
	if r.note != "" {
		look := faint
		switch {
		case r.warning && r.status == progress.StatusFailed:
			look = red
		case r.warning:
			look = yellow
		case r.note == "best":
			look = green
		}
		s += "  " + look.of(r.note)
	}
	return strings.TrimRight(s, " ")
}

func statusWord(s progress.Status) (string, style) {
	word := "[" + strings.ToUpper(string(s)) + "]"
	switch s {
	case progress.StatusCompleted:
		return word, green
	case progress.StatusRunning:
		return word, cyan
	case progress.StatusFailed:
		return word, red
	case progress.StatusRejected, progress.StatusCanceled:
		return word, yellow
	}
	return word, faint
}
