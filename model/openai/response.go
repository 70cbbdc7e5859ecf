// SPDX-License-Identifier: Apache-2.0

package openai

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
	var in chatAnswer
	err := wire.Unmarshal(body, &in)
	switch {
	case in.failed():
		return nil, x.Problem(body)
	case err != nil || len(in.Choices) == 0:
		return nil, x.Garbage(ctx, body, err)
	}
	reason, said := in.Choices[0].FinishReason, in.Choices[0].Message
	model.NoteAnswer(ctx, in.ID, reason)
	a := answer{reason: reason, version: in.Model, refusal: string(said.Refusal), usage: in.Usage.metadata()}
	a.parts.Text(said.thought(), true)
	a.parts.Text(string(said.Content), false)
	for _, c := range said.ToolCalls {
		a.calls = append(a.calls, &call{id: c.ID, name: c.Function.Name, args: []byte(c.Function.Arguments)})
	}
	return a.response(), nil
}

// answer collects a whole answer, or the pieces of a stream.
type answer struct {
	parts   turns.Answer
	calls   []*call
	refusal string
	reason  string
	version string
	usage   *genai.GenerateContentResponseUsageMetadata
}

type call struct {
	index    wire.Count // in a stream
	id, name string
	args     []byte
}

func (a *answer) response() *model.LLMResponse {
	resp := &model.LLMResponse{ModelVersion: a.version, UsageMetadata: a.usage}
	a.parts.Text(a.refusal, false)
	var malformed error
	for _, c := range a.calls {
		part, err := turns.Call(c.id, c.name, string(c.args))
		if err != nil {
			malformed = err
			continue
		}
		a.parts.Part(part)
	}
	resp.Content = a.parts.Content()
	if a.refusal != "" {
		resp.ErrorCode = "REFUSAL"
		turns.Finish(resp, genai.FinishReasonSafety, a.refusal)
		return resp
	}
	turns.Finish(resp, cmp.Or(finishReasons[a.reason], genai.FinishReasonOther), "")
	if malformed != nil {
		turns.Malformed(resp, malformed)
	}
	return resp
}

// finishReasons are the reasons that are known; any other is [genai.FinishReasonOther].
var finishReasons = map[string]genai.FinishReason{
	"stop": genai.FinishReasonStop, "tool_calls": genai.FinishReasonStop, "function_call": genai.FinishReasonStop,
	"length": genai.FinishReasonMaxTokens, "content_filter": genai.FinishReasonSafety, "": genai.FinishReasonUnspecified,
}

// metadata counts as genai does: thoughts are not among the candidates' tokens.
// It is nil if the server did not count.
func (t *tokens) metadata() *genai.GenerateContentResponseUsageMetadata {
	if t == nil {
		return nil
	}
	thoughts := min(t.CompletionDetails.Reasoning, t.Completion)
	u := &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount:        int32(t.Prompt),
		CachedContentTokenCount: int32(t.PromptDetails.Cached),
		CandidatesTokenCount:    int32(t.Completion - thoughts),
		ThoughtsTokenCount:      int32(thoughts),
		TotalTokenCount:         int32(t.Total),
	}
	model.SetCacheWrites(u, int64(t.PromptDetails.Written), 0)
	return u
}
