// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"encoding/json"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
)

// message and part are messages in the JSON form of the semantic conventions.
type message struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Type      string         `json:"type"`
	Content   string         `json:"content,omitempty"`
	ID        string         `json:"id,omitempty"`
	Name      string         `json:"name,omitempty"`
	Arguments map[string]any `json:"arguments,omitempty"`
	Response  map[string]any `json:"response,omitempty"`
	MIMEType  string         `json:"mime_type,omitempty"`
}

// contentOf returns the content of a request to a model as attributes.
func contentOf(req *model.LLMRequest) (attrs []attribute.KeyValue) {
	if req.Config != nil && req.Config.SystemInstruction != nil {
		attrs = append(attrs, attribute.String(keyInstructions, text(parts(req.Config.SystemInstruction))))
	}
	return append(attrs, attribute.String(keyInputMessages, messages(req.Contents...)))
}

func messages(contents ...*genai.Content) string {
	all := make([]message, 0, len(contents))
	for _, c := range contents {
		if c == nil {
			continue
		}
		role := c.Role
		if role == genai.RoleModel {
			role = "assistant"
		}
		all = append(all, message{Role: role, Parts: parts(c)})
	}
	return text(all)
}

// parts converts the parts of a message. It omits the bytes of files.
func parts(c *genai.Content) []part {
	all := make([]part, 0, len(c.Parts))
	for _, p := range c.Parts {
		switch {
		case p == nil:
		case p.FunctionCall != nil:
			all = append(all, part{Type: "tool_call", ID: p.FunctionCall.ID, Name: p.FunctionCall.Name,
				Arguments: p.FunctionCall.Args})
		case p.FunctionResponse != nil:
			all = append(all, part{Type: "tool_call_response", ID: p.FunctionResponse.ID, Name: p.FunctionResponse.Name,
				Response: p.FunctionResponse.Response})
		case p.InlineData != nil:
			all = append(all, part{Type: "blob", MIMEType: p.InlineData.MIMEType})
		case p.FileData != nil:
			all = append(all, part{Type: "uri", MIMEType: p.FileData.MIMEType, Content: p.FileData.FileURI})
		case p.Thought:
			all = append(all, part{Type: "reasoning", Content: p.Text})
		default:
			all = append(all, part{Type: "text", Content: p.Text})
		}
	}
	return all
}

// text returns v as JSON, or the reason why it has no JSON form.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
