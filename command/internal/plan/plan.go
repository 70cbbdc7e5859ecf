// SPDX-License-Identifier: Apache-2.0

// Package plan reads plans: lists of tasks with boxes in Markdown, and the stories of a prd.json. It reads texts and returns texts;
// it knows no files and no programs.
//
//	p, err := plan.Parse(text)
//	if err != nil {
//		return err
//	}
//	text = p.Marked(map[string]plan.Mark{p.Tasks[0].Key: plan.Done})
package plan

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
)

// Mark is the state of a task.
type Mark byte

// The marks of tasks, as they stand in the boxes of a plan.
const (
	Open   Mark = ' '
	Done   Mark = 'x'
	Failed Mark = '!'
)

// Plan has the tasks of a text.
type Plan struct {
	Tasks   []Task
	Context string // the text outside the tasks, without the commands of Check
	Check   string // a script of the shell that finds out whether a task is done; empty if the plan has none
	Branch  string // name of a branch that the plan asks for; empty if it names none

	text  string
	lines []string // of Markdown, with their line ends; nil for JSON
}

// Task is a task of a plan.
type Task struct {
	Key   string // its title, numbered if an earlier task has the same title
	Title string // one line
	Text  string // the whole task as it stands in the plan
	Check string // a script of the shell for this task, in place of the plan's; empty for none
	Mark  Mark

	boxes []int // offsets of the characters in its boxes, or for JSON of the value to replace
	value string
}

// MostText is the size of the largest plan in bytes.
const MostText = 1 << 20

// Parse reads a plan. It returns an error for a text without a task.
func Parse(text string) (*Plan, error) {
	if len(text) > MostText {
		return nil, fmt.Errorf("the plan has more than %d bytes; split it", MostText)
	}
	parse := parseMarkdown
	if strings.HasPrefix(strings.TrimLeftFunc(text, unicode.IsSpace), "{") {
		parse = parseStories
	}
	p, err := parse(text)
	if err != nil {
		return nil, err
	}
	if len(p.Tasks) == 0 {
		return nil, errors.New("the plan has no task; write one a line, such as: - [ ] Add a flag for the port")
	}
	seen := make(map[string]int)
	for i := range p.Tasks {
		t := &p.Tasks[i]
		t.Key = t.Title
		for seen[t.Key] > 0 {
			seen[t.Title]++
			t.Key = fmt.Sprintf("%s (%d)", t.Title, seen[t.Title])
		}
		seen[t.Key]++
	}
	return p, nil
}

// Checks returns the scripts of the shell that find out whether tasks are done: that of the plan, and those of tasks.
func (p *Plan) Checks() (scripts []string) {
	add := func(script string) {
		if script != "" && !slices.Contains(scripts, script) {
			scripts = append(scripts, script)
		}
	}
	add(p.Check)
	for _, t := range p.Tasks {
		add(t.Check)
	}
	return scripts
}

// Marked returns the text of the plan with these marks in place of those in the text. The keys are those of the tasks.
func (p *Plan) Marked(marks map[string]Mark) string {
	type change struct {
		at       int
		was, now string
	}
	var changes []change
	for _, t := range p.Tasks {
		m, ok := marks[t.Key]
		if !ok || m == t.Mark {
			continue
		}
		for _, at := range t.boxes {
			if p.lines == nil {
				changes = append(changes, change{at, t.value, storyValue(t.value, m)})
			} else {
				changes = append(changes, change{at, p.text[at : at+1], string(rune(m))})
			}
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return a.at - b.at })
	var out strings.Builder
	end := 0
	for _, c := range changes {
		out.WriteString(p.text[end:c.at] + c.now)
		end = c.at + len(c.was)
	}
	return out.String() + p.text[end:]
}

// BranchOf returns the name of a branch for the plan in a file: the name of the file without a date and its extension.
func (p *Plan) BranchOf(file string) string {
	if p.Branch != "" {
		return p.Branch
	}
	name := path.Base(strings.ReplaceAll(file, `\`, "/"))
	name = strings.TrimSuffix(name, path.Ext(name))
	name = strings.TrimLeftFunc(name, func(r rune) bool { return unicode.IsDigit(r) || r == '-' || r == '_' || r == '.' })
	name = strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r >= 0x80 || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), "-")
	if name == "" {
		return "plan"
	}
	return name
}
