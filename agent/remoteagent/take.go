// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// take processes an event of the remote agent.
func (r *run) take(ev a2a.Event) error {
	r.heard++
	if err := r.check(ev); err != nil {
		return err
	}
	var wrong error
	switch ev := ev.(type) {
	case *a2a.Message:
		if ev.ContextID != "" {
			r.task.ContextID = ev.ContextID
		}
		r.got.message, r.got.settled, r.got.state = ev, true, a2a.TaskStateUnspecified
		r.open = false
		return r.bounded()
	case *a2a.Task:
		r.got.artifacts = ev.Artifacts
		wrong = r.status(ev.Status)
	case *a2a.TaskStatusUpdateEvent:
		wrong = r.status(ev.Status)
	case *a2a.TaskArtifactUpdateEvent:
		r.got.update(ev)
	}
	r.know(ev.TaskInfo()) // so that it can be canceled, whatever is wrong
	if wrong != nil {
		return wrong
	}
	r.show(ev)
	return r.bounded()
}

// check refuses an event that a server should not send.
func (r *run) check(ev a2a.Event) error {
	switch ev := ev.(type) {
	case *a2a.Message:
		if ev == nil {
			return errInvalid("an empty message")
		}
		if !isID(ev.ContextID) {
			return errInvalid("an ID that cannot be one")
		}
		return nil
	case *a2a.Task:
		if ev == nil {
			return errInvalid("an empty task")
		}
	case *a2a.TaskStatusUpdateEvent:
		if ev == nil {
			return errInvalid("an empty status")
		}
	case *a2a.TaskArtifactUpdateEvent:
		if ev == nil || ev.Artifact == nil {
			return errInvalid("an artifact without anything in it")
		}
	default:
		return errInvalid(fmt.Sprintf("an event of type %T", ev))
	}
	t := ev.TaskInfo()
	switch {
	case t.TaskID == "" && r.task.TaskID == "":
		return errInvalid("a task without an ID")
	case !isID(string(t.TaskID)) || !isID(t.ContextID):
		return errInvalid("an ID that cannot be one")
	case t.TaskID != "" && r.task.TaskID != "" && t.TaskID != r.task.TaskID:
		return errInvalid(fmt.Sprintf("something about the task %q, and not about %q", t.TaskID, r.task.TaskID))
	}
	return nil
}

// status takes a task's state. A request to sign in is no question while the server may not have
// noticed the sign-in yet. An unknown state is an error, because a wait for its end could last
// forever.
func (r *run) status(s a2a.TaskStatus) error {
	if !isState(s.State) {
		return errInvalid(fmt.Sprintf("the state %.60q of a task", s.State.String()))
	}
	r.got.status(s)
	if r.got.state != a2a.TaskStateAuthRequired {
		r.patience = time.Time{}
	} else if r.waitsForSignIn() {
		r.got.settled = false
	}
	return nil
}

func (r *run) waitsForSignIn() bool { return time.Now().Before(r.patience) }

// know takes note of the task that an event is about.
func (r *run) know(t a2a.TaskInfo) {
	if r.task.TaskID == "" {
		r.task.TaskID = t.TaskID
	}
	if r.task.ContextID == "" {
		r.task.ContextID = t.ContextID
	}
	r.open = !r.got.settled
	if r.open && !r.noted {
		r.noted = true
		r.say(r.note(working).event())
	}
}

// isID reports whether a text of the server can stand in a path.
func isID(s string) bool {
	return len(s) <= 256 && s != "." && s != ".." && !strings.ContainsAny(s, `/\?#%`) &&
		strings.IndexFunc(s, unicode.IsControl) < 0
}

// show yields a piece that is not the answer yet.
func (r *run) show(ev a2a.Event) {
	switch ev := ev.(type) {
	case *a2a.TaskArtifactUpdateEvent:
		r.piece(ev.Artifact.Parts, false)
	case *a2a.TaskStatusUpdateEvent:
		if m := ev.Status.Message; m != nil && !r.got.settled {
			r.piece(m.Parts, true)
		}
	}
}

func (r *run) bounded() error {
	n := r.got.size()
	if m := r.got.message; m != nil {
		n += partsSize(m.Parts)
	}
	if n > r.cfg.SizeLimit {
		return &LimitError{Limit: r.cfg.SizeLimit}
	}
	return nil
}
