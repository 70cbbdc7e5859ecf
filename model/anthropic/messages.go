// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model/internal/turns"
)

// Signatures of thoughts are kept in genai's field with their origin before
// them, as a conversation may have signatures of other providers in it, which
// are not to be sent here.
const (
	signedPrefix   = "anthropic:"
	redactedPrefix = "anthropic-redacted:"
)

func system(c *genai.Content) []block {
	var out []block
	if c == nil {
		return nil
	}
	for _, p := range c.Parts {
		if p != nil && strings.TrimSpace(p.Text) != "" {
			out = append(out, block{Type: "text", Text: p.Text})
		}
	}
	return out
}

func messages(contents []*genai.Content) ([]message, error) {
	contents, err := turns.Prepare(contents)
	if err != nil {
		return nil, err
	}
	var out []message
	for i, c := range contents {
		role := roleUser
		if c.Role == genai.RoleModel {
			role = roleAssistant
		}
		var blocks []block
		for _, p := range c.Parts {
			next, ok, err := blockOf(p, role)
			if err != nil {
				return nil, fmt.Errorf("turn %d: %w", i+1, err)
			}
			if ok {
				blocks = append(blocks, next)
			}
		}
		switch n := len(out); {
		case len(blocks) == 0:
		case n > 0 && out[n-1].Role == role: // what was between had nothing to send
			out[n-1].Content = append(out[n-1].Content, blocks...)
		default:
			out = append(out, message{Role: role, Content: blocks})
		}
	}
	return out, nil
}

// blockOf returns a part in Anthropic's format; not ok if there is nothing to send.
func blockOf(p *genai.Part, role string) (block, bool, error) {
	signature := string(p.ThoughtSignature)
	switch {
	case p.Thought:
		if data, ok := strings.CutPrefix(signature, redactedPrefix); ok {
			return block{Type: "redacted_thinking", Data: &data}, true, nil
		}
		if signed, ok := strings.CutPrefix(signature, signedPrefix); ok {
			return block{Type: "thinking", Thinking: &p.Text, Signature: &signed}, true, nil
		}
		return block{}, false, nil // the API takes no thought that it did not sign
	case p.FunctionCall != nil:
		args := p.FunctionCall.Args
		if args == nil {
			args = map[string]any{}
		}
		return block{Type: "tool_use", ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Input: args}, true, nil
	case p.FunctionResponse != nil:
		result, err := toolResult(p.FunctionResponse)
		return result, err == nil, err
	case p.Text != "":
		// The API refuses a text of white space alone.
		return block{Type: "text", Text: p.Text}, strings.TrimSpace(p.Text) != "", nil
	case p.InlineData != nil && role == roleUser:
		b, err := inline(p.InlineData)
		return b, err == nil, err
	case p.FileData != nil && role == roleUser:
		b, err := file(p.FileData)
		return b, err == nil, err
	case len(p.ThoughtSignature) > 0: // another provider's, without text
		return block{}, false, nil
	}
	return block{}, false, fmt.Errorf("a part that the Messages API does not take from the %s: %s", role, turns.Kind(p))
}

// toolResult is the answer of a function. One with nothing but an "error" is
// marked as a failure.
func toolResult(fr *genai.FunctionResponse) (block, error) {
	data, err := json.Marshal(fr.Response)
	if err != nil {
		return block{}, fmt.Errorf("answer of function %q: %w", fr.Name, err)
	}
	result := block{Type: "tool_result", ToolUseID: fr.ID, Content: []block{{Type: "text", Text: string(data)}}}
	for _, p := range fr.Parts {
		if p == nil || p.InlineData == nil {
			return block{}, fmt.Errorf("answer of function %q: a part that is not inline data", fr.Name)
		}
		b, err := inline(&genai.Blob{Data: p.InlineData.Data, MIMEType: p.InlineData.MIMEType})
		if err != nil {
			return block{}, fmt.Errorf("answer of function %q: %w", fr.Name, err)
		}
		result.Content = append(result.Content, b)
	}
	_, failed := fr.Response["error"]
	result.IsError = failed && len(fr.Response) == 1
	return result, nil
}

func inline(b *genai.Blob) (block, error) {
	data := base64.StdEncoding.EncodeToString(b.Data)
	switch {
	case b.MIMEType == "image/jpeg" || b.MIMEType == "image/png" || b.MIMEType == "image/gif" ||
		b.MIMEType == "image/webp":
		return block{Type: "image", Source: &source{Type: "base64", MediaType: b.MIMEType, Data: &data}}, nil
	case b.MIMEType == "application/pdf":
		return block{Type: "document", Source: &source{Type: "base64", MediaType: b.MIMEType, Data: &data}}, nil
	case strings.HasPrefix(b.MIMEType, "text/"):
		return block{Type: "document", Source: &source{Type: "text", MediaType: "text/plain",
			Data: new(string(b.Data))}}, nil
	}
	return block{}, fmt.Errorf("data of type %q: the Messages API takes JPEG, PNG, GIF, WebP, PDF and text", b.MIMEType)
}

func file(f *genai.FileData) (block, error) {
	if strings.HasPrefix(f.FileURI, "https://") || strings.HasPrefix(f.FileURI, "http://") {
		from := &source{Type: "url", URL: f.FileURI}
		switch {
		case strings.HasPrefix(f.MIMEType, "image/") || f.MIMEType == "":
			return block{Type: "image", Source: from}, nil
		case f.MIMEType == "application/pdf":
			return block{Type: "document", Source: from}, nil
		}
	}
	return block{}, fmt.Errorf("file %q of type %q: the Messages API takes images and PDF by web address", f.FileURI,
		f.MIMEType)
}
