// SPDX-License-Identifier: Apache-2.0

// Package model defines the interface of a language model, which answers a request with a stream of
// responses. Contents are google.golang.org/genai's types, as in ADK for Go. Each provider has a
// package below this one.
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

// LLM is a language model. An implementation must be safe for concurrent use.
type LLM interface {
	// Name returns the provider's name of the model.
	Name() string
	// GenerateContent sends one request. With stream, it yields responses marked Partial as they
	// arrive, and then one response with the whole answer, which is not Partial; without, it yields
	// exactly one response. An error is the last pair.
	GenerateContent(ctx context.Context, req *LLMRequest, stream bool) iter.Seq2[*LLMResponse, error]
}

// LLMRequest is one request to a model.
type LLMRequest struct {
	// Model overrides the LLM's own name, for a provider that serves several models.
	Model string
	// Contents is the conversation so far, oldest first.
	Contents []*genai.Content
	// Config holds the system instruction, tools' declarations, schema and
	// sampling settings; nil means the provider's defaults.
	Config *genai.GenerateContentConfig
	// Tools holds the tools behind the declarations in Config, by name.
	Tools map[string]any `json:"-"`
}

// LLMResponse is a model's answer, or with Partial a piece of it. It is embedded in session.Event.
type LLMResponse struct {
	Content           *genai.Content           `json:"content,omitempty"`
	CitationMetadata  *genai.CitationMetadata  `json:"citationMetadata,omitempty"`
	GroundingMetadata *genai.GroundingMetadata `json:"groundingMetadata,omitempty"`
	// UsageMetadata counts tokens; nil means that the provider did not report them.
	UsageMetadata *genai.GenerateContentResponseUsageMetadata `json:"usageMetadata,omitempty"`
	// CustomMetadata is further data from the model's package or from callbacks.
	CustomMetadata map[string]any        `json:"customMetadata,omitempty"`
	LogprobsResult *genai.LogprobsResult `json:"logprobsResult,omitempty"`
	// ModelVersion is the version that answered, if the provider reports it.
	ModelVersion string `json:"modelVersion,omitempty"`
	// ErrorCode and ErrorMessage describe a refusal that the provider sent as an answer, such as a
	// blocked prompt.
	ErrorCode    string             `json:"errorCode,omitempty"`
	ErrorMessage string             `json:"errorMessage,omitempty"`
	FinishReason genai.FinishReason `json:"finishReason,omitempty"`
	AvgLogprobs  float64            `json:"avgLogprobs,omitempty"`
	// Partial marks a piece of a streamed answer, which is shown but never stored.
	Partial      bool `json:"partial,omitempty"`
	TurnComplete bool `json:"turnComplete,omitempty"`
	Interrupted  bool `json:"interrupted,omitempty"`
}
