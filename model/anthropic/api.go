// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"

	"github.com/refrain-dev/refrain/model/internal/wire"
)

// The types of the Messages API, as far as they are used here:
// https://docs.anthropic.com/en/api/messages

const apiVersion = "2023-06-01"

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

type apiRequest struct {
	Model         string        `json:"model"`
	MaxTokens     int           `json:"max_tokens"`
	System        []block       `json:"system,omitempty"`
	Messages      []message     `json:"messages"`
	Tools         []tool        `json:"tools,omitempty"`
	ToolChoice    *toolChoice   `json:"tool_choice,omitempty"`
	OutputConfig  *outputConfig `json:"output_config,omitempty"`
	Thinking      *thinking     `json:"thinking,omitempty"`
	Temperature   *float32      `json:"temperature,omitempty"`
	TopP          *float32      `json:"top_p,omitempty"`
	TopK          *int          `json:"top_k,omitempty"`
	StopSequences []string      `json:"stop_sequences,omitempty"`
	Stream        bool          `json:"stream,omitempty"`

	breakpoints bool // there are some
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a block of content that is sent; its type says which fields are set.
type block struct {
	Type      string         `json:"type"`
	Text      string         `json:"text,omitempty"`
	Thinking  *string        `json:"thinking,omitempty"` // may be empty
	Signature *string        `json:"signature,omitempty"`
	Data      *string        `json:"data,omitempty"`
	Source    *source        `json:"source,omitempty"`
	ID        string         `json:"id,omitempty"`
	Name      string         `json:"name,omitempty"`
	Input     map[string]any `json:"input,omitzero"` // may be empty
	ToolUseID string         `json:"tool_use_id,omitempty"`
	Content   []block        `json:"content,omitempty"`
	IsError   bool           `json:"is_error,omitempty"`
	Cache     *breakpoint    `json:"cache_control,omitempty"`
}

// breakpoint asks the API to keep what is sent up to here.
type breakpoint struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

type source struct {
	Type      string  `json:"type"`
	MediaType string  `json:"media_type,omitempty"`
	Data      *string `json:"data,omitempty"`
	URL       string  `json:"url,omitempty"`
}

type tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	InputSchema map[string]any `json:"input_schema"`
	Cache       *breakpoint    `json:"cache_control,omitempty"`
}

type toolChoice struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
}

type outputConfig struct {
	Effort string        `json:"effort,omitempty"`
	Format *outputFormat `json:"format,omitempty"`
}

type outputFormat struct {
	Type   string         `json:"type"`
	Schema map[string]any `json:"schema"`
}

type thinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens,omitempty"`
	Display      string `json:"display,omitempty"`
}

// apiAnswer is a whole answer, or the beginning of a stream.
type apiAnswer struct {
	ID          string         `json:"id"`
	Model       string         `json:"model"`
	Content     []contentBlock `json:"content"`
	StopReason  string         `json:"stop_reason"`
	StopDetails stopDetails    `json:"stop_details"`
	Usage       *usage         `json:"usage"`
}

// contentBlock is a block of content that was received, of any kind.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

type stopDetails struct {
	Explanation string `json:"explanation"`
}

// usage has the counts that the API reported. The counts at a stream's end may lack some from its
// beginning.
type usage struct {
	Input      *wire.Count `json:"input_tokens"`
	CacheRead  *wire.Count `json:"cache_read_input_tokens"`
	CacheWrite *wire.Count `json:"cache_creation_input_tokens"`
	Written    struct {
		Hour *wire.Count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"` // of CacheWrite
	Output  *wire.Count `json:"output_tokens"`
	Details struct {
		Thinking *wire.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// event is an event of a stream; its type says which fields are set.
type event struct {
	Type         string       `json:"type"`
	Index        wire.Count   `json:"index"`
	Message      apiAnswer    `json:"message"`
	ContentBlock contentBlock `json:"content_block"`
	Delta        delta        `json:"delta"`
	Usage        *usage       `json:"usage"`
}

// delta is a piece of a block or, at the end, of the message.
type delta struct {
	Text        string      `json:"text"`
	Thinking    string      `json:"thinking"`
	Signature   string      `json:"signature"`
	PartialJSON string      `json:"partial_json"`
	StopReason  string      `json:"stop_reason"`
	StopDetails stopDetails `json:"stop_details"`
}
