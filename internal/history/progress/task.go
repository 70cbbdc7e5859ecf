// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"slices"
	"time"

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

// task takes the task that a step has chosen, and what another one has decided about it.
func (l *Live) task(ev *session.Event, now time.Duration) {
	next, _ := ev.Actions.StateDelta[taskKey].(map[string]any)
	ticked, _ := ev.Actions.StateDelta[tickedKey].(map[string]any)
	_, n := lastOf(ev.Address)
	if ev.Mark != nil || ev.Partial || n == 0 || next == nil && ticked == nil {
		return
	}
	t := &Task{Number: whole(next["number"]), Total: whole(next["total"]), Status: TaskOpen}
	t.Title, _ = next["title"].(string)
	t.key, _ = next["key"].(string)
	if next != nil && (t.Number < 1 || t.Number > t.Total || t.Title == "" || t.key == "") {
		return // of another definition
	}
	it := l.step(ev.Address.Parent(), now).loop().pass(n, now)
	if next != nil {
		it.Task = t
	}
	if it.Task == nil || ticked == nil {
		return
	}
	known, _ := ticked["progress"].(map[string]any)
	done, _ := known["done"].([]any)
	failed, _ := known["failed"].(map[string]any)
	switch _, is := failed[it.Task.key]; {
	case slices.Contains(done, any(it.Task.key)):
		it.Task.Status = TaskDone
	case is:
		it.Task.Status = TaskFailed
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
