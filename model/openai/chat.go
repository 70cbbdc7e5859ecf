// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/refrain-dev/refrain/model/internal/wire"
)

// The types of Chat Completions, as far as they are used here:
// https://platform.openai.com/docs/api-reference/chat

type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Tools               []tool          `json:"tools,omitempty"`
	ToolChoice          any             `json:"tool_choice,omitempty"` // a word or a *choice
	ResponseFormat      *responseFormat `json:"response_format,omitempty"`
	Temperature         *float32        `json:"temperature,omitempty"`
	TopP                *float32        `json:"top_p,omitempty"`
	PresencePenalty     *float32        `json:"presence_penalty,omitempty"`
	FrequencyPenalty    *float32        `json:"frequency_penalty,omitempty"`
	Seed                *int32          `json:"seed,omitempty"`
	MaxTokens           int32           `json:"max_tokens,omitempty"`
	MaxCompletionTokens int32           `json:"max_completion_tokens,omitempty"`
	Stop                []string        `json:"stop,omitempty"`
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
	Stream              bool            `json:"stream,omitempty"`
	CacheKey            string          `json:"prompt_cache_key,omitempty"`
	CacheRetention      string          `json:"prompt_cache_retention,omitempty"`
	StreamOptions       *streamOptions  `json:"stream_options,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content,omitempty"` // a string or []part
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

// part is a part of a message; its type says which field is set.
type part struct {
	Type       string      `json:"type"`
	Text       *string     `json:"text,omitempty"`
	ImageURL   *imageURL   `json:"image_url,omitempty"`
	InputAudio *inputAudio `json:"input_audio,omitempty"`
	File       *file       `json:"file,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type inputAudio struct {
	Data   string `json:"data"`
	Format string `json:"format"`
}

type file struct {
	FileData string `json:"file_data"`
	Filename string `json:"filename"`
}

type toolCall struct {
	Index    wire.Count   `json:"index,omitzero"` // in a stream
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function calledByName `json:"function"`
}

type calledByName struct {
	Name      string    `json:"name"`
	Arguments arguments `json:"arguments"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"`
}

// choice is one function, or several that are allowed.
type choice struct {
	Type         string        `json:"type"`
	Function     *function     `json:"function,omitempty"`
	AllowedTools *allowedTools `json:"allowed_tools,omitempty"`
}

type allowedTools struct {
	Mode  string   `json:"mode"`
	Tools []choice `json:"tools"`
}

type responseFormat struct {
	Type       string      `json:"type"`
	JSONSchema *jsonSchema `json:"json_schema,omitempty"`
}

type jsonSchema struct {
	Name   string         `json:"name"`
	Schema map[string]any `json:"schema"`
	Strict bool           `json:"strict,omitempty"`
}

// chatAnswer is a whole answer or, with deltas in place of messages, a chunk of
// a stream.
type chatAnswer struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Index        wire.Count  `json:"index"`
		Message      chatMessage `json:"message"`
		Delta        chatMessage `json:"delta"`
		FinishReason string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *tokens         `json:"usage"`
	Error json.RawMessage `json:"error"` // after a status of success
}

func (c *chatAnswer) failed() bool { return len(c.Error) > 0 && string(c.Error) != "null" }

// chatMessage is a model's answer, or a piece of it.
type chatMessage struct {
	Content   text       `json:"content"`
	Refusal   text       `json:"refusal"`
	ToolCalls []toolCall `json:"tool_calls"`
	// Thoughts, which servers other than OpenAI's show: DeepSeek and llama.cpp
	// by the first name, Ollama and vLLM by the second.
	ReasoningContent text `json:"reasoning_content"`
	Reasoning        text `json:"reasoning"`
}

func (s chatMessage) thought() string {
	if s.ReasoningContent != "" {
		return string(s.ReasoningContent)
	}
	return string(s.Reasoning)
}

type tokens struct {
	Prompt        wire.Count `json:"prompt_tokens"`
	Completion    wire.Count `json:"completion_tokens"`
	Total         wire.Count `json:"total_tokens"`
	PromptDetails struct {
		Cached  wire.Count `json:"cached_tokens"`
		Written wire.Count `json:"cache_write_tokens"` // by models since GPT-5.6
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning wire.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// text is a string. Some servers write a list of parts in its place, of which
// those of type text count.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(data []byte) error {
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(data, (*string)(t)) == nil || wire.Unmarshal(data, &parts) != nil {
		return nil
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			b.WriteString(p.Text)
		}
	}
	*t = text(b.String())
	return nil
}

// arguments are JSON in a string. Some servers write the object itself.
type arguments string

// UnmarshalJSON never fails.
func (a *arguments) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*string)(a)) != nil {
		*a = arguments(bytes.Clone(data))
	}
	return nil
}
