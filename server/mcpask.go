// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// maxAsks limits how often one call asks the user, because clients abandon a call that asks without end.
const maxAsks = 8

// newProtocol is the first version of the protocol in which a call can ask more than once.
const newProtocol = "2026-07-28"

// askUser returns a result of a tool that makes the client show the questions of a run to its user, and call the tool again
// with the answers. It returns nil if there is no question, or if the client cannot do this. Then the client's model reads
// the questions.
func askUser(req *mcp.CallToolRequest, t *runResult) *mcp.CallToolResult {
	if !t.hasWaited || t.Status != string(mark.RunWaiting) || !showsForms(req) {
		return nil
	}
	before, _ := inquiryOf(req)
	if strings.HasPrefix(req.Params.RequestState, consentState) {
		before = max(before, 1)
	}
	if before >= maxAsks || before > 0 && req.ProtocolVersion() < newProtocol {
		return nil
	}
	forms := mcp.InputRequestMap{}
	for i := range t.Waits {
		q := &t.Waits[i]
		if fields := formOf(q); fields != nil {
			forms[q.ID] = &mcp.ElicitParams{Mode: "form", Message: credential.Masked(q.Text), RequestedSchema: fields}
		}
	}
	if len(forms) == 0 {
		return nil
	}
	return &mcp.CallToolResult{InputRequests: forms, RequestState: strconv.Itoa(before+1) + " " + t.ID}
}

// showsForms reports whether the client can show forms to its user.
func showsForms(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// consentState is the prefix of the request state of a call that has asked the user to accept a definition. The definition's
// hash follows it, and then the state that the call had before. consentField is the name of the form's field.
const (
	consentState = "accept "
	consentField = "accept"
)

// askConsent returns a result of a tool that makes the client ask its user, once in a call, whether a definition may start
// programs. The result is nil if the call has asked already, or if the client cannot ask. accepted is true if the user has
// accepted exactly this definition.
func askConsent(req *mcp.CallToolRequest, refused *operations.NotAcceptedError) (asks *mcp.CallToolResult, accepted bool) {
	state := consentState + refused.Hash
	if strings.HasPrefix(req.Params.RequestState, consentState) {
		form, ok := req.Params.InputResponses[consentField].(*mcp.ElicitResult)
		return nil, ok && form.Action == "accept" && form.Content[consentField] == true && strings.HasPrefix(req.Params.RequestState, state)
	}
	before := req.Params.RequestState
	if before != "" && req.ProtocolVersion() < newProtocol || !showsForms(req) {
		return nil, false
	}
	if before != "" { // the user has answered a question of a run, and is asked it again
		state += " " + before
	}
	var text strings.Builder
	text.WriteString("The definition " + brief.Clean(refused.File))
	if refused.Run != "" {
		text.WriteString(" of run " + brief.Clean(refused.Run))
	}
	text.WriteString(" is new or has changed since the server started. If you accept it, it may do this on your machine:\n")
	for _, line := range refused.Starts {
		text.WriteString("  " + line + "\n")
	}
	if len(refused.Scripts) > 0 {
		text.WriteString("They name these files, which count as they are now: " + brief.Clean(strings.Join(refused.Scripts, ", ")) + "\n")
	}
	text.WriteString("Look at the files first: an agent may have written them.")
	return &mcp.CallToolResult{RequestState: state, InputRequests: mcp.InputRequestMap{consentField: &mcp.ElicitParams{
		Mode: "form", Message: credential.Masked(text.String()), RequestedSchema: map[string]any{
			"type": "object", "required": []string{consentField},
			"properties": map[string]any{consentField: map[string]any{"type": "boolean", "title": "Let it start these programs"}},
		},
	}}}, false
}

// inquiryOf returns how often a call has asked the user already, and the ID of the run. times is 0 for a new call.
func inquiryOf(req *mcp.CallToolRequest) (times int, run string) {
	state := req.Params.RequestState
	if rest, consented := strings.CutPrefix(state, consentState); consented {
		_, state, _ = strings.Cut(rest, " ")
	}
	count, run, ok := strings.Cut(state, " ")
	if times, err := strconv.Atoi(count); ok && err == nil && times > 0 && times <= maxAsks {
		return times, run
	}
	return 0, ""
}

// stateShape matches the request states that askUser and askConsent issue.
var stateShape = lazyregexp.New(`^(` + consentState + `[0-9a-f]{64}|(` + consentState + `[0-9a-f]{64} )?[1-` + strconv.Itoa(maxAsks) + `] \S+)$`)

// isState reports whether the request state of a call can come from an earlier result. A new call has an empty state.
func isState(state string) bool { return state == "" || stateShape().MatchString(state) }

// continueCall continues a call that has asked the user. It answers the run's questions with the user's answers, and then waits for
// the run as the call did. If the user declined, it returns the status of the run at once. The bool is false for a new call.
func (s *Server) continueCall(ctx context.Context, req *mcp.CallToolRequest, w *waitArgs) (*runResult, bool, error) {
	times, id := inquiryOf(req)
	if times == 0 {
		return nil, false, nil
	}
	if strings.HasPrefix(req.Params.RequestState, consentState) { // the consent counts, whatever the run does next
		if err := s.runs.Accepted(ctx, id); err != nil {
			return nil, true, err
		}
	}
	open, err := s.runs.Supervisor.Questions(ctx, id)
	if err != nil {
		return nil, true, problem.NoRun(id, err)
	}
	declined := false
	for i := range open {
		res, ok := req.Params.InputResponses[open[i].ID].(*mcp.ElicitResult)
		if ok && res.Action == mark.FormDecline && open[i].Kind == mark.AskForm { // to decline is an answer to a form's question
			res = &mcp.ElicitResult{Action: "accept", Content: map[string]any{"action": mark.FormDecline}}
		} else if ok && open[i].Kind == mark.AskForm {
			res = &mcp.ElicitResult{Action: res.Action, Content: map[string]any{"action": mark.FormAccept, "content": res.Content}}
		}
		if !ok || res.Action != "accept" {
			declined = declined || ok
			continue
		}
		a, err := answerFromForm(&open[i], res.Content)
		if err != nil {
			return nil, true, err
		}
		a.ClaimedBy = callerOf(req)
		err = s.runs.Answer(context.WithoutCancel(ctx), id, a)
		if err != nil && !errors.Is(err, supervisor.ErrNoQuestion) { // ErrNoQuestion: another client has answered it already
			return nil, true, err
		}
	}
	if declined {
		out, err := s.runResult(ctx, id)
		return out, true, err
	}
	out, err := s.waitForRun(ctx, req, id, w)
	return out, true, err
}

// callerOf names the client of a call.
func callerOf(req *mcp.CallToolRequest) string {
	if c := req.ClientInfo(); c != nil && c.Name != "" {
		return brief.Clip(c.Name, 64) + " over MCP"
	}
	return "a client over MCP"
}

// formOf returns the schema of the form in which a user answers a question. It returns nil if a form cannot have the answer, or
// if the form would show a secret.
func formOf(q *mark.Question) map[string]any {
	if text, err := json.Marshal([]any{q.Options, q.Keys}); err != nil || credential.Masked(string(text)) != string(text) {
		return nil
	}
	if q.Kind == mark.AskForm {
		var form map[string]any
		if json.Unmarshal(q.Form, &form) != nil || credential.Masked(string(q.Form)) != string(q.Form) {
			return nil
		}
		return form
	}
	fields, required := map[string]any{}, []string{}
	switch q.Kind {
	case mark.AskApproval:
		fields["approved"], required = map[string]any{"type": "boolean", "title": "Yes"}, []string{"approved"}
		fields["reason"] = map[string]any{"type": "string", "title": "Comment"}
	case mark.AskText:
		field := map[string]any{"type": "string", "title": "Answer"}
		if len(q.Options) > 0 {
			field["enum"] = q.Options
		}
		fields["answer"], required = field, []string{"answer"}
	case mark.AskConfirmation:
		fields["confirmed"], required = map[string]any{"type": "boolean", "title": "Yes"}, []string{"confirmed"}
	case mark.AskResolution:
		fields["action"], required = map[string]any{"type": "string", "enum": q.Options}, []string{"action"}
		if !q.IsEdited() {
			fields["result"] = map[string]any{"type": "string", "title": "Result, if it took place"}
		}
	case mark.AskEdit:
		for key, value := range q.Keys {
			kind := ""
			switch value.(type) {
			case string:
				kind = "string"
			case bool:
				kind = "boolean"
			case float64, json.Number:
				kind = "number"
			default:
				return nil // a form cannot have lists and objects
			}
			fields[key] = map[string]any{"type": kind, "default": value}
		}
	default:
		return nil
	}
	return map[string]any{"type": "object", "properties": fields, "required": required}
}

// answerFromForm returns the answer to a question from the content of its form.
func answerFromForm(q *mark.Question, form map[string]any) (*operations.AnswerRequest, error) {
	a := &operations.AnswerRequest{Question: q.ID}
	var value any = form
	switch q.Kind {
	case mark.AskApproval:
		value = form["approved"]
		a.Reason, _ = form["reason"].(string)
	case mark.AskText:
		value = form["answer"]
	case mark.AskEdit:
		if form == nil {
			value = map[string]any{} // an empty form changes nothing
		}
	}
	var err error
	if a.Value, err = json.Marshal(value); err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", q.ID, err)
	}
	return a, nil
}
