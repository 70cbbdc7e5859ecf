// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// streaming makes a request ask for a stream, and returns what puts the answer together.
func streaming(req *apiRequest) wire.Assembly {
	req.Stream = true
	return new(answer)
}

// Whole returns the answer, or nil if the stream ended without a reason.
func (a *answer) Whole() *model.LLMResponse {
	if a.reason == "" {
		return nil
	}
	return a.response()
}

// Add processes one event and returns the response to show, if any. It ignores unknown kinds of events, as
// the API's rules demand.
func (a *answer) Add(ctx context.Context, x *wire.Exchange, data []byte) (shown []*model.LLMResponse, over bool, err error) {
	var ev event
	switch err := wire.Unmarshal(data, &ev); {
	case err != nil || ev.Type == "":
		return nil, false, x.Garbage(ctx, data, err)
	case ev.Type == "error":
		return nil, false, x.Problem(data)
	}
	model.NoteAnswer(ctx, ev.Message.ID, ev.Delta.StopReason)
	if piece := a.add(ev); piece != nil {
		shown = append(shown, piece)
	}
	return shown, ev.Type == "message_stop", nil
}

func (a *answer) add(ev event) *model.LLMResponse {
	switch ev.Type {
	case "message_start":
		a.version = ev.Message.Model
		a.count(ev.Message.Usage)
	case "content_block_start":
		a.blocks = append(a.blocks, &content{contentBlock: ev.ContentBlock, index: ev.Index})
		return partial(ev.ContentBlock.Text, ev.ContentBlock.Thinking)
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
			return partial(d.Text, d.Thinking)
		}
	}
	return nil
}

func partial(text, thinking string) *model.LLMResponse {
	switch {
	case text != "":
		return turns.Partial(text, false)
	case thinking != "":
		return turns.Partial(thinking, true)
	}
	return nil
}
