// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model/internal/turns"
)

// messages returns a conversation in OpenAI's format: a system message, then each turn; the
// answers of functions are messages of their own.
func messages(system *genai.Content, contents []*genai.Content) ([]message, error) {
	var out []message
	if text := plainText(system); text != "" {
		out = append(out, message{Role: "system", Content: text})
	}
	contents, err := turns.Prepare(contents)
	if err != nil {
		return nil, err
	}
	for i, c := range contents {
		var msgs []message
		if c.Role == genai.RoleModel {
			msgs, err = assistant(c)
		} else {
			msgs, err = user(c)
		}
		if err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, err)
		}
		out = append(out, msgs...)
	}
	return out, nil
}

// plainText is the text of a content, its parts on lines of their own.
func plainText(c *genai.Content) string { return turns.Text(c, "\n\n") }

// assistant returns a model's turn without its thoughts, because Chat Completions takes none
// back.
func assistant(c *genai.Content) ([]message, error) {
	msg := message{Role: "assistant"}
	var text strings.Builder
	for _, p := range c.Parts {
		switch {
		case p.Thought:
		case p.FunctionCall != nil:
			call, err := callOf(p.FunctionCall)
			if err != nil {
				return nil, err
			}
			msg.ToolCalls = append(msg.ToolCalls, call)
		case p.Text != "":
			text.WriteString(p.Text)
		case len(p.ThoughtSignature) > 0: // another provider's, without text
		default:
			return nil, fmt.Errorf("a model's turn with %s cannot be sent back", turns.Kind(p))
		}
	}
	if text.Len() > 0 {
		msg.Content = text.String()
	}
	if text.Len() == 0 && len(msg.ToolCalls) == 0 {
		return nil, nil
	}
	return []message{msg}, nil
}

func callOf(fc *genai.FunctionCall) (toolCall, error) {
	args := "{}"
	if len(fc.Args) > 0 {
		data, err := json.Marshal(fc.Args)
		if err != nil {
			return toolCall{}, fmt.Errorf("arguments of function %q: %w", fc.Name, err)
		}
		args = string(data)
	}
	return toolCall{ID: fc.ID, Type: "function", Function: calledByName{fc.Name, arguments(args)}}, nil
}

// user is a user's turn: a message for each function's answer, then one with
// the rest.
func user(c *genai.Content) ([]message, error) {
	var out []message
	var rest []part
	onlyText := true
	for _, p := range c.Parts {
		if fr := p.FunctionResponse; fr != nil {
			if len(fr.Parts) > 0 {
				return nil, fmt.Errorf("the answer of function %q has media in it, which Chat Completions does not take", fr.Name)
			}
			data, err := json.Marshal(fr.Response)
			if err != nil {
				return nil, fmt.Errorf("answer of function %q: %w", fr.Name, err)
			}
			out = append(out, message{Role: "tool", Content: string(data), ToolCallID: fr.ID})
			continue
		}
		next, err := contentPart(p)
		if err != nil {
			return nil, err
		}
		onlyText = onlyText && next.Text != nil
		rest = append(rest, next)
	}
	switch {
	case len(rest) == 0:
	case onlyText: // as a string, which the oldest servers understand too
		out = append(out, message{Role: "user", Content: plainText(c)})
	default:
		out = append(out, message{Role: "user", Content: rest})
	}
	return out, nil
}

func contentPart(p *genai.Part) (part, error) {
	switch {
	case p.Text != "":
		return textPart(p.Text), nil
	case p.InlineData != nil:
		return inline(p.InlineData)
	case p.FileData != nil:
		uri := p.FileData.FileURI
		web := strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, "http://") ||
			strings.HasPrefix(uri, "data:")
		if web && (strings.HasPrefix(p.FileData.MIMEType, "image/") || p.FileData.MIMEType == "") {
			return part{Type: "image_url", ImageURL: &imageURL{uri}}, nil
		}
		return part{}, fmt.Errorf("file %q of type %q: Chat Completions takes only images by web address", uri,
			p.FileData.MIMEType)
	}
	return part{}, fmt.Errorf("a user's turn with %s cannot be sent", turns.Kind(p))
}

func textPart(text string) part { return part{Type: "text", Text: &text} }

func inline(b *genai.Blob) (part, error) {
	data := base64.StdEncoding.EncodeToString(b.Data)
	url := "data:" + b.MIMEType + ";base64," + data
	switch {
	case strings.HasPrefix(b.MIMEType, "image/"):
		return part{Type: "image_url", ImageURL: &imageURL{url}}, nil
	case b.MIMEType == "application/pdf":
		name := b.DisplayName
		if name == "" {
			name = "document.pdf"
		}
		return part{Type: "file", File: &file{FileData: url, Filename: name}}, nil
	case b.MIMEType == "audio/wav" || b.MIMEType == "audio/x-wav":
		return part{Type: "input_audio", InputAudio: &inputAudio{data, "wav"}}, nil
	case b.MIMEType == "audio/mpeg" || b.MIMEType == "audio/mp3":
		return part{Type: "input_audio", InputAudio: &inputAudio{data, "mp3"}}, nil
	case strings.HasPrefix(b.MIMEType, "text/"):
		return textPart(string(b.Data)), nil
	}
	return part{}, fmt.Errorf("data of type %q: Chat Completions takes images, PDF, wav and mp3", b.MIMEType)
}
