// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"regexp"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

var (
	heading   = lazyregexp.New(`^ {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$`)
	box       = lazyregexp.New(`^([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX!])\][ \t]+(.*?)[ \t]*$`)
	fence     = lazyregexp.New("^[ \t]*(```+|~~~+)")
	taskTitle = lazyregexp.New(`(?i)^(task|iteration|step|story)[ \t]*[0-9][0-9a-z.]*[ \t]*([:.)\x{2013}\x{2014}-]|$)`)
	lists     = lazyregexp.New(`(?i)^(tasks?|to-?do|checklist|plan|steps|backlog|stories)$`)
	checks    = lazyregexp.New(`(?i)^validation( commands?)?$`)
	checkLine = lazyregexp.New(`(?i)^[ \t]*(?:[-*+][ \t]+)?\**(?:check|validate|verify)\**:\**[ \t]+(.+?)[ \t]*$`)
	item      = lazyregexp.New(`^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(.+?)[ \t]*$`)
	inTicks   = lazyregexp.New("`+([^`]+)`+")
)

// section is a part of a Markdown text below a heading; the first one has no heading.
type section struct {
	level       int // 0 without a heading
	title       string
	first, last int // lines, with the heading; last is exclusive
}

// line is a line of Markdown.
type line struct {
	text   string // without the line end
	at     int    // offset of its first byte
	fenced bool   // it is in a fence of code, or begins or ends one
	code   bool   // it is in a fence of code
}

func parseMarkdown(text string) (*Plan, error) {
	p := &Plan{text: text, lines: strings.SplitAfter(text, "\n")}
	var lines []line
	at, open := 0, ""
	for _, l := range p.lines {
		it := line{text: strings.TrimRight(l, "\r\n"), at: at, fenced: open != "", code: open != ""}
		if m := match(fence(), it.text); m != nil {
			switch {
			case open == "":
				open, it.fenced = m[1], true
			case strings.HasPrefix(m[1], open) && strings.Trim(strings.TrimSpace(it.text), open[:1]) == "":
				open, it.code = "", false
			}
		}
		lines = append(lines, it)
		at += len(l)
	}
	sections := []section{{}}
	for i, l := range lines {
		if m := match(heading(), l.text); m != nil && !l.fenced {
			sections[len(sections)-1].last = i
			sections = append(sections, section{level: len(m[1]), title: m[2], first: i})
		}
	}
	sections[len(sections)-1].last = len(lines)
	var context []string
	for i := 0; i < len(sections); i++ {
		s := sections[i]
		switch {
		case match(checks(), s.title) != nil && p.Check == "":
			p.Check = script(lines[s.first+1 : s.last])
		case s.isTask(lines):
			for i+1 < len(sections) && sections[i+1].level > s.level && !sections[i+1].isTask(lines) { // what stands below it
				i++
				s.last = sections[i].last
			}
			p.Tasks = append(p.Tasks, taskOf(lines[s.first:s.last], plainTitle(s.title)))
		default:
			tasks, rest := eachBox(lines[s.first:s.last])
			p.Tasks = append(p.Tasks, tasks...)
			if len(tasks) == 0 || strings.TrimSpace(strings.Join(rest[1:], "")) != "" {
				context = append(context, rest...)
			}
		}
	}
	p.Context = strings.TrimSpace(strings.Join(context, "\n"))
	return p, nil
}

// isTask reports whether a section is one task, whose boxes belong together.
func (s *section) isTask(lines []line) bool {
	if s.level < 2 || !hasBox(lines[s.first:s.last]) {
		return false
	}
	return match(taskTitle(), s.title) != nil || s.level > 2 && match(lists(), s.title) == nil
}

func hasBox(lines []line) bool {
	for _, l := range lines {
		if _, _, ok := l.box(); ok {
			return true
		}
	}
	return false
}

// box returns the parts of a line with a box: indent, mark and text. A text that contains a box of its own is about boxes.
func (l line) box() (m []string, at int, ok bool) {
	if l.fenced {
		return nil, 0, false
	}
	i := box().FindStringSubmatchIndex(l.text)
	if i == nil || strings.Contains(l.text[i[6]:i[7]], "[ ]") || i[6] == i[7] {
		return nil, 0, false
	}
	return []string{l.text[i[2]:i[3]], strings.ToLower(l.text[i[4]:i[5]]), l.text[i[6]:i[7]]}, l.at + i[4], true
}

// taskOf returns the task of some lines. It is done when all its boxes are.
func taskOf(lines []line, title string) Task {
	t := Task{Title: title, Mark: Done}
	var text []string
	for _, l := range lines {
		text = append(text, l.text)
		if m := match(checkLine(), l.text); m != nil && !l.fenced && t.Check == "" {
			t.Check = command(m[1])
		}
		m, at, ok := l.box()
		if !ok {
			continue
		}
		t.boxes = append(t.boxes, at)
		switch Mark(m[1][0]) {
		case Open:
			if t.Mark == Done {
				t.Mark = Open
			}
		case Failed:
			t.Mark = Failed
		}
	}
	t.Text = strings.TrimSpace(strings.Join(text, "\n"))
	return t
}

// eachBox returns the tasks of a list, in which each box that is not indented below another is one, and the other lines.
func eachBox(lines []line) (tasks []Task, rest []string) {
	for i := 0; i < len(lines); {
		m, _, ok := lines[i].box()
		if !ok {
			rest = append(rest, lines[i].text)
			i++
			continue
		}
		end := i + 1
		for end < len(lines) && below(lines, end, len(m[0])) {
			end++
		}
		tasks = append(tasks, taskOf(lines[i:end], plainTitle(m[2])))
		i = end
	}
	return tasks, append(rest, "")
}

// below reports whether a line, or the next one that is not empty, is indented by more than a box.
func below(lines []line, i, indent int) bool {
	for ; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i].text, " \t")
		if text == "" && !lines[i].code {
			continue
		}
		return len(lines[i].text)-len(text) > indent || lines[i].code
	}
	return false
}

// plainTitle returns a title without marks of Markdown around it.
func plainTitle(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "**", ""), "\u0060", "")
	return strings.Join(strings.Fields(strings.Map(printable, text)), " ")
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// script returns the commands of a section: the items of its list, and the lines of its fences.
func script(lines []line) string {
	var all []string
	for _, l := range lines {
		switch m := match(item(), l.text); {
		case l.code && strings.TrimSpace(l.text) != "":
			all = append(all, l.text)
		case m != nil && !l.fenced:
			if b, _, ok := l.box(); ok {
				m[1] = b[2]
			}
			all = append(all, command(m[1]))
		}
	}
	return strings.Join(all, "\n")
}

// command returns the command in a text: what is between ` `, or else the whole text.
func command(text string) string {
	if m := match(inTicks(), text); m != nil {
		return strings.TrimSpace(m[1])
	}
	return text
}

func match(r *regexp.Regexp, text string) []string { return r.FindStringSubmatch(text) }
