// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"encoding/json"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model/scripted"
)

// signature is what the servers sign thoughts with.
const signature = "c2lnbmF0dXJl" // base64 of "signature"

// AnthropicServer starts a server of Anthropic's Messages API.
func AnthropicServer(t testing.TB, script scripted.Script) *Server {
	t.Helper()
	return newServer(t, anthropic{}, script, "")
}

type anthropic struct{ lf }

func (anthropic) problem(f scripted.Failure) any {
	return object{"type": "error", "error": object{"type": f.Code, "message": f.Message}, "request_id": "req_1"}
}

func (anthropic) whole(a scripted.Answer) any {
	content := []object{}
	if a.Thought != "" {
		content = append(content, object{"type": "thinking", "thinking": a.Thought, "signature": signature})
	}
	if text := a.Text + a.Refusal; text != "" {
		content = append(content, object{"type": "text", "text": text})
	}
	for _, c := range a.Calls {
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": anthropicArgs(c)})
	}
	reason, details := anthropicStop(a)
	out := object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": content,
		"stop_reason": reason, "stop_sequence": nil, "stop_details": details,
	}
	if u := a.Usage; u != nil {
		usage := anthropicInput(u)
		usage["output_tokens"] = u.Output + u.Thoughts
		usage["output_tokens_details"] = object{"thinking_tokens": u.Thoughts}
		out["usage"] = usage
	}
	return out
}

func (anthropic) frames(a scripted.Answer, _ *Request) []frame {
	var out []frame
	event := func(name string, data object, shows bool) {
		data["type"] = name
		out = append(out, frame{"event: " + name + "\ndata: " + marshal(data) + "\n\n", shows})
	}
	index := -1
	block := func(start object, deltas ...object) {
		index++
		event("content_block_start", object{"index": index, "content_block": start}, false)
		for _, d := range deltas {
			shows := d["type"] == "text_delta" || d["type"] == "thinking_delta"
			event("content_block_delta", object{"index": index, "delta": d}, shows)
		}
		event("content_block_stop", object{"index": index}, false)
	}
	message := object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []object{},
		"stop_reason": nil, "stop_sequence": nil,
	}
	end := object{}
	if u := a.Usage; u != nil {
		start := anthropicInput(u)
		start["output_tokens"] = 1
		message["usage"] = start
		end["usage"] = object{"output_tokens": u.Output + u.Thoughts,
			"output_tokens_details": object{"thinking_tokens": u.Thoughts}}
	}
	event("message_start", object{"message": message}, false)
	event("ping", object{}, false)
	if a.Thought != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""},
			object{"type": "thinking_delta", "thinking": a.Thought},
			object{"type": "signature_delta", "signature": signature})
	}
	var texts []object
	for _, piece := range a.Pieces() {
		texts = append(texts, object{"type": "text_delta", "text": piece})
	}
	if a.Refusal != "" {
		texts = append(texts, object{"type": "text_delta", "text": a.Refusal})
	}
	if texts != nil {
		block(object{"type": "text", "text": ""}, texts...)
	}
	for _, c := range a.Calls {
		deltas := []object{{"type": "input_json_delta", "partial_json": ""}}
		for _, half := range halves(arguments(c)) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": half})
		}
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, deltas...)
	}
	reason, details := anthropicStop(a)
	end["delta"] = object{"stop_reason": reason, "stop_sequence": nil, "stop_details": details}
	event("message_delta", end, false)
	event("message_stop", object{}, false)
	return out
}

// anthropicArgs are the arguments in an answer that is not streamed. What is no
// object comes as text there.
func anthropicArgs(c scripted.Call) any {
	if isMalformed(c) {
		return c.Raw
	}
	return json.RawMessage(arguments(c))
}

func anthropicStop(a scripted.Answer) (reason string, details any) {
	switch {
	case a.Refusal != "":
		return "refusal", object{"type": "refusal", "category": nil, "explanation": a.Refusal}
	case a.Finish == string(genai.FinishReasonMaxTokens):
		return "max_tokens", nil
	case len(a.Calls) > 0:
		return "tool_use", nil
	}
	return "end_turn", nil
}

// anthropicInput counts the input: cached tokens are counted apart.
func anthropicInput(u *scripted.Usage) object {
	return object{"input_tokens": u.Prompt - u.Cached, "cache_read_input_tokens": u.Cached,
		"cache_creation_input_tokens": 0}
}
