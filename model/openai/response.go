// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// decode reads a whole answer.
func decode(ctx context.Context, x *wire.Exchange, body []byte) (*model.LLMResponse, error) {
	var in openai.ChatCompletion
	if err := json.Unmarshal(body, &in); err != nil || len(in.Choices) == 0 {
		return nil, x.Garbage(ctx, body, err)
	}
	choice := in.Choices[0]
	a := answer{reason: choice.FinishReason, version: in.Model, refusal: choice.Message.Refusal}
	a.parts.Text(reasoning(choice.Message.JSON.ExtraFields), true)
	a.parts.Text(choice.Message.Content, false)
	for _, c := range choice.Message.ToolCalls {
		a.calls = append(a.calls, &call{id: c.ID, name: c.Function.Name, args: []byte(c.Function.Arguments)})
	}
	if in.JSON.Usage.Valid() {
		a.usage = usage(in.Usage)
	}
	return a.response(), nil
}

// answer is what a whole answer and the pieces of a stream come to.
type answer struct {
	parts   turns.Answer
	calls   []*call
	refusal string
	reason  string
	version string
	usage   *genai.GenerateContentResponseUsageMetadata
}

type call struct {
	index    int64 // in a stream
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
	turns.Finish(resp, finishReason(a.reason), "")
	if malformed != nil {
		turns.Malformed(resp, malformed)
	}
	return resp
}

func finishReason(s string) genai.FinishReason {
	switch s {
	case "stop", "tool_calls", "function_call":
		return genai.FinishReasonStop
	case "length":
		return genai.FinishReasonMaxTokens
	case "content_filter":
		return genai.FinishReasonSafety
	case "":
		return genai.FinishReasonUnspecified
	}
	return genai.FinishReasonOther
}

// usage counts as genai does: thoughts are not among the candidates' tokens.
func usage(u openai.CompletionUsage) *genai.GenerateContentResponseUsageMetadata {
	thoughts := min(u.CompletionTokensDetails.ReasoningTokens, u.CompletionTokens)
	return &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount:        int32(u.PromptTokens),
		CachedContentTokenCount: int32(u.PromptTokensDetails.CachedTokens),
		CandidatesTokenCount:    int32(u.CompletionTokens - thoughts),
		ThoughtsTokenCount:      int32(thoughts),
		TotalTokenCount:         int32(u.TotalTokens),
	}
}

// reasoning reads the thoughts that servers other than OpenAI's show, under the
// names that they use: DeepSeek's and llama.cpp's, then Ollama's and vLLM's.
func reasoning(extra map[string]respjson.Field) string {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var text string
		if f, ok := extra[name]; ok && json.Unmarshal([]byte(f.Raw()), &text) == nil && text != "" {
			return text
		}
	}
	return ""
}
