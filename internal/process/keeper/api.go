// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

type object = map[string]any

type api int

const (
	anthropic api = iota
	openAI
	gemini
)

func apiOf(path string) api {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return anthropic
	case strings.HasSuffix(path, "/chat/completions"):
		return openAI
	}
	return gemini
}

func cacheKey(body string) string {
	var in struct {
		Key string `json:"prompt_cache_key"`
	}
	_ = json.Unmarshal([]byte(body), &in) // parts reports invalid JSON
	return in.Key
}

// parts splits a request of any of the APIs into its parts in order, and returns for each part how long its
// breakpoint keeps the prompt.
func parts(body string) (texts []string, lives []time.Duration, err error) {
	var in struct {
		Tools             []object
		System            []object        // Anthropic
		SystemInstruction json.RawMessage // Gemini
		Messages          []struct {
			Role    string
			Content json.RawMessage
			Rest    json.RawMessage `json:"tool_calls"` // OpenAI
			Result  string          `json:"tool_call_id"`
		}
		Contents []json.RawMessage // Gemini
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return nil, nil, err
	}
	add := func(role string, b object) {
		life := time.Duration(0)
		if c, ok := b["cache_control"].(object); ok {
			if life = short; c["ttl"] == "1h" {
				life = time.Hour
			}
			delete(b, "cache_control")
		}
		text, _ := json.Marshal(b) // it was JSON
		texts, lives = append(texts, role+string(text)), append(lives, life)
	}
	whole := func(text string) { texts, lives = append(texts, text), append(lives, 0) }
	if in.SystemInstruction != nil {
		whole("system" + string(in.SystemInstruction))
	}
	for _, b := range in.Tools {
		add("tool", b)
	}
	for _, b := range in.System {
		add("system", b)
	}
	for _, m := range in.Messages {
		var blocks []object
		if json.Unmarshal(m.Content, &blocks) != nil || in.System == nil && m.Rest != nil {
			whole(m.Role + m.Result + string(m.Content) + string(m.Rest))
			continue
		}
		for _, b := range blocks {
			add(m.Role, b)
		}
	}
	for _, c := range in.Contents {
		whole(string(c))
	}
	return texts, lives, nil
}

// answers writes the responses of the APIs.
var answers = map[api]func(Request, Answer, Tokens) object{
	anthropic: func(r Request, a Answer, t Tokens) object {
		block := object{"type": "text", "text": a.Text}
		if a.Call != "" {
			block = object{"type": "tool_use", "id": callID(r), "name": a.Call, "input": json.RawMessage(a.Arguments)}
		}
		return object{"model": "m", "content": []any{block}, "stop_reason": "end_turn", "usage": object{
			"input_tokens": t.Input - t.Read - t.Write - t.Hour, "output_tokens": 9,
			"cache_read_input_tokens": t.Read, "cache_creation_input_tokens": t.Write + t.Hour,
			"cache_creation": object{"ephemeral_5m_input_tokens": t.Write, "ephemeral_1h_input_tokens": t.Hour}}}
	},
	openAI: func(r Request, a Answer, t Tokens) object {
		message := object{"role": "assistant", "content": a.Text}
		if a.Call != "" {
			message = object{"role": "assistant", "tool_calls": []any{object{"id": callID(r), "type": "function",
				"function": object{"name": a.Call, "arguments": a.Arguments}}}}
		}
		return object{"model": "m", "choices": []any{object{"message": message, "finish_reason": "stop"}}, "usage": object{
			"prompt_tokens": t.Input, "completion_tokens": 9, "prompt_tokens_details": object{"cached_tokens": t.Read}}}
	},
	gemini: func(r Request, a Answer, t Tokens) object {
		part := object{"text": a.Text}
		if a.Call != "" {
			part = object{"functionCall": object{"id": callID(r), "name": a.Call, "args": json.RawMessage(a.Arguments)}}
		}
		return object{"modelVersion": "m", "candidates": []any{object{"finishReason": "STOP",
			"content": object{"role": "model", "parts": []any{part}}}}, "usageMetadata": object{"promptTokenCount": t.Input,
			"candidatesTokenCount": 9, "cachedContentTokenCount": t.Read, "totalTokenCount": t.Input + 9}}
	},
}

func callID(r Request) string { return fmt.Sprintf("toolu_%d", r.Results+1) }
