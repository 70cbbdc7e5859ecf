// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"context"
	"errors"
	"iter"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// response reads a whole answer.
func response(ctx context.Context, x *wire.Exchange, in *genai.GenerateContentResponse,
	err error) (*model.LLMResponse, error) {
	if err != nil {
		return nil, x.Fail(ctx, err)
	}
	if err := x.Broken(ctx); err != nil {
		return nil, err
	}
	var a answer
	a.add(in)
	model.NoteAnswer(ctx, in.ResponseID, string(a.reason))
	if !a.understood() {
		return nil, x.Fail(ctx, errors.New("it has neither candidates nor a block reason"))
	}
	return a.response(), nil
}

// stream shows the pieces of a stream and yields the whole.
func (m *llm) stream(ctx context.Context, x *wire.Exchange, chunks iter.Seq2[*genai.GenerateContentResponse, error],
	yield func(*model.LLMResponse, error) bool) {
	var a answer
	for in, err := range chunks {
		if err != nil {
			yield(nil, midstream(ctx, x, err))
			return
		}
		pieces := a.add(in)
		model.NoteAnswer(ctx, in.ResponseID, string(a.reason))
		for _, piece := range pieces {
			if !yield(piece, nil) {
				return
			}
		}
	}
	switch {
	case x.Broken(ctx) != nil || a.reason == "" && a.blocked == nil:
		yield(nil, x.Cut(ctx))
	default:
		yield(a.response(), nil)
	}
}

// midstream tells an error that Google reported inside a stream from an error
// status before it and from garbage.
func midstream(ctx context.Context, x *wire.Exchange, err error) error {
	if e, ok := errors.AsType[genai.APIError](err); ok && x.Broken(ctx) == nil && x.OK() {
		return x.Reported(e.Code, e.Status, e.Message)
	}
	if x.OK() {
		// What genai could not read stands in its error; the piece may be far
		// into the stream.
		return x.Garbage(ctx, []byte(err.Error()), nil)
	}
	return x.Fail(ctx, err)
}

// answer collects a whole answer, or the chunks of a stream.
type answer struct {
	parts   turns.Answer
	last    *genai.Candidate // with what is said once: citations, grounding, log probabilities
	reason  genai.FinishReason
	message string
	blocked *genai.GenerateContentResponsePromptFeedback
	usage   *genai.GenerateContentResponseUsageMetadata
	version string
}

func (a *answer) understood() bool { return a.last != nil || a.blocked != nil }

// add processes an answer or a chunk and returns the responses to show.
func (a *answer) add(in *genai.GenerateContentResponse) []*model.LLMResponse {
	if in.ModelVersion != "" {
		a.version = in.ModelVersion
	}
	if in.UsageMetadata != nil {
		a.usage = in.UsageMetadata // a stream's counts are totals
	}
	if f := in.PromptFeedback; f != nil && f.BlockReason != "" {
		a.blocked = f
	}
	if len(in.Candidates) == 0 || in.Candidates[0] == nil {
		return nil
	}
	c := in.Candidates[0]
	if a.last == nil {
		a.last = &genai.Candidate{}
	}
	a.keep(c)
	if c.Content == nil {
		return nil
	}
	var shown []*model.LLMResponse
	for _, p := range c.Content.Parts {
		switch {
		case p == nil:
		case onlyText(p):
			a.parts.Text(p.Text, p.Thought)
			if len(p.ThoughtSignature) > 0 {
				a.parts.Sign(p.ThoughtSignature, p.Thought)
			}
			if p.Text != "" {
				shown = append(shown, turns.Partial(p.Text, p.Thought))
			}
		case p.FunctionCall != nil:
			a.call(p)
		default:
			a.parts.Part(p)
		}
	}
	if len(shown) == 0 || c.FinishReason == "" || c.FinishReason == genai.FinishReasonUnspecified {
		return shown
	}
	// The last piece says that it is the last, and what is known at the end, as ADK's does.
	last := shown[len(shown)-1]
	last.TurnComplete, last.FinishReason, last.UsageMetadata, last.ModelVersion = true, a.reason, a.usage, a.version
	last.CitationMetadata, last.GroundingMetadata = a.last.CitationMetadata, a.last.GroundingMetadata
	last.LogprobsResult, last.AvgLogprobs = a.last.LogprobsResult, a.last.AvgLogprobs
	return shown
}

// keep remembers the fields of a candidate other than its content.
func (a *answer) keep(c *genai.Candidate) {
	if c.FinishReason != "" && c.FinishReason != genai.FinishReasonUnspecified {
		a.reason, a.message = c.FinishReason, c.FinishMessage
	}
	if c.CitationMetadata != nil {
		a.last.CitationMetadata = c.CitationMetadata
	}
	if c.GroundingMetadata != nil {
		a.last.GroundingMetadata = c.GroundingMetadata
	}
	if c.LogprobsResult != nil {
		a.last.LogprobsResult = c.LogprobsResult
	}
	if c.AvgLogprobs != 0 {
		a.last.AvgLogprobs = c.AvgLogprobs
	}
}

// call adds a function call. The Gemini API gives most of them no ID; an agent gives its own, and does not send it back.
func (a *answer) call(p *genai.Part) {
	own, fc := *p, *p.FunctionCall
	if fc.Args == nil {
		fc.Args = map[string]any{}
	}
	own.FunctionCall = &fc
	a.parts.Part(&own)
}

// onlyText reports whether a part has nothing but a text, a thought or the
// signature of one in it.
func onlyText(p *genai.Part) bool {
	rest := *p
	rest.Text, rest.ThoughtSignature = "", nil
	return turns.Empty(&rest)
}

func (a *answer) response() *model.LLMResponse {
	resp := &model.LLMResponse{ModelVersion: a.version, UsageMetadata: a.usage, Content: a.parts.Content()}
	if c := a.last; c != nil {
		resp.CitationMetadata, resp.GroundingMetadata = c.CitationMetadata, c.GroundingMetadata
		resp.LogprobsResult, resp.AvgLogprobs = c.LogprobsResult, c.AvgLogprobs
	}
	if a.blocked != nil {
		resp.ErrorCode, resp.ErrorMessage = string(a.blocked.BlockReason), a.blocked.BlockReasonMessage
		if resp.ErrorMessage == "" {
			resp.ErrorMessage = "the prompt was blocked: " + resp.ErrorCode
		}
	}
	turns.Finish(resp, a.reason, a.message)
	return resp
}
