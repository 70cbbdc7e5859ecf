// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// stream asks for a stream, shows its pieces and yields the whole. The SDK's
// own stream is not used, as it takes a cut for an end and keeps nothing of
// what it does not understand.
func (m *llm) stream(ctx context.Context, x *wire.Exchange, params openai.ChatCompletionNewParams, yield func(*model.LLMResponse, error) bool) {
	params.StreamOptions.IncludeUsage = param.NewOpt(true)
	var resp *http.Response
	if err := m.client.Post(ctx, "chat/completions", params, &resp, option.WithJSONSet("stream", true), option.WithHeader("Accept", "text/event-stream")); err != nil {
		yield(nil, x.Fail(ctx, err))
		return
	}
	events := ssestream.NewDecoder(resp)
	defer events.Close()
	var a answer
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if bytes.Equal(data, []byte("[DONE]")) {
			break
		}
		pieces, err := a.add(ctx, x, data)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, p := range pieces {
			if !yield(p, nil) {
				return
			}
		}
	}
	switch err := events.Err(); {
	case err != nil:
		yield(nil, x.Garbage(ctx, nil, err))
	case a.reason == "" || x.Broken(ctx) != nil:
		yield(nil, x.Cut(ctx))
	default:
		yield(a.response(), nil)
	}
}

// add takes in one chunk and returns what it shows.
func (a *answer) add(ctx context.Context, x *wire.Exchange, data []byte) ([]*model.LLMResponse, error) {
	var in struct {
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, x.Garbage(ctx, data, err)
	}
	if len(in.Error) > 0 && string(in.Error) != "null" {
		return nil, x.Problem(data)
	}
	var chunk openai.ChatCompletionChunk
	if err := json.Unmarshal(data, &chunk); err != nil || !chunk.JSON.Choices.Valid() && !chunk.JSON.Usage.Valid() {
		return nil, x.Garbage(ctx, data, err)
	}
	if chunk.Model != "" {
		a.version = chunk.Model
	}
	if chunk.JSON.Usage.Valid() {
		a.usage = usage(chunk.Usage)
	}
	var out []*model.LLMResponse
	for _, c := range chunk.Choices {
		if c.Index != 0 {
			continue // only one was asked for
		}
		if c.FinishReason != "" {
			a.reason = c.FinishReason
		}
		if thought := reasoning(c.Delta.JSON.ExtraFields); thought != "" {
			a.parts.Text(thought, true)
			out = append(out, turns.Partial(thought, true))
		}
		if c.Delta.Content != "" {
			a.parts.Text(c.Delta.Content, false)
			out = append(out, turns.Partial(c.Delta.Content, false))
		}
		if c.Delta.Refusal != "" {
			a.refusal += c.Delta.Refusal
			out = append(out, turns.Partial(c.Delta.Refusal, false))
		}
		for _, t := range c.Delta.ToolCalls {
			a.addCall(t)
		}
	}
	return out, nil
}

// addCall joins a piece of a function call with those before. A new ID at an
// old index is a new call: some servers give all calls the index 0.
func (a *answer) addCall(t openai.ChatCompletionChunkChoiceDeltaToolCall) {
	var at *call
	for _, c := range a.calls {
		if c.index == t.Index && (t.ID == "" || c.id == t.ID) {
			at = c
		}
	}
	if at == nil {
		at = &call{index: t.Index, id: t.ID}
		a.calls = append(a.calls, at)
	}
	if at.name == "" {
		at.name = t.Function.Name
	}
	at.args = append(at.args, t.Function.Arguments...)
}
