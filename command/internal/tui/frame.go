// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
)

// frame returns the lines that the view shows now. The frame is never higher or wider than the window.
func (m *model) frame() string {
	// One line stays free, because the terminal continues there after the view ends.
	height := max(1, m.height-1)
	top, bottom := m.header(), m.footer()
	title := "Progress by Iteration:"
	switch {
	case m.low(): // what happens now, and the keys
		top, bottom, title = m.few(height, top, bottom)
	case height >= 16:
		top = append(top, "")
		bottom = append([]string{""}, bottom...)
	}
	var body []string
	room := height - len(top) - len(bottom)
	switch {
	case m.help:
		title, body = "Keys:", m.helpLines()
		if m.low() { // there is room for little else
			top, title = nil, ""
			body, bottom = body[:max(1, min(len(body), height-1))], bottom[len(bottom)-1:]
		}
	case m.opened != "":
		title, body = m.output(max(2, room-1))
	case m.errors:
		title = "Errors by Iteration:"
		body = m.tree(max(1, room-1))
	case title == "":
		body = m.tree(max(1, room))
	default:
		body = m.tree(max(1, room-1))
	}
	lines := top
	if title != "" {
		lines = append(lines, title)
	}
	lines = append(append(lines, body...), bottom...)
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

// low reports whether the window has too few lines to show everything. narrow reports whether its lines are too short for words.
func (m *model) low() bool    { return m.height < 13 && !m.finished }
func (m *model) narrow() bool { return m.width < 60 }

// few returns the lines that a low window shows above and below the tree.
func (m *model) few(height int, top, bottom []string) (above, below []string, title string) {
	above, below = top[:1], bottom[len(bottom)-1:]
	if height >= 7 {
		above = top[:min(2, len(top))]
	}
	if height >= 9 { // what is said, or where it goes
		below = bottom[max(0, len(bottom)-m.lastLines()-1):]
	}
	if height >= 10 {
		title = "Progress by Iteration:"
	}
	return above, below, title
}

// tree returns the rows of the tree that fit into the room. They include the selected row, or without a selection the row that runs
// now.
func (m *model) tree(room int) []string {
	rows := m.rows()
	if len(rows) == 0 {
		if m.errors {
			return []string{faint.of(" nothing has failed")}
		}
		return []string{faint.of(" nothing has begun yet")}
	}
	focus := lastRunning(rows)
	for i, r := range rows {
		if m.selected != "" && r.key == m.selected {
			focus = i
		}
	}
	if len(rows) > room && room < 4 { // and none for what is missing
		at := max(0, min(focus-(room-1)/2, len(rows)-room))
		var out []string
		for _, r := range rows[at : at+room] {
			out = append(out, m.line(r))
		}
		return out
	}
	from, to := 0, len(rows)
	if to > room {
		from = to - room + 1 // one line says what is missing
		if focus >= 0 && focus <= from {
			from = max(0, focus-1)
		}
		if in := iterationAbove(rows, focus); in >= 0 && in < from && focus-in <= room-3 {
			from = in // rather than what comes after it
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

// iterationAbove returns the index of the iteration that contains row i, or -1 if there is none.
func iterationAbove(rows []row, i int) int {
	for ; i >= 0; i-- {
		if rows[i].top > 0 {
			return i
		}
	}
	return -1
}

// missing returns a line that names the rows for which there is no room.
func missing(rows []row, where string) string {
	n := 0
	for _, r := range rows {
		if r.top > 0 {
			n++
		}
	}
	if n == 0 {
		return brief.Count(len(rows), where+" line")
	}
	return brief.Count(n, where+" iteration")
}

var spinner = []rune("⠹⠼⠶⠧⠏⠛")

// line returns a row as text.
func (m *model) line(r row) string {
	mark := " "
	label := pad(r.label, r.wide)
	if r.key == m.selected && m.selected != "" {
		mark, label = strong.of("›"), "\x1b[7m"+label+"\x1b[m"
	}
	word, look := statusWord(r.status)
	if m.narrow() {
		return strings.TrimRight(mark+faint.of(r.guide)+label+" "+look.of(m.sign(r.status))+m.tookAndNote(r, 0), " ")
	}
	glyph := " "
	switch r.status {
	case progress.StatusRunning, progress.StatusFailed:
		glyph = m.sign(r.status)
	case progress.StatusCompleted:
		if r.step != nil {
			glyph = m.sign(r.status)
		}
	}
	s := mark + faint.of(r.guide) + label + " " + look.of(pad(word, 11)+" "+glyph)
	return strings.TrimRight(s+m.tookAndNote(r, 7), " ")
}

// tookAndNote returns the end of a row: the duration, in a field of that many columns, and the row's note.
func (m *model) tookAndNote(r row, columns int) string {
	took := ""
	if r.status != progress.StatusPending && r.status != progress.StatusSkipped {
		took = brief.Clock(r.took)
	}
	s := " " + pad(took, columns)
	if r.aside != "" {
		s += "  " + faint.of(r.aside)
	}
	if r.note != "" {
		look := faint
		switch {
		case r.warning && r.status == progress.StatusFailed:
			look = red
		case r.warning:
			look = yellow
		case strings.HasPrefix(r.note, "best"):
			look = green
		}
		s += "  " + look.of(r.note)
	}
	return s
}

// looks holds the sign and the style of each status. Every other status is a faint dot.
var looks = map[progress.Status]struct {
	sign  string
	style style
}{
	progress.StatusCompleted: {"✓", green},
	progress.StatusRunning:   {"", cyan}, // the spinner
	progress.StatusFailed:    {"✗", red},
	progress.StatusRejected:  {"!", yellow},
	progress.StatusPaused:    {"=", yellow},
	progress.StatusWaiting:   {"?", yellow},
	progress.StatusCanceled:  {"-", yellow},
}

// sign returns the sign of a status, for a window that has no room for its word.
func (m *model) sign(s progress.Status) string {
	if s == progress.StatusRunning {
		return string(spinner[m.spin%len(spinner)])
	}
	return cmp.Or(looks[s].sign, ".")
}

func statusWord(s progress.Status) (string, style) {
	return "[" + strings.ToUpper(string(s)) + "]", cmp.Or(looks[s].style, faint)
}

// output returns the part of the open step's output for which there is room, and a title.
func (m *model) output(room int) (title string, lines []string) {
	s := m.live.Tree().Find(session.Address(m.opened))
	if s == nil {
		return brief.Clean(m.opened) + ":", []string{faint.of(" it has not begun yet")}
	}
	word, look := statusWord(s.Status)
	title = strong.of(brief.Clean(string(s.Address))) + " " + look.of(word) + " " + brief.Clock(s.Took(m.now()))
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
