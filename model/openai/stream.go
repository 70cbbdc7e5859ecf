// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"context"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// stream asks for a stream, shows its pieces and yields the whole.
func (m *llm) stream(
	ctx context.Context, x *wire.Exchange, req *chatRequest, yield func(*model.LLMResponse, error) bool,
) {
	req.Stream, req.StreamOptions = true, &streamOptions{IncludeUsage: true}
	var a answer
	for ev, err := range x.PostForEvents(ctx, m.endpoint, req) {
		if err != nil {
			yield(nil, err)
			return
		}
		data := bytes.TrimSpace(ev.Data)
		if len(data) == 0 {
			continue
		}
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
	if a.reason == "" || x.Broken(ctx) != nil {
		yield(nil, x.Cut(ctx))
		return
	}
	yield(a.response(), nil)
}

// add processes one chunk and returns the response to show.
func (a *answer) add(ctx context.Context, x *wire.Exchange, data []byte) ([]*model.LLMResponse, error) {
	var chunk chatAnswer
	err := wire.Unmarshal(data, &chunk)
	switch {
	case err != nil || chunk.Choices == nil && chunk.Usage == nil && !chunk.failed():
		return nil, x.Garbage(ctx, data, err)
	case chunk.failed():
		return nil, x.Problem(data)
	}
	if chunk.Model != "" {
		a.version = chunk.Model
	}
	if chunk.Usage != nil {
		a.usage = chunk.Usage.metadata()
	}
	var out []*model.LLMResponse
	for _, c := range chunk.Choices {
		if c.Index != 0 {
			continue // only one was asked for
		}
		if c.FinishReason != "" {
			a.reason = c.FinishReason
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
	return out, nil
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
