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

// confirmations are a person's answers, by the ID of the call that they are
// about.
type confirmations map[string]*toolconfirmation.ToolConfirmation

// question is the event that asks a person about calls of a turn; nil if no tool
// wants that. The agent's turn ends with it. In a loop it asks to leave as well,
// blocked, every loop around: without the answer there is nothing to repeat.
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

// resume runs the calls that the user's message is the answer about, if this
// agent has asked. It reports whether the model is to be asked then.
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
	// As long as the person has more to answer, and says nothing else, a model
	// could only ask again.
	return more && !(open && alone)
}

// answersIn are the answers in a message, by the question's ID. Alone says that
// there is nothing else in it.
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
		answered = make(map[string]bool) // questions, by messages before this one
		done     = make(map[string]bool) // calls, in this invocation
		wanted   = make(confirmations)   // by the ID of the call
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

// asks reports whether a call is a question to a person. A model can write a
// call of that name, but not make it long-running.
func asks(ev *session.Event, c *genai.FunctionCall) bool {
	return c.Name == toolconfirmation.FunctionCallName && slices.Contains(ev.LongRunningToolIDs, c.ID)
}

// isAnswer reports whether a part of the user's message answers a question.
func isAnswer(p *genai.Part) bool {
	return p != nil && p.FunctionResponse != nil && p.FunctionResponse.Name == toolconfirmation.FunctionCallName
}

// withoutQuestions leaves out the questions to a person and the answers, which
// are none of the model's business.
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
