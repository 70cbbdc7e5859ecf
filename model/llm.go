// SPDX-License-Identifier: Apache-2.0

// Package model says what a language model is to Refrain: something that
// answers a request with a stream of responses. Contents are
// google.golang.org/genai's types, as in ADK for Go. One package below this one
// speaks to each provider.
//
//	for resp, err := range llm.GenerateContent(ctx, req, false) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(resp.Content.Parts[0].Text)
//	}
package model

import (
	"context"
	"iter"

	"google.golang.org/genai"
)

// LLM is a language model. An implementation is safe for concurrent use.
type LLM interface {
	// Name is the model's name as its provider spells it.
	Name() string
	// GenerateContent asks the model once. With stream, it yields responses
	// marked Partial as they arrive and then one aggregated response that is
	// not; without, exactly one response. An error is the last pair.
	GenerateContent(ctx context.Context, req *LLMRequest, stream bool) iter.Seq2[*LLMResponse, error]
}

// LLMRequest is one question to a model.
type LLMRequest struct {
	// Model overrides the LLM's own name, where a provider serves several.
	Model string
	// Contents is the conversation so far, oldest first.
	Contents []*genai.Content
	// Config holds the system instruction, tools' declarations, schema and
	// sampling settings; nil means the provider's defaults.
	Config *genai.GenerateContentConfig
	// Tools holds the tools behind the declarations in Config, by name.
	Tools map[string]any `json:"-"`
}

// LLMResponse is what a model said: a whole answer, or with Partial a piece of
// one. It is embedded in session.Event.
type LLMResponse struct {
	Content           *genai.Content           `json:"content,omitempty"`
	CitationMetadata  *genai.CitationMetadata  `json:"citationMetadata,omitempty"`
	GroundingMetadata *genai.GroundingMetadata `json:"groundingMetadata,omitempty"`
	// UsageMetadata counts tokens; nil means that the provider did not say.
	UsageMetadata *genai.GenerateContentResponseUsageMetadata `json:"usageMetadata,omitempty"`
	// CustomMetadata is whatever a model's adapter or a callback adds.
	CustomMetadata map[string]any        `json:"customMetadata,omitempty"`
	LogprobsResult *genai.LogprobsResult `json:"logprobsResult,omitempty"`
	// ModelVersion is the version that answered, where the provider says it.
	ModelVersion string `json:"modelVersion,omitempty"`
	// ErrorCode and ErrorMessage describe a refusal by the provider that came
	// as an answer, such as a blocked prompt.
	ErrorCode    string             `json:"errorCode,omitempty"`
	ErrorMessage string             `json:"errorMessage,omitempty"`
	FinishReason genai.FinishReason `json:"finishReason,omitempty"`
	AvgLogprobs  float64            `json:"avgLogprobs,omitempty"`
	// Partial marks a piece of a streamed answer: shown, never stored.
	Partial      bool `json:"partial,omitempty"`
	TurnComplete bool `json:"turnComplete,omitempty"`
	Interrupted  bool `json:"interrupted,omitempty"`
}
