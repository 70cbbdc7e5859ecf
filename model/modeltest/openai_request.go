// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"google.golang.org/genai"
)

type openAIRequest struct {
	Model               string                `json:"model"`
	Messages            []openAIMessage       `json:"messages"`
	Tools               []openAITool          `json:"tools"`
	ToolChoice          json.RawMessage       `json:"tool_choice"`
	ResponseFormat      *openAIResponseFormat `json:"response_format"`
	Stream              bool                  `json:"stream"`
	CacheKey            string                `json:"prompt_cache_key"`
	CacheRetention      string                `json:"prompt_cache_retention"`
	StreamOptions       map[string]bool       `json:"stream_options"`
	Temperature         *float32              `json:"temperature"`
	TopP                *float32              `json:"top_p"`
	MaxTokens           int32                 `json:"max_tokens"`
	MaxCompletionTokens int32                 `json:"max_completion_tokens"`
	Stop                []string              `json:"stop"`
	Seed                *int32                `json:"seed"`
	PresencePenalty     *float32              `json:"presence_penalty"`
	FrequencyPenalty    *float32              `json:"frequency_penalty"`
	ReasoningEffort     string                `json:"reasoning_effort"`
}

type openAIMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type openAIPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL *struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

type openAITool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type openAIResponseFormat struct {
	Type       string `json:"type"`
	JSONSchema *struct {
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// functionName is what OpenAI and Anthropic take as a function's name.
var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// strict decodes JSON whose every field the wire format has.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func (openAI) decode(r *http.Request, body []byte) (*Request, error) {
	var in openAIRequest
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions":
		return nil, errors.New("want POST /v1/chat/completions")
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		return nil, fmt.Errorf("content type %q", r.Header.Get("Content-Type"))
	case !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "):
		return nil, errors.New("no bearer token")
	}
	if err := strict(body, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Model == "":
		return nil, errors.New("no model")
	case len(in.Messages) == 0:
		return nil, errors.New("no messages")
	case in.Stream != in.StreamOptions["include_usage"]:
		return nil, errors.New("stream_options.include_usage goes with stream")
	case in.MaxTokens != 0 && in.MaxCompletionTokens != 0:
		return nil, errors.New("max_tokens and max_completion_tokens")
	case len(in.ToolChoice) > 0 && len(in.Tools) == 0:
		return nil, errors.New("tool_choice without tools")
	}
	req := &Request{Stream: in.Stream}
	req.Model = in.Model
	req.Config = &genai.GenerateContentConfig{
		Temperature: in.Temperature, TopP: in.TopP, MaxOutputTokens: in.MaxTokens + in.MaxCompletionTokens,
		StopSequences: in.Stop, Seed: in.Seed, PresencePenalty: in.PresencePenalty,
		FrequencyPenalty: in.FrequencyPenalty,
	}
	if in.ReasoningEffort != "" {
		req.Config.ThinkingConfig = &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevel(strings.ToUpper(in.ReasoningEffort))}
	}
	for _, t := range in.Tools {
		if t.Type != "function" {
			return nil, fmt.Errorf("tool of type %q", t.Type)
		}
		if err := addFunction(req, t.Function.Name, t.Function.Description, t.Function.Parameters); err != nil {
			return nil, err
		}
	}
	if f := in.ResponseFormat; f != nil && f.Type == "json_schema" {
		if f.JSONSchema == nil || !functionName.MatchString(f.JSONSchema.Name) {
			return nil, errors.New("response_format without a named schema")
		}
		if f.JSONSchema.Strict {
			if err := checkClosed(f.JSONSchema.Schema, true); err != nil {
				return nil, fmt.Errorf("strict schema: %w", err)
			}
		}
		req.Config.ResponseJsonSchema = f.JSONSchema.Schema
	}
	return req, openAIMessages(req, in.Messages)
}

func openAIMessages(req *Request, messages []openAIMessage) error {
	open := map[string]string{} // calls that are not answered yet, with the names of their functions
	for i, m := range messages {
		if len(open) > 0 && m.Role != "tool" {
			return fmt.Errorf("message %d: the calls %v before it are not answered", i, open)
		}
		parts, err := openAIContent(m.Content)
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		switch m.Role {
		case "system":
			if i > 0 {
				return fmt.Errorf("message %d: the system's comes first", i)
			}
			req.Config.SystemInstruction = &genai.Content{Parts: parts}
			continue
		case "user":
			if len(parts) == 0 {
				return fmt.Errorf("message %d: empty", i)
			}
		case "assistant":
			if len(parts) == 0 && len(m.ToolCalls) == 0 {
				return fmt.Errorf("message %d: empty", i)
			}
		case "tool":
			name, ok := open[m.ToolCallID]
			if !ok {
				return fmt.Errorf("message %d: answers %q, which is no open call", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			if parts, err = functionResponse(m.ToolCallID, name, parts); err != nil {
				return err
			}
		default:
			return fmt.Errorf("message %d: role %q", i, m.Role)
		}
		for _, c := range m.ToolCalls {
			args := map[string]any{}
			if err := json.Unmarshal([]byte(c.Function.Arguments), &args); err != nil || c.ID == "" || len(c.ID) > 40 ||
				c.Type != "function" || !functionName.MatchString(c.Function.Name) {
				return fmt.Errorf("message %d: bad call %+v", i, c)
			}
			open[c.ID] = c.Function.Name
			parts = append(parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: c.ID, Name: c.Function.Name,
				Args: args}})
		}
		say(req, m.Role == "assistant", parts...)
	}
	return lastWord(req)
}

func openAIContent(raw json.RawMessage) ([]*genai.Part, error) {
	var text string
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if json.Unmarshal(raw, &text) == nil {
		return []*genai.Part{{Text: text}}, nil
	}
	var in []openAIPart
	if err := strict(raw, &in); err != nil {
		return nil, err
	}
	var out []*genai.Part
	for _, p := range in {
		switch {
		case p.Type == "text" && p.Text != "":
			out = append(out, &genai.Part{Text: p.Text})
		case p.Type == "image_url" && p.ImageURL != nil:
			part, err := imageByURL(p.ImageURL.URL)
			if err != nil {
				return nil, err
			}
			out = append(out, part)
		default:
			return nil, fmt.Errorf("part of type %q", p.Type)
		}
	}
	return out, nil
}

func imageByURL(url string) (*genai.Part, error) {
	inline, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return &genai.Part{FileData: &genai.FileData{FileURI: url}}, nil
	}
	mime, encoded, ok := strings.Cut(inline, ";base64,")
	data, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return nil, fmt.Errorf("data URL that is not base64: %v", err)
	}
	return &genai.Part{InlineData: &genai.Blob{MIMEType: mime, Data: data}}, nil
}
