// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"google.golang.org/genai"
)

type anthropicRequest struct {
	Model     string `json:"model"`
	MaxTokens int32  `json:"max_tokens"`
	System    []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"system"`
	Messages []struct {
		Role    string           `json:"role"`
		Content []anthropicBlock `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	ToolChoice *struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	OutputConfig *struct {
		Effort string `json:"effort"`
		Format *struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
	Thinking *struct {
		Type         string `json:"type"`
		BudgetTokens int32  `json:"budget_tokens"`
		Display      string `json:"display"`
	} `json:"thinking"`
	Stream        bool     `json:"stream"`
	Temperature   *float32 `json:"temperature"`
	TopP          *float32 `json:"top_p"`
	TopK          *float32 `json:"top_k"`
	StopSequences []string `json:"stop_sequences"`
}

type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text"`
	Thinking  string           `json:"thinking"`
	Signature string           `json:"signature"`
	Data      string           `json:"data"`
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Input     map[string]any   `json:"input"`
	ToolUseID string           `json:"tool_use_id"`
	IsError   bool             `json:"is_error"`
	Content   []anthropicBlock `json:"content"`
	Source    *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
}

var (
	toolUseID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	// limit is a keyword that structured answers may not have.
	limit = regexp.MustCompile(`"(minimum|maximum|minLength|maxLength|maxItems|pattern)"\s*:`)
)

func (anthropic) decode(r *http.Request, body []byte) (*Request, error) {
	var in anthropicRequest
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/messages":
		return nil, errors.New("want POST /v1/messages")
	case r.Header.Get("X-Api-Key") == "" || r.Header.Get("Anthropic-Version") == "":
		return nil, errors.New("x-api-key or anthropic-version is missing")
	}
	if err := strict(body, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Model == "":
		return nil, errors.New("no model")
	case in.MaxTokens <= 0:
		return nil, errors.New("max_tokens is required")
	case in.ToolChoice != nil && len(in.Tools) == 0:
		return nil, errors.New("tool_choice without tools")
	}
	req := &Request{Stream: in.Stream}
	req.Model = in.Model
	req.Config = &genai.GenerateContentConfig{
		Temperature: in.Temperature, TopP: in.TopP, TopK: in.TopK, MaxOutputTokens: in.MaxTokens,
		StopSequences: in.StopSequences,
	}
	for _, s := range in.System {
		if s.Type != "text" || strings.TrimSpace(s.Text) == "" {
			return nil, errors.New("system has a block that is not text")
		}
		if req.Config.SystemInstruction == nil {
			req.Config.SystemInstruction = &genai.Content{}
		}
		req.Config.SystemInstruction.Parts = append(req.Config.SystemInstruction.Parts, &genai.Part{Text: s.Text})
	}
	for _, t := range in.Tools {
		if err := addFunction(req, t.Name, t.Description, t.InputSchema); err != nil {
			return nil, err
		}
	}
	if t := in.Thinking; t != nil {
		if t.Type == "enabled" && (t.BudgetTokens < 1024 || t.BudgetTokens >= in.MaxTokens) {
			return nil, fmt.Errorf("a budget of %d with max_tokens %d", t.BudgetTokens, in.MaxTokens)
		}
		req.Config.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: t.Display == "summarized",
			ThinkingBudget: &t.BudgetTokens}
	}
	if c := in.OutputConfig; c != nil && c.Format != nil {
		if err := checkClosed(c.Format.Schema, false); err != nil || c.Format.Type != "json_schema" ||
			limit.Match(c.Format.Schema) {
			return nil, fmt.Errorf("output format %s: %v", c.Format.Schema, err)
		}
		req.Config.ResponseJsonSchema = c.Format.Schema
	}
	open := map[string]string{} // calls of the message before, with the names of their functions
	for i, m := range in.Messages {
		isModel := m.Role == "assistant"
		if !isModel && m.Role != "user" || isModel != (i%2 == 1) || len(m.Content) == 0 {
			return nil, fmt.Errorf("message %d: %q, empty or out of turn", i, m.Role)
		}
		parts, calls, err := anthropicContent(m.Content, isModel, open)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		open = calls
		say(req, isModel, parts...)
	}
	return req, lastWord(req)
}

// anthropicContent reads a message's blocks; it takes the calls that wait for
// an answer and returns those that it makes.
func anthropicContent(blocks []anthropicBlock, isModel bool,
	open map[string]string) ([]*genai.Part, map[string]string, error) {
	var parts []*genai.Part
	calls := map[string]string{}
	for i, b := range blocks {
		if b.Type != "tool_result" && len(open) > 0 {
			return nil, nil, fmt.Errorf("block %d: the calls %v are not answered first", i, open)
		}
		switch {
		case b.Type == "text" && strings.TrimSpace(b.Text) != "":
			parts = append(parts, &genai.Part{Text: b.Text})
		case b.Type == "thinking" && isModel && i == 0 && b.Signature == signature:
			parts = append(parts, &genai.Part{Text: b.Thinking, Thought: true, ThoughtSignature: []byte(b.Signature)})
		case b.Type == "redacted_thinking" && isModel && i == 0 && b.Data != "":
			parts = append(parts, &genai.Part{Thought: true, ThoughtSignature: []byte(b.Data)})
		case b.Type == "tool_use" && isModel && toolUseID.MatchString(b.ID) && functionName.MatchString(b.Name) &&
			b.Input != nil:
			calls[b.ID] = b.Name
			parts = append(parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: b.ID, Name: b.Name, Args: b.Input}})
		case b.Type == "tool_result" && !isModel && open[b.ToolUseID] != "":
			var content []*genai.Part
			for _, c := range b.Content {
				content = append(content, &genai.Part{Text: c.Text})
			}
			answer, err := functionResponse(b.ToolUseID, open[b.ToolUseID], content)
			if err != nil {
				return nil, nil, err
			}
			delete(open, b.ToolUseID)
			parts = append(parts, answer...)
		case b.Type == "image" && !isModel && b.Source != nil && b.Source.Type == "base64":
			parts = append(parts, &genai.Part{InlineData: &genai.Blob{MIMEType: b.Source.MediaType,
				Data: b.Source.Data}})
		case b.Type == "image" && !isModel && b.Source != nil && b.Source.Type == "url":
			parts = append(parts, &genai.Part{FileData: &genai.FileData{FileURI: b.Source.URL}})
		default:
			return nil, nil, fmt.Errorf("block %d: bad, or in the wrong place: %+v", i, b)
		}
	}
	if len(open) > 0 {
		return nil, nil, fmt.Errorf("the calls %v are not answered", open)
	}
	return parts, calls, nil
}
