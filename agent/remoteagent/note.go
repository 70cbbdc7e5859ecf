// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// MetadataA2A is the key in an event's CustomMetadata under which an agent notes the remote task: a
// map with the texts task, context, state ("working" while it is under way), message (the ID of the
// message that was sent) and card (the source of the agent's card). A resumed run and later
// iterations read it.
const MetadataA2A = "refrain:a2a"

// note is an event's record of the remote task.
type note struct{ task, context, state, message, card string }

// working is the state of a task in a note as long as it is under way.
const working = "working"

func (n note) event() *session.Event {
	ev := &session.Event{}
	ev.CustomMetadata = map[string]any{MetadataA2A: map[string]any{
		"task": n.task, "context": n.context, "state": n.state, "message": n.message, "card": n.card,
	}}
	return ev
}

// noteOf reads the note of an event of the agent.
func noteOf(ev *session.Event) (note, bool) {
	m, ok := ev.CustomMetadata[MetadataA2A].(map[string]any)
	if !ok {
		return note{}, false
	}
	text := func(key string) string { s, _ := m[key].(string); return s }
	return note{text("task"), text("context"), text("state"), text("message"), text("card")}, true
}

// states are the states of tasks in notes and errors.
var states = map[a2a.TaskState]string{
	a2a.TaskStateCompleted: "completed", a2a.TaskStateFailed: "failed", a2a.TaskStateRejected: "rejected",
	a2a.TaskStateCanceled: "canceled", a2a.TaskStateInputRequired: "input-required", a2a.TaskStateAuthRequired: "auth-required",
	a2a.TaskStateUnspecified: "completed", // a message, and no task
}

// isState reports whether a task can be in a state.
func isState(s a2a.TaskState) bool {
	return s == a2a.TaskStateSubmitted || s == a2a.TaskStateWorking || s != a2a.TaskStateUnspecified && states[s] != ""
}

// lookBack limits the number of events searched for the agent's last one.
const lookBack = 2000

// conversation returns the context ID of the session's conversation with the remote agent, or an
// empty string. Answers of a judge that is asked several times are independent, so each has a conversation of its own.
func (r *run) conversation() string {
	if r.cfg.NewContext || drive.At(r.ctx).Sample() != nil {
		return ""
	}
	evs := r.ctx.Session().Events()
	for i := evs.Len() - 1; i >= max(0, evs.Len()-lookBack); i-- {
		ev := evs.At(i)
		if ev.Author != r.Name() {
			continue
		}
		if n, ok := noteOf(ev); ok && n.card == r.where && n.context != "" {
			return n.context
		}
	}
	return ""
}
