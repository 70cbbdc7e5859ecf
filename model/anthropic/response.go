// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// decode reads a whole answer.
func decode(ctx context.Context, x *wire.Exchange, body []byte) (*model.LLMResponse, error) {
	var in anthropic.Message
	if err := json.Unmarshal(body, &in); err != nil || !in.JSON.Content.Valid() {
		return nil, x.Garbage(ctx, body, err)
	}
	a := answer{version: in.Model, reason: in.StopReason, explanation: in.StopDetails.Explanation}
	for _, c := range in.Content {
		a.blocks = append(a.blocks, &block{
			kind: c.Type, text: []byte(c.Text), thinking: []byte(c.Thinking), signature: c.Signature, data: c.Data,
			id: c.ID, name: c.Name, args: c.Input,
		})
	}
	if in.JSON.Usage.Valid() {
		a.count(in.Usage)
	}
	return a.response(), nil
}

// answer is what a whole answer and the events of a stream come to.
type answer struct {
	blocks      []*block
	version     string
	reason      anthropic.StopReason
	explanation string // of a refusal
	usage       *tokens
}

// block is one block of content, of any kind.
type block struct {
	index     int64 // in a stream
	kind      string
	text      []byte
	thinking  []byte
	signature string
	data      string
	id, name  string
	args      []byte
}

type tokens struct{ input, cacheRead, cacheWrite, output, thinking int64 }

func (a *answer) count(u anthropic.Usage) {
	a.usage = &tokens{
		input: u.InputTokens, cacheRead: u.CacheReadInputTokens, cacheWrite: u.CacheCreationInputTokens,
		output: u.OutputTokens, thinking: u.OutputTokensDetails.ThinkingTokens,
	}
}

func (a *answer) response() *model.LLMResponse {
	resp := &model.LLMResponse{ModelVersion: a.version, UsageMetadata: a.usage.metadata()}
	resp.Content = &genai.Content{Role: genai.RoleModel}
	var malformed error
	for _, b := range a.blocks {
		part, err := b.part()
		if err != nil {
			malformed = err
		} else if part != nil {
			resp.Content.Parts = append(resp.Content.Parts, part)
		}
	}
	if a.reason == anthropic.StopReasonRefusal {
		resp.ErrorCode = "REFUSAL"
		if a.explanation == "" {
			a.explanation = "the model refused to answer"
		}
	}
	turns.Finish(resp, finishReason(a.reason), a.explanation)
	if malformed != nil {
		turns.Malformed(resp, malformed)
	}
	return resp
}

// part is nil for a block that says nothing to us.
func (b *block) part() (*genai.Part, error) {
	switch b.kind {
	case "text":
		if len(b.text) > 0 {
			return &genai.Part{Text: string(b.text)}, nil
		}
	case "thinking":
		return &genai.Part{Text: string(b.thinking), Thought: true, ThoughtSignature: []byte(signedPrefix + b.signature)}, nil
	case "redacted_thinking":
		return &genai.Part{Thought: true, ThoughtSignature: []byte(redactedPrefix + b.data)}, nil
	case "tool_use":
		return turns.Call(b.id, b.name, string(b.args))
	}
	return nil, nil
}

func finishReason(r anthropic.StopReason) genai.FinishReason {
	switch r {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonToolUse, anthropic.StopReasonStopSequence:
		return genai.FinishReasonStop
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return genai.FinishReasonMaxTokens
	case anthropic.StopReasonRefusal:
		return genai.FinishReasonSafety
	case "":
		return genai.FinishReasonUnspecified
	}
	return genai.FinishReasonOther
}

// metadata counts as genai does: the prompt's tokens include the cached ones,
// which Anthropic counts apart, and thoughts are not among the candidates'.
func (t *tokens) metadata() *genai.GenerateContentResponseUsageMetadata {
	if t == nil {
		return nil
	}
	prompt, thinking := t.input+t.cacheRead+t.cacheWrite, min(t.thinking, t.output)
	return &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount:        int32(prompt),
		CachedContentTokenCount: int32(t.cacheRead),
		CandidatesTokenCount:    int32(t.output - thinking),
		ThoughtsTokenCount:      int32(thinking),
		TotalTokenCount:         int32(prompt + t.output),
	}
}
