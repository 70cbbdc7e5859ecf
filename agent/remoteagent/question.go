// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/a2apart"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// signInTime limits how long a task may take to notice a person's sign-in.
const signInTime = 15 * time.Second

// waits reports whether the task waits for a person.
func (r *run) waits() bool {
	return r.got.state == a2a.TaskStateInputRequired || r.got.state == a2a.TaskStateAuthRequired
}

// hint returns what a person has to do for the remote agent.
func (r *run) hint() string {
	hint := fmt.Sprintf("The remote agent of %q needs an answer", r.Name())
	if r.got.state == a2a.TaskStateAuthRequired {
		hint = fmt.Sprintf("The remote agent of %q needs somebody to sign in; confirm when that is done", r.Name())
	}
	if asked := r.conn.wire.words(wordsOf(r.got.message)); asked != "" {
		hint += ": " + asked
	}
	return hint
}

// question returns the event that passes the remote agent's question to a person, in a run that cannot wait
// for the answer. The event also asks to leave every enclosing loop, with the status blocked, because no
// iteration helps without the answer.
func (r *run) question() *session.Event {
	state := states[r.got.state]
	call := &genai.FunctionCall{ID: "a2a-" + uuid.NewString(), Name: r.Name(),
		Args: map[string]any{"state": state, "message": r.conn.wire.words(wordsOf(r.got.message))}}
	id := "call-" + uuid.NewString()
	ev := r.note(state).event()
	ev.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
		{FunctionCall: toolconfirmation.Question(id, call, toolconfirmation.ToolConfirmation{Hint: r.hint()})},
	}}
	ev.LongRunningToolIDs = []string{id}
	if drive.At(r.ctx).Loop() != nil {
		ev.Actions.Escalate = true
		ev.Actions.Exit = &session.Exit{
			By: r.Name(), Status: session.ExitBlocked, Scope: session.ScopeAll,
			Reason: "waits for a person to answer the remote agent",
		}
	}
	return ev
}

// reply returns the message that continues a task whose question the user has answered; nil if no
// message is due.
func (r *run) reply() (*a2a.Message, error) {
	n, answer, err := r.answered()
	if n == nil || err != nil {
		return nil, err
	}
	if n.card != r.where {
		return nil, fmt.Errorf("the question was asked by the agent at %q, which is not the one at %q", n.card, r.where)
	}
	r.task = a2a.TaskInfo{TaskID: a2a.TaskID(n.task), ContextID: n.context}
	msg := &a2a.Message{TaskID: r.task.TaskID, ContextID: r.task.ContextID}
	if answer == nil {
		msg.Parts = a2apart.Outgoing(r.ctx.UserContent())
		return msg, nil
	}
	if n.state == states[a2a.TaskStateAuthRequired] {
		if !answer.Confirmed {
			return nil, r.nobodySignsIn()
		}
		if answer.Payload == nil {
			if told, err := r.signedIn(); told || err != nil {
				return nil, err
			}
		}
	}
	msg.Parts = a2a.ContentParts{answerPart(answer)}
	return msg, nil
}

// nobodySignsIn returns the error of a task for which no person signs in.
func (r *run) nobodySignsIn() error {
	r.open = true // and leave cancels it
	return refusal{&TaskError{Task: shortText(string(r.task.TaskID)), State: "canceled",
		Message: "a person refused to sign in"}}
}

// signedIn checks whether a task continues by itself after a person's sign-in, and then follows it.
// It reports false if the task waits for a message.
func (r *run) signedIn() (goesOn bool, err error) {
	r.patience = time.Now().Add(signInTime)
	if err := r.look(); err != nil {
		return false, r.failed("look at the remote task", err)
	}
	switch {
	case r.got.settled:
		return true, nil
	case r.got.state != a2a.TaskStateAuthRequired:
		return true, r.await(nil, pollFirst)
	}
	return false, nil
}

// answered finds the question that the user's message answers. The confirmation is nil if the
// answer is plain text, which counts only where the user talks to the agent directly.
func (r *run) answered() (*note, *toolconfirmation.ToolConfirmation, error) {
	answers := make(map[string]*genai.FunctionResponse)
	if c := r.ctx.UserContent(); c != nil {
		for _, p := range c.Parts {
			if p != nil && p.FunctionResponse != nil && p.FunctionResponse.Name == toolconfirmation.FunctionCallName {
				answers[p.FunctionResponse.ID] = p.FunctionResponse
			}
		}
	}
	direct := len(answers) == 0 && r.payload == nil && drive.At(r.ctx).Loop() == nil &&
		drive.At(r.ctx).Address().Parent() == ""
	if len(answers) == 0 && !direct {
		return nil, nil, nil
	}
	evs := r.ctx.Session().Events()
	for i := evs.Len() - 1; i >= max(0, evs.Len()-lookBack); i-- {
		ev := evs.At(i)
		n, ok := noteOf(ev)
		if !ok || ev.Author != r.Name() || ev.InvocationID == r.ctx.InvocationID() {
			continue
		}
		if direct {
			if n.state == states[a2a.TaskStateInputRequired] && ev.Mark == nil { // else a run waits for the answer
				return &n, nil, nil
			}
			return nil, nil, nil
		}
		for id, resp := range answers {
			if slices.Contains(ev.LongRunningToolIDs, id) {
				c, err := toolconfirmation.AnswerFrom(resp)
				return &n, c, err
			}
		}
	}
	return nil, nil, nil
}

// answerPart returns the answer for the remote agent: the person's text, or else yes or no.
func answerPart(c *toolconfirmation.ToolConfirmation) *a2a.Part {
	switch v := c.Payload.(type) {
	case string, map[string]any, []any:
		return a2apart.OutgoingValue(v)
	case nil:
	default:
		if text, err := json.Marshal(v); err == nil {
			return a2a.NewTextPart(string(text))
		}
	}
	if c.Confirmed {
		return a2a.NewTextPart("yes")
	}
	return a2a.NewTextPart("no")
}
