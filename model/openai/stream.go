// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// streaming makes a request ask for a stream, and returns what puts the answer together.
func streaming(req *chatRequest) wire.Assembly {
	req.Stream, req.StreamOptions = true, &streamOptions{IncludeUsage: true}
	return new(answer)
}

// Whole returns the answer, or nil if the stream ended without a reason.
func (a *answer) Whole() *model.LLMResponse {
	if a.reason == "" {
		return nil
	}
	return a.response()
}

// Add processes one chunk and returns the responses to show.
func (a *answer) Add(ctx context.Context, x *wire.Exchange, data []byte) (out []*model.LLMResponse, over bool, err error) {
	if string(data) == "[DONE]" {
		return nil, true, nil
	}
	var chunk chatAnswer
	err = wire.Unmarshal(data, &chunk)
	switch {
	case err != nil || chunk.Choices == nil && chunk.Usage == nil && !chunk.failed():
		return nil, false, x.Garbage(ctx, data, err)
	case chunk.failed():
		return nil, false, x.Problem(data)
	}
	model.NoteAnswer(ctx, chunk.ID, "")
	if chunk.Model != "" {
		a.version = chunk.Model
	}
	if chunk.Usage != nil {
		a.usage = chunk.Usage.metadata()
	}
	for _, c := range chunk.Choices {
		if c.Index != 0 {
			continue // only one was asked for
		}
		if c.FinishReason != "" {
			a.reason = c.FinishReason
			model.NoteAnswer(ctx, "", a.reason)
		}
		if thought := c.Delta.thought(); thought != "" {
			a.parts.Text(thought, true)
			out = append(out, turns.Partial(thought, true))
		}
		if text := string(c.Delta.Content); text != "" {
			a.parts.Text(text, false)
			out = append(out, turns.Partial(text, false))
		}
		if refusal := string(c.Delta.Refusal); refusal != "" {
			a.refusal += refusal
			out = append(out, turns.Partial(refusal, false))
		}
		for _, t := range c.Delta.ToolCalls {
			a.addCall(t)
		}
	}
	return out, false, nil
}

// addCall joins a piece of a function call with those before. A new ID at an
// old index is a new call: some servers give all calls the index 0.
func (a *answer) addCall(t toolCall) {
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
