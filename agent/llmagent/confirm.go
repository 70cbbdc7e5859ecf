// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// confirmations maps the IDs of calls to a person's answers.
type confirmations map[string]*toolconfirmation.ToolConfirmation

// question returns the event that asks a person about calls of a turn; nil if no tool asks for that. The event ends the
// agent's turn. In a loop it also leaves all enclosing loops with the status blocked, because repeating the turn is
// useless without the answer.
func (r *run) question(calls []*genai.FunctionCall, asked map[string]toolconfirmation.ToolConfirmation) *session.Event {
	ev := &session.Event{Author: r.Name()}
	ev.Content = &genai.Content{Role: genai.RoleModel}
	var names []string
	for _, c := range calls {
		q, ok := asked[c.ID]
		if !ok {
			continue
		}
		id := newCallID()
		ev.Content.Parts = append(ev.Content.Parts, &genai.Part{FunctionCall: toolconfirmation.Question(id, c, q)})
		ev.LongRunningToolIDs = append(ev.LongRunningToolIDs, id)
		names = append(names, c.Name)
	}
	if names == nil {
		return nil
	}
	if drive.At(r.ctx).Loop() != nil {
		ev.Actions.Escalate = true
		ev.Actions.Exit = &session.Exit{
			By: r.Name(), Status: session.ExitBlocked, Scope: session.ScopeAll,
			Reason: "waits for a person to confirm " + strings.Join(names, ", "),
		}
	}
	return ev
}

// resume runs the calls that the user's message confirms, if this agent has asked about them. It reports whether to ask
// the model next.
func (r *run) resume() bool {
	answers, alone, err := answersIn(r.ctx.UserContent())
	if err != nil {
		return r.fail(err)
	}
	if len(answers) == 0 {
		return true
	}
	calls, about, open := r.waiting(answers)
	if len(calls) == 0 {
		return true
	}
	req := &model.LLMRequest{}
	if err := r.addTools(agent.NewCallbackContext(r.ctx, nil), req); err != nil {
		return r.fail(err)
	}
	more := r.answer(req, calls, about, nil)
	// If further questions are open and the message has nothing but answers, the
	// model could only ask them again.
	return more && !(open && alone)
}

// answersIn returns the answers in a message, by the ID of the question. Alone reports whether the message has nothing
// else.
func answersIn(c *genai.Content) (found confirmations, alone bool, err error) {
	if c == nil {
		return nil, false, nil
	}
	alone = true
	for _, p := range c.Parts {
		if !isAnswer(p) {
			alone = false
			continue
		}
		answer, err := toolconfirmation.AnswerFrom(p.FunctionResponse)
		if err != nil {
			return nil, false, err
		}
		if found == nil {
			found = make(confirmations)
		}
		found[p.FunctionResponse.ID] = answer
	}
	return found, alone, nil
}

// waiting returns the calls that the answers are about, in the order in which the model made them,
// with the answers. It reads a call from the model's own response, because the copy in the question
// is only for display. Open reports whether the same questions have further calls without an
// answer.
//
// An answer counts once. waiting ignores an answer to a question that has been answered, that
// another agent has asked, or that does not exist.
func (r *run) waiting(answers confirmations) (calls []*genai.FunctionCall, about confirmations, open bool) {
	var (
		evs      = r.ctx.Session().Events()
		answered = make(map[string]bool) // questions that earlier messages have answered
		done     = make(map[string]bool) // calls that this invocation has made
		wanted   = make(confirmations)   // answers by the ID of the call, until the call is found
	)
	about = make(confirmations)
	for i := evs.Len() - 1; i >= 0 && len(answers)+len(wanted) > 0; i-- {
		ev := evs.At(i)
		switch {
		case ev.Content == nil:
		case ev.Author == "user":
			if ev.InvocationID == r.ctx.InvocationID() {
				continue
			}
			for _, id := range responseIDs(ev.Content) {
				answered[id] = true
				delete(answers, id)
			}
		case ev.Author != r.Name():
		case ev.InvocationID == r.ctx.InvocationID():
			for _, id := range responseIDs(ev.Content) {
				done[id] = true
			}
		default:
			missing, found := false, false
			var made []*genai.FunctionCall
			for _, c := range callsOf(ev.Content) {
				switch answer := answers[c.ID]; {
				case wanted[c.ID] != nil:
					about[c.ID] = wanted[c.ID]
					made = append(made, c)
					delete(wanted, c.ID)
				case !asks(ev, c):
				case answer == nil:
					missing = missing || !answered[c.ID]
				default:
					found = true
					delete(answers, c.ID)
					call, err := toolconfirmation.OriginalCallFrom(c)
					asked, unclear := toolconfirmation.RequestFrom(c)
					if err == nil && unclear == nil && !done[call.ID] {
						answer.Form = asked.Form
						wanted[call.ID] = answer
					}
				}
			}
			calls = append(made, calls...)
			open = open || found && missing
		}
	}
	return calls, about, open
}

func responseIDs(c *genai.Content) []string {
	var ids []string
	for _, p := range c.Parts {
		if p != nil && p.FunctionResponse != nil {
			ids = append(ids, p.FunctionResponse.ID)
		}
	}
	return ids
}

// asks reports whether a call is a question to a person. A model can write a call with that name, but it cannot make
// the call long-running.
func asks(ev *session.Event, c *genai.FunctionCall) bool {
	return c.Name == toolconfirmation.FunctionCallName && slices.Contains(ev.LongRunningToolIDs, c.ID)
}

// isAnswer reports whether a part of the user's message answers a question.
func isAnswer(p *genai.Part) bool {
	return p != nil && p.FunctionResponse != nil && p.FunctionResponse.Name == toolconfirmation.FunctionCallName
}

// withoutQuestions returns the content of an event without questions to a person and their answers, which the model
// does not get.
func withoutQuestions(ev *session.Event) *genai.Content {
	c := ev.Content
	hidden := func(p *genai.Part) bool {
		return isAnswer(p) && ev.Author == "user" || p != nil && p.FunctionCall != nil && asks(ev, p.FunctionCall)
	}
	if !slices.ContainsFunc(c.Parts, hidden) {
		return c
	}
	return &genai.Content{Role: c.Role, Parts: slices.DeleteFunc(slices.Clone(c.Parts), hidden)}
}
