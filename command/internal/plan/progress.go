// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
)

// Progress is what a loop has found out about the tasks of a plan, by their keys. The loop keeps it in its log, so that neither the
// agent's words nor its changes to the plan decide which task is done.
type Progress struct {
	Done   []string          `json:"done,omitempty"`
	Failed map[string]string `json:"failed,omitempty"` // the reasons
	Tries  map[string]int    `json:"tries,omitempty"`  // that have failed, of tasks that are open
	Text   string            `json:"text,omitempty"`   // hash of the plan's text without its boxes
	Before Before            `json:"before,omitzero"`
}

// Before has the files from before the tries of a task.
type Before struct {
	Key   string `json:"key"`   // of the task
	Files string `json:"files"` // a value of runfiles.Work.Restore
}

// Next is a task to work on.
type Next struct {
	Open    int      `json:"open"`  // tasks that are neither done nor failed
	Total   int      `json:"total"` // all tasks
	Number  int      `json:"number,omitempty"`
	Key     string   `json:"key,omitempty"`
	Title   string   `json:"title,omitempty"`
	Prompt  string   `json:"prompt,omitempty"`
	Command string   `json:"command,omitempty"`
	Try     int      `json:"try,omitempty"`
	Again   string   `json:"again,omitempty"`   // "yes" if an earlier try failed
	Changed string   `json:"changed,omitempty"` // "yes" if the text of the plan has changed since the last iteration
	State   Progress `json:"progress"`
}

// Marks returns the marks of all tasks: those of the progress, or else those in the plan.
func (p *Plan) Marks(g Progress) map[string]Mark {
	marks := make(map[string]Mark)
	for _, t := range p.Tasks {
		marks[t.Key] = t.Mark
	}
	for key := range g.Failed {
		if m, ok := marks[key]; ok && m != Done {
			marks[key] = Failed
		}
	}
	for _, key := range g.Done {
		if _, ok := marks[key]; ok {
			marks[key] = Done
		}
	}
	return marks
}

// Next returns the first open task, with a prompt for the agent. until is a command that decides besides those of the plan.
func (p *Plan) Next(g Progress, until, files string) Next {
	marks := p.Marks(g)
	n := Next{Total: len(p.Tasks), State: g}
	if hash := p.hash(); hash != g.Text {
		if g.Text != "" {
			n.Changed = "yes"
		}
		n.State.Text = hash
	}
	for i, t := range p.Tasks {
		if marks[t.Key] != Open {
			continue
		}
		if n.Open++; n.Open > 1 {
			continue
		}
		n.Number, n.Key, n.Title, n.Try = i+1, t.Key, t.Title, g.Tries[t.Key]+1
		if n.Try > 1 {
			n.Again = "yes"
		}
		if g.Before.Key != t.Key { // also if another task has come in between, whose work stays
			n.State.Before = Before{t.Key, files}
		}
		n.Command = p.command(t, until)
		n.Prompt = p.prompt(t, n)
	}
	return n
}

// command returns the script that decides whether a task is done: that of the task or of the plan, and that of until.
func (p *Plan) command(t Task, until string) string {
	script := t.Check
	if script == "" {
		script = p.Check
	}
	switch {
	case script == "":
		return until
	case until == "":
		return "set -e\n" + script
	}
	return "set -e\n" + script + "\n" + until
}

func (p *Plan) prompt(t Task, n Next) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This is task %d of %d of a plan. Do this task only:\n\n%s\n", n.Number, n.Total, t.Text)
	if p.Context != "" {
		fmt.Fprintf(&b, "\nThe plan also says:\n\n%s\n", p.Context)
	}
	fmt.Fprintf(&b, "\nLeave the boxes of the plan as they are: they are ticked for you when this succeeds:\n\n%s\n", n.Command)
	b.WriteString("\nIf you cannot do the task, say why in a last line that begins with BLOCKED:\n")
	return b.String()
}

// hash names the text of the plan without its boxes.
func (p *Plan) hash() string {
	marks := make(map[string]Mark)
	for _, t := range p.Tasks {
		marks[t.Key] = Open
		if p.lines == nil {
			marks[t.Key] = Done
		}
	}
	sum := sha256.Sum256([]byte(p.Marked(marks)))
	return hex.EncodeToString(sum[:8])
}

// Outcome is what came of an iteration.
type Outcome struct {
	Succeeded bool   // the command of the task
	Output    string // the agent's last message
	Tries     int    // after which a task has failed
	Stop      bool   // the loop ends when a task has failed
}

// Ticked is the progress after an iteration.
type Ticked struct {
	Progress Progress `json:"progress"`
	Open     int      `json:"open"`
	Total    int      `json:"total"`
	Left     []string `json:"left,omitempty"`    // the titles of open tasks, at most mostTitles
	Failed   []string `json:"failed,omitempty"`  // each task with its reason
	Commit   string   `json:"commit,omitempty"`  // message of the commit; empty unless the task is done
	Restore  string   `json:"restore,omitempty"` // files to go back to, because the task has failed
	Over     bool     `json:"over"`              // the loop ends
}

// Tick returns the progress after an iteration that worked on the task of next.
func (p *Plan) Tick(next Next, o Outcome) Ticked {
	g := next.State
	g.Failed, g.Tries = clone(g.Failed), clone(g.Tries)
	out := Ticked{Total: len(p.Tasks)}
	blocked := blockedBy(o.Output)
	stops := false
	switch {
	case next.Key == "":
	case o.Succeeded && blocked == "":
		g.Done = append(append([]string(nil), g.Done...), next.Key)
		delete(g.Tries, next.Key)
		g.Before = Before{}
		out.Commit = next.Title + "\n\n" + clip(o.Output, mostWords)
	default:
		g.Tries[next.Key]++
		if blocked != "" || g.Tries[next.Key] >= o.Tries {
			g.Failed[next.Key] = blocked
			if blocked == "" {
				g.Failed[next.Key] = fmt.Sprintf("its command failed %d times", g.Tries[next.Key])
			}
			delete(g.Tries, next.Key)
			if stops = o.Stop; !stops && g.Before.Key == next.Key {
				out.Restore = g.Before.Files
			}
			g.Before = Before{}
		}
	}
	marks := p.Marks(g)
	for _, t := range p.Tasks {
		switch marks[t.Key] {
		case Open:
			if out.Open++; out.Open <= mostTitles {
				out.Left = append(out.Left, clip(t.Title, mostTitle))
			}
		case Failed:
			reason := g.Failed[t.Key]
			if reason == "" {
				reason = "it is marked in the plan"
			}
			out.Failed = append(out.Failed, t.Title+": "+reason)
		}
	}
	out.Progress, out.Over = g, out.Open == 0 || stops
	return out
}

// blockedBy returns the reason in a last line that begins with BLOCKED:, or "".
func blockedBy(said string) string {
	said = strings.TrimSpace(said)
	last := strings.Trim(said[strings.LastIndexByte(said, '\n')+1:], "*_ ")
	reason, ok := strings.CutPrefix(last, "BLOCKED:")
	if !ok {
		return ""
	}
	if reason = strings.TrimSpace(strings.Trim(reason, "*_ ")); reason == "" {
		return "the agent does not say why"
	}
	return plainTitle(clip(reason, mostReason))
}

// Longest texts of an agent in the progress, in bytes. A step gets the progress in a variable of its environment, which has little room.
const (
	mostWords  = 4000
	mostReason = 500
	mostTitle  = 200
)

// mostTitles is how many open tasks the progress names.
const mostTitles = 20

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

func clone[V any](m map[string]V) map[string]V {
	c := make(map[string]V)
	maps.Copy(c, m)
	return c
}
