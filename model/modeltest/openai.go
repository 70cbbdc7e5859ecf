// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model/scripted"
)

// OpenAIServer starts a server of OpenAI's Chat Completions. Thoughts go in
// reasoning_content, as DeepSeek, vLLM and llama.cpp send them.
func OpenAIServer(t testing.TB, script scripted.Script) *Server {
	t.Helper()
	return newServer(t, openAI{}, script, "/v1")
}

type openAI struct{ lf }

func (openAI) problem(f scripted.Failure) any {
	return object{"error": object{"message": f.Message, "type": f.Code, "param": nil, "code": f.Code}}
}

func (openAI) whole(a scripted.Answer) any {
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	if a.Text != "" {
		message["content"] = a.Text
	}
	if a.Thought != "" {
		message["reasoning_content"] = a.Thought
	}
	if a.Refusal != "" {
		message["refusal"] = a.Refusal
	}
	var calls []object
	for _, c := range a.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function",
			"function": object{"name": c.Name, "arguments": arguments(c)}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	out := object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "scripted", "system_fingerprint": "fp_1",
		"choices": []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": openAIFinish(a)}},
	}
	if a.Usage != nil {
		out["usage"] = openAIUsage(a.Usage)
	}
	return out
}

func (openAI) frames(a scripted.Answer, req *Request) []frame {
	chunk := func(choices []object, usage any) object {
		c := object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "scripted",
			"system_fingerprint": "fp_1", "choices": choices,
		}
		if a.Usage != nil {
			c["usage"] = usage // null but in the last
		}
		return c
	}
	var out []frame
	delta := func(d object, finish any, shows bool) {
		choices := []object{{"index": 0, "delta": d, "logprobs": nil, "finish_reason": finish}}
		out = append(out, dataFrame(chunk(choices, nil), shows))
	}
	delta(object{"role": "assistant", "content": "", "refusal": nil}, nil, false)
	if a.Thought != "" {
		delta(object{"reasoning_content": a.Thought}, nil, true)
	}
	for _, piece := range a.Pieces() {
		delta(object{"content": piece}, nil, true)
	}
	if a.Refusal != "" {
		delta(object{"refusal": a.Refusal}, nil, true)
	}
	for i, c := range a.Calls {
		delta(object{"tool_calls": []object{{"index": i, "id": c.ID, "type": "function",
			"function": object{"name": c.Name, "arguments": ""}}}}, nil, false)
		for _, half := range halves(arguments(c)) {
			delta(object{"tool_calls": []object{{"index": i, "function": object{"arguments": half}}}}, nil, false)
		}
	}
	delta(object{}, openAIFinish(a), false)
	if a.Usage != nil {
		out = append(out, dataFrame(chunk([]object{}, openAIUsage(a.Usage)), false))
	}
	return append(out, frame{text: "data: [DONE]\n\n"})
}

func openAIFinish(a scripted.Answer) string {
	switch {
	case a.Finish == string(genai.FinishReasonMaxTokens):
		return "length"
	case len(a.Calls) > 0:
		return "tool_calls"
	case a.Finish == string(genai.FinishReasonSafety):
		return "content_filter"
	}
	return "stop"
}

func openAIUsage(u *scripted.Usage) object {
	return object{
		"prompt_tokens": u.Prompt, "completion_tokens": u.Output + u.Thoughts, "total_tokens": u.Prompt + u.Output + u.Thoughts,
		"prompt_tokens_details":     object{"cached_tokens": u.Cached, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": u.Thoughts, "audio_tokens": 0},
	}
}
