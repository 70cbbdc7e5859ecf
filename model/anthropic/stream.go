// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// stream asks for a stream, shows its pieces and yields the whole. The SDK's
// own stream is not used, as it takes a cut for an end and keeps nothing of
// what it does not understand.
func (m *llm) stream(ctx context.Context, x *wire.Exchange, params anthropic.MessageNewParams, yield func(*model.LLMResponse, error) bool) {
	var resp *http.Response
	if err := m.client.Post(ctx, "v1/messages", params, &resp, option.WithJSONSet("stream", true), option.WithHeader("Accept", "text/event-stream")); err != nil {
		yield(nil, x.Fail(ctx, err))
		return
	}
	events := ssestream.NewDecoder(resp)
	defer events.Close()
	var a answer
	for done := false; !done && events.Next(); {
		data := bytes.TrimSpace(events.Event().Data)
		if len(data) == 0 {
			continue
		}
		var ev anthropic.MessageStreamEventUnion
		if err := json.Unmarshal(data, &ev); err != nil || ev.Type == "" {
			yield(nil, x.Garbage(ctx, data, err))
			return
		}
		switch ev.Type {
		case "error":
			yield(nil, x.Problem(data))
			return
		case "message_stop":
			done = true
		}
		if piece := a.add(ev); piece != nil && !yield(piece, nil) {
			return
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

// add takes in one event and returns what it shows, if it shows anything. Kinds
// of events that are not known are passed over, as the API's rules demand.
func (a *answer) add(ev anthropic.MessageStreamEventUnion) *model.LLMResponse {
	switch ev.Type {
	case "message_start":
		a.version = ev.Message.Model
		if ev.Message.JSON.Usage.Valid() {
			a.count(ev.Message.Usage)
		}
	case "content_block_start":
		c := ev.ContentBlock
		a.blocks = append(a.blocks, &block{
			index: ev.Index, kind: c.Type, text: []byte(c.Text), thinking: []byte(c.Thinking), signature: c.Signature,
			data: c.Data, id: c.ID, name: c.Name,
		})
		return shown(c.Text, c.Thinking)
	case "content_block_delta":
		return a.delta(ev.Index, ev.Delta)
	case "message_delta":
		a.reason = ev.Delta.StopReason
		a.explanation = ev.Delta.StopDetails.Explanation
		a.recount(ev.Usage)
	}
	return nil
}

func (a *answer) delta(index int64, d anthropic.MessageStreamEventUnionDelta) *model.LLMResponse {
	for _, b := range a.blocks {
		if b.index == index {
			b.text = append(b.text, d.Text...)
			b.thinking = append(b.thinking, d.Thinking...)
			b.args = append(b.args, d.PartialJSON...)
			b.signature += d.Signature
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

// recount takes in the counts at a stream's end, which are totals; those that
// are missing stay as they were at its start.
func (a *answer) recount(u anthropic.MessageDeltaUsage) {
	if !u.JSON.OutputTokens.Valid() && !u.JSON.InputTokens.Valid() {
		return
	}
	if a.usage == nil {
		a.usage = &tokens{}
	}
	for _, c := range []struct {
		known bool
		from  int64
		to    *int64
	}{
		{u.JSON.InputTokens.Valid(), u.InputTokens, &a.usage.input},
		{u.JSON.CacheReadInputTokens.Valid(), u.CacheReadInputTokens, &a.usage.cacheRead},
		{u.JSON.CacheCreationInputTokens.Valid(), u.CacheCreationInputTokens, &a.usage.cacheWrite},
		{u.JSON.OutputTokens.Valid(), u.OutputTokens, &a.usage.output},
		{u.JSON.OutputTokensDetails.Valid(), u.OutputTokensDetails.ThinkingTokens, &a.usage.thinking},
	} {
		if c.known {
			*c.to = c.from
		}
	}
}
