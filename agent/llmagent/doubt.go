// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// dispatch logs a mark before it makes calls that must not be repeated. If the log already has the
// mark but no answer, the calls may have taken place; a person has to say, and known gets the
// answers. Begun has the calls already known to have a mark; with nil, dispatch reads the log. It
// returns the calls that must not be repeated, and whether the turn continues.
func (r *run) dispatch(req *model.LLMRequest, calls []*genai.FunctionCall,
	begun []string) (once []string, known map[string]map[string]any, more bool) {
	if !drive.At(r.ctx).Marks() {
		return nil, nil, true
	}
	if once = begun; once == nil {
		once = r.once(req, calls)
	}
	doubt := begun != nil
	for open := once; len(open) > 0; doubt = false {
		if !doubt {
			if doubt, more = r.dispatched(open); !more {
				return nil, nil, false
			}
			if !doubt {
				break
			}
		}
		var again []string
		for _, id := range open {
			c := calls[slices.IndexFunc(calls, func(c *genai.FunctionCall) bool { return c.ID == id })]
			answer, more := r.resolution(req, c)
			switch {
			case !more:
				return nil, nil, false
			case answer == nil:
				again = append(again, id)
				continue
			case known == nil:
				known = make(map[string]map[string]any)
			}
			known[id] = answer
		}
		open = again
	}
	return once, known, true
}

// cutOff ends a turn in which calls were cut off. In a resumed run, whose log has the event, it
// makes these calls again under their IDs; calls that must not be repeated wait until it is known
// whether they took place. It reports whether another turn follows.
func (r *run) cutOff(req *model.LLMRequest, ev *session.Event, calls []*genai.FunctionCall, about confirmations,
	once []string) bool {
	if r.ctx.Err() != nil {
		return r.fail(context.Cause(r.ctx))
	}
	cut := drive.InterruptedCalls(ev)
	out := func(id string) bool { return !slices.Contains(cut, id) }
	calls = slices.DeleteFunc(slices.Clone(calls), func(c *genai.FunctionCall) bool { return out(c.ID) })
	var begun []string
	for _, id := range once {
		if !out(id) {
			begun = append(begun, id)
		}
	}
	return r.answer(req, calls, about, begun)
}

// once returns the IDs of the calls that must not be repeated: those with a mark in the log, or
// else those whose tools declare it.
func (r *run) once(req *model.LLMRequest, calls []*genai.FunctionCall) []string {
	if known := drive.At(r.ctx).Recorded(); known != nil {
		var d mark.Dispatched
		if known.Mark == nil || known.Mark.Kind != mark.KindDispatched || known.Mark.Decode(&d) != nil {
			return nil
		}
		return d.Calls
	}
	var once []string
	for _, c := range calls {
		if f, ok := toolOf(req, c.Name).(tool.Function); ok && tool.EffectOf(f) == agent.AtMostOnce {
			once = append(once, c.ID)
		}
	}
	return once
}

// dispatched yields the mark. Doubt reports whether the mark was already in the log without an answer after it.
func (r *run) dispatched(ids []string) (doubt, more bool) {
	again, more := drive.At(r.ctx).Dispatch(ids, r.yield)
	return again && !r.hasAnswer(), more
}

// resolution returns the answer for a call that was cut off, from its tool or from a person. It returns nil if the call
// has to be made. More reports whether the turn continues.
func (r *run) resolution(req *model.LLMRequest, c *genai.FunctionCall) (answer map[string]any, more bool) {
	call := agent.Doubt{Address: drive.At(r.ctx).Address(), ID: drive.At(r.ctx).ToolCallID(c.ID), Call: c.ID,
		Tool: c.Name, Args: c.Args}
	var find agent.Reconcile
	if f, ok := toolOf(req, c.Name).(tool.Function); ok {
		find = tool.ReconcileOf(f)
	}
	ctx := agent.NewToolContext(r.ctx, c.ID, nil, nil)
	found, more := drive.At(ctx).Reconcile(call, find, r.yield)
	result, happened := found.Happened()
	switch {
	case !more || found.DidNotHappen():
		return nil, more
	case happened:
		if m, ok := result.(map[string]any); ok {
			return m, true
		}
		return map[string]any{"result": result}, true
	}
	q := found.Question(fmt.Sprintf("%s was cut off while it called %s, which must not be called twice. "+
		"Was the call made? (its call ID is %s)", r.Name(), callText(c), call.ID))
	q.Call = call.ID
	said := r.askPerson(q, nil)
	if said == nil {
		return nil, false
	}
	res, err := said.Resolution()
	switch {
	case err != nil:
		r.yield(nil, fmt.Errorf("resolution of call %q: %w", c.Name, err))
		return nil, false
	case res.Action == mark.ResolveRetry:
		return nil, true
	case res.Action == mark.ResolveSkip:
		return map[string]any{"error": "the call was cut off, and a person decided to leave it"}, true
	}
	return map[string]any{"result": res.Result}, true
}

// callText returns a call as text for people: the name of the tool, and its arguments as JSON.
func callText(c *genai.FunctionCall) string {
	if len(c.Args) == 0 {
		return c.Name + "()"
	}
	return c.Name + "(" + asJSON(c.Args) + ")"
}

// askPerson asks a person. The event ev shows the question, if it is not nil. The answer is nil if the agent must end
// its turn.
func (r *run) askPerson(q mark.Question, ev *session.Event) *mark.Answer {
	r.questions++
	q.ID = drive.At(r.ctx).QuestionID(r.questions)
	answer, err := drive.At(r.ctx).Ask(ev, q, r.yield)
	if err != nil {
		r.yield(nil, err)
	}
	return answer
}

// confirm asks a person about each call of a turn that requests it, in order, and makes these calls
// again with the answers. It reports whether another turn follows.
func (r *run) confirm(calls []*genai.FunctionCall, asked map[string]toolconfirmation.ToolConfirmation) bool {
	about := make(confirmations)
	var confirmed []*genai.FunctionCall
	for _, c := range calls {
		q, ok := asked[c.ID]
		if !ok {
			continue
		}
		id := drive.At(r.ctx).QuestionID(r.questions + 1)
		ev := &session.Event{Author: r.Name(), LongRunningToolIDs: []string{id}}
		ev.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: toolconfirmation.Question(id, c, q)}}}
		said := r.askPerson(questionOf(r.Name(), c, &q), ev)
		if said == nil {
			return false
		}
		answer, err := confirmationOf(said, &q)
		if err != nil {
			return r.fail(fmt.Errorf("answer to the confirmation of %s: %w", c.Name, err))
		}
		confirmed, about[c.ID] = append(confirmed, c), answer
	}
	req := &model.LLMRequest{}
	if known := drive.At(r.ctx).Recorded(); known == nil || known.Mark != nil {
		if err := r.addTools(agent.NewCallbackContext(r.ctx, nil), req); err != nil {
			return r.fail(err)
		}
	}
	return r.answer(req, confirmed, about, nil)
}

// questionOf returns the question of a call that needs consent or data, without its ID.
func questionOf(agent string, c *genai.FunctionCall, q *toolconfirmation.ToolConfirmation) mark.Question {
	if q.Form != nil {
		return mark.Question{Kind: mark.AskForm, Text: q.Hint, Form: q.Form.Schema}
	}
	return mark.Question{Kind: mark.AskConfirmation, Text: fmt.Sprintf("%s wants to call %s. %s", agent, callText(c), q.Hint)}
}

// confirmationOf converts a person's answer to the form that the tool gets.
func confirmationOf(said *mark.Answer, q *toolconfirmation.ToolConfirmation) (*toolconfirmation.ToolConfirmation, error) {
	answer := new(toolconfirmation.ToolConfirmation)
	if q.Form == nil {
		err := json.Unmarshal(said.Value, answer)
		answer.Form = nil
		return answer, err
	}
	form, err := said.Form()
	if err != nil {
		return nil, err
	}
	if len(form.Content) > 0 {
		if answer.Payload, err = session.PlainJSON(form.Content); err != nil {
			return nil, err
		}
	}
	answer.Confirmed, answer.Canceled = form.Action == mark.FormAccept, form.Action == mark.FormCancel
	answer.Form = q.Form
	return answer, nil
}
