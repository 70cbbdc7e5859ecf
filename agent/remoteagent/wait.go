// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"encoding/json"
	"fmt"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// askedBefore takes up a question that the run had asked before it was cut off.
func (r *run) askedBefore() error {
	n := r.asked
	if n.card != r.where {
		return fmt.Errorf("the question was asked by the agent at %q, which is not the one at %q", n.card, r.where)
	}
	r.task = a2a.TaskInfo{TaskID: a2a.TaskID(n.task), ContextID: n.context}
	r.message, r.noted = n.message, true
	r.got = receipt{settled: true, state: a2a.TaskStateInputRequired}
	if n.state == states[a2a.TaskStateAuthRequired] {
		r.got.state = a2a.TaskStateAuthRequired
	}
	return nil
}

// askPerson asks a person the remote agent's question, which ends the run until it is resumed, and
// then continues the task.
func (r *run) askPerson() error {
	r.asks++
	q := mark.Question{ID: drive.At(r.ctx).QuestionID(r.asks), Kind: mark.AskText, Text: r.hint()}
	if r.got.state == a2a.TaskStateAuthRequired {
		q.Kind = mark.AskApproval
	}
	ev := r.note(states[r.got.state]).event()
	ev.Content = genai.NewContentFromText(q.Text, genai.RoleModel)
	again := r.asked != nil
	r.asked = nil
	answer, err := drive.At(r.ctx).Ask(ev, q, func(ev *session.Event, err error) bool {
		r.left = r.left || !r.yield(ev, err)
		return !r.left
	})

	if answer == nil || err != nil {
		return err
	}
	if err := q.Check(answer); err != nil {
		return err
	}
	r.before.sent++
	if next := drive.At(r.ctx).Recorded(); next != nil {
		if n, ok := noteOf(next); ok && next.Mark != nil && next.Mark.Kind == mark.KindAsked {
			r.asked = &n // the answer was sent before, and led to another question
			return r.askedBefore()
		}
	}
	if q.Kind == mark.AskApproval {
		return r.approved(answer)
	}
	if again {
		// The answer may have been sent before the run was cut off.
		if going, err := r.goesOn(); going || err != nil {
			return err
		}
	}
	var text string
	if err := json.Unmarshal(answer.Value, &text); err != nil {
		return fmt.Errorf("read the answer to %s: %w", q.ID, err)
	}
	return r.tell(text)
}

// approved continues a task that waited for a person's sign-in.
func (r *run) approved(answer *mark.Answer) error {
	var yes bool
	if err := json.Unmarshal(answer.Value, &yes); err != nil {
		return fmt.Errorf("read the answer to %s: %w", answer.ID, err)
	}
	if !yes {
		return r.nobodySignsIn()
	}
	if goesOn, err := r.signedIn(); goesOn || err != nil {
		return err
	}
	return r.tell("yes")
}

// goesOn follows a task that does not wait for an answer any more. It reports
// false if it does.
func (r *run) goesOn() (bool, error) {
	if err := r.look(); err != nil {
		return false, r.failed("look at the remote task", err)
	}
	if r.got.settled {
		return !r.waits(), nil
	}
	return true, r.await(nil, pollFirst)
}

// tell sends an answer to the task.
func (r *run) tell(text string) error {
	r.got = receipt{}
	return r.send(&a2a.Message{
		TaskID: r.task.TaskID, ContextID: r.task.ContextID, Parts: a2a.ContentParts{a2a.NewTextPart(text)},
	})
}
