// SPDX-License-Identifier: Apache-2.0

// Package openaimodel has ADK's names for the models of package openai.
//
//	llm, err := openaimodel.NewModel(ctx, "gpt-5-mini", &openaimodel.ClientConfig{APIKey: os.Getenv("OPENAI_API_KEY")})
//
// The models speak Chat Completions, as OpenAI and most compatible servers do; ADK's speak the Responses API.
package openaimodel

import (
	"context"
	"net/http"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/openai"
)

// ClientConfig describes the access to a model. Empty fields have the defaults of [openai.Config].
type ClientConfig struct {
	// APIKey is the key; the default is OPENAI_API_KEY, but only if BaseURL is not set.
	APIKey string
	// BaseURL is the address of a compatible server; the default is OPENAI_BASE_URL, then OpenAI's.
	BaseURL string
	// HTTPClient sends the requests; the default is http.DefaultClient.
	HTTPClient *http.Client
}

// NewModel returns a model; cfg may be nil. Errors are those of [openai.NewModel]. The context is not used.
func NewModel(_ context.Context, name string, cfg *ClientConfig) (model.LLM, error) {
	if cfg == nil {
		cfg = new(ClientConfig)
	}
	return openai.NewModel(name, openai.Config{APIKey: cfg.APIKey, BaseURL: cfg.BaseURL, HTTPClient: cfg.HTTPClient})
}
