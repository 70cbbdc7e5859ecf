// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"cmp"
	"context"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// decode reads a whole answer.
func decode(ctx context.Context, x *wire.Exchange, body []byte) (*model.LLMResponse, error) {
	var in apiAnswer
	if err := wire.Unmarshal(body, &in); err != nil || in.Content == nil {
		return nil, x.Garbage(ctx, body, err)
	}
	model.NoteAnswer(ctx, in.ID, in.StopReason)
	a := answer{version: in.Model, reason: in.StopReason, explanation: in.StopDetails.Explanation}
	for _, c := range in.Content {
		a.blocks = append(a.blocks, &content{contentBlock: c})
	}
	a.count(in.Usage)
	return a.response(), nil
}

// answer collects a whole answer, or the events of a stream.
type answer struct {
	blocks      []*content
	version     string
	reason      string
	explanation string // of a refusal
	usage       *tokens
}

// content is a block with the additions of a stream.
type content struct {
	contentBlock
	index          wire.Count // in a stream
	text, thinking []byte
	args           []byte // instead of the input
}

type tokens struct{ input, cacheRead, cacheWrite, hour, output, thinking wire.Count }

// count sets counts, which are totals. Missing counts keep their value.
func (a *answer) count(u *usage) {
	if u == nil || u.Input == nil && u.Output == nil {
		return
	}
	if a.usage == nil {
		a.usage = &tokens{}
	}
	for to, from := range map[*wire.Count]*wire.Count{
		&a.usage.input: u.Input, &a.usage.cacheRead: u.CacheRead, &a.usage.cacheWrite: u.CacheWrite,
		&a.usage.hour: u.Written.Hour, &a.usage.output: u.Output, &a.usage.thinking: u.Details.Thinking,
	} {
		if from != nil {
			*to = *from
		}
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
	if a.reason == "refusal" {
		resp.ErrorCode = "REFUSAL"
		if a.explanation == "" {
			a.explanation = "the model refused to answer"
		}
	}
	turns.Finish(resp, cmp.Or(finishReasons[a.reason], genai.FinishReasonOther), a.explanation)
	if malformed != nil {
		turns.Malformed(resp, malformed)
	}
	return resp
}

// part is nil for a block that says nothing to us.
func (b *content) part() (*genai.Part, error) {
	switch b.Type {
	case "text":
		if text := b.Text + string(b.text); text != "" {
			return &genai.Part{Text: text}, nil
		}
	case "thinking":
		thought := b.Thinking + string(b.thinking)
		return &genai.Part{Text: thought, Thought: true, ThoughtSignature: []byte(signedPrefix + b.Signature)}, nil
	case "redacted_thinking":
		return &genai.Part{Thought: true, ThoughtSignature: []byte(redactedPrefix + b.Data)}, nil
	case "tool_use":
		args := b.args
		if len(args) == 0 {
			args = b.Input
		}
		return turns.Call(b.ID, b.Name, string(args))
	}
	return nil, nil
}

// finishReasons are the reasons that are known; any other is [genai.FinishReasonOther].
var finishReasons = map[string]genai.FinishReason{
	"end_turn": genai.FinishReasonStop, "tool_use": genai.FinishReasonStop, "stop_sequence": genai.FinishReasonStop,
	"max_tokens": genai.FinishReasonMaxTokens, "model_context_window_exceeded": genai.FinishReasonMaxTokens,
	"refusal": genai.FinishReasonSafety, "": genai.FinishReasonUnspecified,
}

// metadata counts as genai does: the prompt's tokens include the cached ones,
// which Anthropic counts apart, and thoughts are not among the candidates'. What
// was written for an hour is part of what was written.
func (t *tokens) metadata() *genai.GenerateContentResponseUsageMetadata {
	if t == nil {
		return nil
	}
	prompt, thinking := t.input+t.cacheRead+t.cacheWrite, min(t.thinking, t.output)
	u := &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount:        int32(prompt),
		CachedContentTokenCount: int32(t.cacheRead),
		CandidatesTokenCount:    int32(t.output - thinking),
		ThoughtsTokenCount:      int32(thinking),
		TotalTokenCount:         int32(prompt + t.output),
	}
	hour := min(t.hour, t.cacheWrite)
	model.SetCacheWrites(u, int64(t.cacheWrite-hour), int64(hour))
	return u
}
