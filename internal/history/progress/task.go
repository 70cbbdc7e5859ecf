// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/session"
)

// Task is the task of a plan on which an iteration works. The steps of refrain loop --plan write it into the state.
type Task struct {
	Number int    `json:"number"` // its place in the plan, from 1
	Total  int    `json:"total"`  // tasks of the plan
	Title  string `json:"title"`
	Status string `json:"status"` // done, failed or open

	key string // its key in the plan's progress
}

// The values of [Task].Status. An iteration can leave a task open, which another one tries again.
const (
	TaskOpen   = "open"
	TaskDone   = "done"
	TaskFailed = "failed"
)

// Text returns the task in a line.
func (t *Task) Text() string {
	text := fmt.Sprintf("task %d of %d", t.Number, t.Total)
	if t.Status != TaskOpen {
		text += ", " + t.Status
	}
	return text + ": " + t.Title
}

// The state keys that the steps of a plan write.
const (
	taskKey   = "task"
	tickedKey = "ticked"
)

// Tasks says how far a run is with the tasks of its plan.
type Tasks struct {
	Total  int      `json:"total"`
	Open   int      `json:"open"`
	Titles []string `json:"titles,omitempty"` // of the first open tasks
	Failed []string `json:"failed,omitempty"` // each title with the reason
}

// tasksIn returns the tasks after an event that decides about one of them; nil for any other event.
func tasksIn(ev *session.Event) *Tasks {
	ticked, _ := ev.Actions.StateDelta[tickedKey].(map[string]any)
	t := &Tasks{Total: whole(ticked["total"]), Open: whole(ticked["open"]), Titles: texts(ticked["left"]), Failed: texts(ticked["failed"])}
	if ev.Mark != nil || ev.Partial || t.Total < 1 || t.Open+len(t.Failed) > t.Total {
		return nil
	}
	return t
}

// texts returns the texts of a list of a state.
func texts(v any) (all []string) {
	list, _ := v.([]any)
	for _, x := range list {
		if s, ok := x.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// mostTasks is how many tasks of a kind are named.
const mostTasks = 20

// Lines returns a line about all tasks, and one for each task that is not done.
func (t *Tasks) Lines() []string {
	if t == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("Tasks of the plan: %d of %d done", t.Total-t.Open-len(t.Failed), t.Total)}
	name := func(kind string, titles []string, all int) {
		titles = titles[:min(mostTasks, len(titles))]
		for _, title := range titles {
			lines = append(lines, "  "+kind+": "+brief.Line(title, lineText))
		}
		if more := all - len(titles); more > 0 {
			lines = append(lines, fmt.Sprintf("  %s: %d more", kind, more))
		}
	}
	name("open", t.Titles, t.Open)
	name("failed", t.Failed, len(t.Failed))
	return lines
}

// planEnd finds the error of the step at the end of a plan, of which some tasks have failed.
var planEnd = lazyregexp.New(`^agent "end" \([^()]*end\): run command "[^"]*": exit status 1: refrain: (\d+ of \d+ tasks failed: )`)

// PlainError returns the error of a run for people: that some tasks of its plan have failed, without the step that says so. Any other text
// stays as it is.
func PlainError(text string) string {
	if at := planEnd().FindStringSubmatchIndex(text); at != nil {
		return text[at[2]:]
	}
	return text
}

// taskIn returns the task that a step has chosen; nil if the event chooses none.
func taskIn(ev *session.Event) *Task {
	next, _ := ev.Actions.StateDelta[taskKey].(map[string]any)
	t := &Task{Number: whole(next["number"]), Total: whole(next["total"]), Status: TaskOpen}
	t.Title, _ = next["title"].(string)
	t.key, _ = next["key"].(string)
	if ev.Mark != nil || ev.Partial || t.Number < 1 || t.Number > t.Total || t.Title == "" || t.key == "" {
		return nil // of another definition
	}
	return t
}

// decide takes what a step has decided about the task.
func (t *Task) decide(ev *session.Event) {
	ticked, _ := ev.Actions.StateDelta[tickedKey].(map[string]any)
	known, _ := ticked["progress"].(map[string]any)
	done, _ := known["done"].([]any)
	failed, _ := known["failed"].(map[string]any)
	switch _, is := failed[t.key]; {
	case slices.Contains(done, any(t.key)):
		t.Status = TaskDone
	case is:
		t.Status = TaskFailed
	}
}

// task takes the task that a step has chosen, and what another one has decided about it.
func (l *Live) task(ev *session.Event, now time.Duration) {
	_, n := lastOf(ev.Address)
	if ev.Mark != nil || ev.Partial || n == 0 {
		return
	}
	next, ticked := taskIn(ev), ev.Actions.StateDelta[tickedKey]
	if next == nil && ticked == nil {
		return
	}
	it := l.step(ev.Address.Parent(), now).loop().pass(n, now)
	if next != nil {
		it.Task = next
	}
	if it.Task != nil {
		it.Task.decide(ev)
	}
	if t := tasksIn(ev); t != nil {
		l.tree.Tasks = t
	}
}

// whole returns a number of a state; 0 for any other value.
func whole(v any) int {
	switch n := v.(type) {
	case float64:
		return int(n)
	case int64:
		return int(n)
	case int:
		return n
	}
	return 0
}
