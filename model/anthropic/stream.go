// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"bytes"
	"context"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// stream asks for a stream, shows its pieces and yields the whole.
func (m *llm) stream(
	ctx context.Context, x *wire.Exchange, req *apiRequest, yield func(*model.LLMResponse, error) bool,
) {
	req.Stream = true
	var a answer
	for sent, err := range x.PostForEvents(ctx, m.endpoint, req) {
		if err != nil {
			yield(nil, err)
			return
		}
		data := bytes.TrimSpace(sent.Data)
		if len(data) == 0 {
			continue
		}
		var ev event
		if err := wire.Unmarshal(data, &ev); err != nil || ev.Type == "" {
			yield(nil, x.Garbage(ctx, data, err))
			return
		}
		if ev.Type == "error" {
			yield(nil, x.Problem(data))
			return
		}
		if piece := a.add(ev); piece != nil && !yield(piece, nil) {
			return
		}
		if ev.Type == "message_stop" {
			break
		}
	}
	if a.reason == "" || x.Broken(ctx) != nil {
		yield(nil, x.Cut(ctx))
		return
	}
	yield(a.response(), nil)
}

// add processes one event and returns the response to show, or nil. It ignores unknown kinds of
// events, as the API's rules demand.
func (a *answer) add(ev event) *model.LLMResponse {
	switch ev.Type {
	case "message_start":
		a.version = ev.Message.Model
		a.count(ev.Message.Usage)
	case "content_block_start":
		a.blocks = append(a.blocks, &content{given: ev.ContentBlock, index: ev.Index})
		return shown(ev.ContentBlock.Text, ev.ContentBlock.Thinking)
	case "content_block_delta":
		return a.delta(ev.Index, ev.Delta)
	case "message_delta":
		a.reason = ev.Delta.StopReason
		a.explanation = ev.Delta.StopDetails.Explanation
		a.count(ev.Usage)
	}
	return nil
}

func (a *answer) delta(index wire.Count, d delta) *model.LLMResponse {
	for _, b := range a.blocks {
		if b.index == index {
			b.text = append(b.text, d.Text...)
			b.thinking = append(b.thinking, d.Thinking...)
			b.args = append(b.args, d.PartialJSON...)
			b.Signature += d.Signature
			return shown(d.Text, d.Thinking)
		}
	}
	return nil
}

func shown(text, thinking string) *model.LLMResponse {
	switch {
	case text != "":
		return turns.Partial(text, false)
	case thinking != "":
		return turns.Partial(thinking, true)
	}
	return nil
}
