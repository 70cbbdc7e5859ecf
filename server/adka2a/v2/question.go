// SPDX-License-Identifier: Apache-2.0

package adka2a

import (
	"fmt"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/a2apart"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// questions are the calls of an event that wait for a person, each as data: its ID, name and arguments.
func questions(ev *session.Event) (parts []*a2a.Part) {
	waits := make(map[string]bool)
	for _, id := range ev.LongRunningToolIDs {
		waits[id] = true
	}
	if ev.Content == nil {
		return nil
	}
	for _, p := range ev.Content.Parts {
		if p == nil || p.FunctionCall == nil || !waits[p.FunctionCall.ID] {
			continue
		}
		call := p.FunctionCall
		if call.Name == toolconfirmation.FunctionCallName {
			if original, err := toolconfirmation.OriginalCallFrom(call); err == nil {
				parts = append(parts, a2a.NewTextPart(fmt.Sprintf("Confirm the call of %s: answer yes or no.", original.Name)))
			}
		}
		data := map[string]any{"id": call.ID, "name": call.Name}
		if args, err := session.Plain(call.Args); err == nil { // a confirmation has Go structs among them
			data["args"] = args
		}
		parts = append(parts, a2a.NewDataPart(data))
	}
	return parts
}

// content is the message of the client. If the task waits for a person, it is the answer: data with the ID and name of the
// call, and its response; or a text, which answers the only call, and for a confirmation is yes or no.
func (x *execution) content() (*genai.Content, error) {
	msg := x.req.Message
	open := x.open()
	c := &genai.Content{Role: genai.RoleUser}
	if len(open) == 0 {
		c.Parts = a2apart.IncomingAll(msg.Parts)
		return c, nil
	}
	for _, p := range msg.Parts {
		data, _ := p.Content.(a2a.Data)
		given, _ := data.Value.(map[string]any)
		id, _ := given["id"].(string)
		response, _ := given["response"].(map[string]any)
		if call := open[id]; call != "" && response != nil {
			c.Parts = append(c.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: call, Response: response}})
		}
	}
	if len(c.Parts) > 0 {
		return c, nil
	}
	if len(open) > 1 {
		return nil, fmt.Errorf("the task asks %d questions: answer each with data that has its id and a response", len(open))
	}
	var text strings.Builder
	for _, p := range a2apart.IncomingAll(msg.Parts) {
		text.WriteString(p.Text)
	}
	for id, name := range open {
		response := map[string]any{"result": text.String()}
		if name == toolconfirmation.FunctionCallName {
			yes := strings.EqualFold(strings.TrimSpace(text.String()), "yes")
			if !yes && !strings.EqualFold(strings.TrimSpace(text.String()), "no") {
				return nil, fmt.Errorf("%q is no answer to a confirmation: answer yes or no", text.String())
			}
			response = map[string]any{"confirmed": yes}
		}
		c.Parts = []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: id, Name: name, Response: response}}}
	}
	return c, nil
}

// open are the names of the calls that the task waits for, by their IDs, as its last message says.
func (x *execution) open() map[string]string {
	open := make(map[string]string)
	task := x.req.StoredTask
	if task == nil || task.Status.State != a2a.TaskStateInputRequired || task.Status.Message == nil {
		return open
	}
	for _, p := range task.Status.Message.Parts {
		data, _ := p.Content.(a2a.Data)
		asked, _ := data.Value.(map[string]any)
		id, _ := asked["id"].(string)
		name, _ := asked["name"].(string)
		if id != "" && name != "" {
			open[id] = name
		}
	}
	return open
}
