// SPDX-License-Identifier: Apache-2.0

// Package openai provides models with the Chat Completions API: those of OpenAI, and with a base
// URL those of Ollama, vLLM, llama.cpp, LM Studio and others.
//
//	llm, err := openai.NewModel("gpt-5-mini", openai.Config{APIKey: os.Getenv("OPENAI_API_KEY")})
//
//	local, err := openai.NewModel("qwen3", openai.Config{BaseURL: "http://localhost:11434/v1"})
package openai

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

const (
	provider       = "openai"
	defaultBaseURL = "https://api.openai.com/v1"
)

// Config describes the access to a model. The zero value means OpenAI, with settings from the
// environment.
type Config struct {
	// APIKey is sent as a bearer token. The default is OPENAI_API_KEY, but only if BaseURL is not
	// set, so that OpenAI's key is not sent to other servers. OpenAI needs a key; local servers do
	// not.
	APIKey string
	// BaseURL is the URL to which "/chat/completions" is added. The default is OPENAI_BASE_URL,
	// then OpenAI's URL.
	BaseURL string
	// Organization and Project are sent if they are set; OpenAI bills them.
	Organization, Project string
	// TokensField is the field in which MaxOutputTokens is sent: "max_completion_tokens", the
	// default with OpenAI's URL, as its reasoning models require it; or "max_tokens", the default
	// for other servers, as Ollama requires it.
	TokensField string
	// HTTPClient sends the requests; the default is http.DefaultClient.
	HTTPClient *http.Client
}

// NewModel returns a model with the Chat Completions API. The model does not repeat failed
// requests; the caller decides that, by [model.Retryable].
//
// It fails without a name, without a key for OpenAI itself, and on a base URL that is not an http
// URL. The model's failures are [*model.APIError], with the exceptions that [model.APIError] names.
func NewModel(name string, cfg Config) (model.LLM, error) {
	if name == "" {
		return nil, errors.New("openai: a model needs a name")
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = os.Getenv("OPENAI_BASE_URL")
		if cfg.APIKey == "" {
			cfg.APIKey = os.Getenv("OPENAI_API_KEY")
		}
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = defaultBaseURL
	}
	endpoint, err := wire.NewEndpoint(cfg.BaseURL, "chat/completions", header(cfg), cfg.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	ours := endpoint.Host() == "api.openai.com"
	if ours && cfg.APIKey == "" {
		return nil, errors.New("openai: no API key: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs none")
	}
	switch cfg.TokensField {
	case "":
		cfg.TokensField = "max_tokens"
		if ours {
			cfg.TokensField = "max_completion_tokens"
		}
	case "max_tokens", "max_completion_tokens":
	default:
		return nil, fmt.Errorf("openai: tokens field %q: want max_tokens or max_completion_tokens", cfg.TokensField)
	}
	return &llm{name: name, cfg: cfg, endpoint: endpoint}, nil
}

// header returns the headers of every request.
func header(cfg Config) http.Header {
	h := make(http.Header)
	for name, value := range map[string]string{"OpenAI-Organization": cfg.Organization, "OpenAI-Project": cfg.Project} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if cfg.APIKey != "" {
		h.Set("Authorization", "Bearer "+cfg.APIKey)
	}
	return h
}

type llm struct {
	name     string
	cfg      Config
	endpoint *wire.Endpoint
	caching  wire.Caching
}

// Name returns the model's name as the server spells it.
func (m *llm) Name() string { return m.name }

// Provider returns OpenTelemetry's name of the provider; see observe.ProviderOf.
func (*llm) Provider() string { return provider }

// GenerateContent sends the request once.
func (m *llm) GenerateContent(ctx context.Context, req *model.LLMRequest,
	stream bool) iter.Seq2[*model.LLMResponse, error] {
	return wire.Format[*chatRequest]{Provider: provider, Request: m.request, Decode: decode, Stream: streaming,
		Asks: (*chatRequest).asksForCache, Caching: &m.caching}.
		Ask(ctx, m.endpoint, req, stream)
}
