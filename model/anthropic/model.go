// SPDX-License-Identifier: Apache-2.0

// Package anthropic provides models with Anthropic's Messages API.
//
//	llm, err := anthropic.NewModel("claude-sonnet-4-5", anthropic.Config{})
package anthropic

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
	provider       = "anthropic"
	defaultBaseURL = "https://api.anthropic.com"
)

// DefaultMaxTokens limits an answer, thoughts included, if neither the request nor the config does,
// as the API requires a limit.
const DefaultMaxTokens = 8192

// Config describes the access to a model. The zero value takes its settings from the environment.
type Config struct {
	// APIKey is the API key; the default is ANTHROPIC_API_KEY, but only if BaseURL is not set.
	APIKey string
	// BaseURL is the URL to which "/v1/messages" is added. The default is ANTHROPIC_BASE_URL, then
	// Anthropic's URL.
	BaseURL string
	// MaxTokens limits the answer to a request that sets no limit; 0 means [DefaultMaxTokens].
	MaxTokens int
	// HTTPClient sends the requests; the default is http.DefaultClient.
	HTTPClient *http.Client
}

// NewModel returns a model of Anthropic. The model does not repeat failed requests; the caller
// decides that, by [model.Retryable].
//
// It fails without a name, without a key and on a base URL that is not an http URL. The model's
// failures are [*model.APIError], with the exceptions that [model.APIError] names.
func NewModel(name string, cfg Config) (model.LLM, error) {
	if name == "" {
		return nil, errors.New("anthropic: a model needs a name")
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = os.Getenv("ANTHROPIC_BASE_URL")
		if cfg.APIKey == "" {
			cfg.APIKey = os.Getenv("ANTHROPIC_API_KEY")
		}
	}
	if cfg.APIKey == "" {
		return nil, errors.New("anthropic: no API key: set ANTHROPIC_API_KEY")
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = defaultBaseURL
	}
	header := make(http.Header)
	header.Set("X-Api-Key", cfg.APIKey)
	header.Set("Anthropic-Version", apiVersion)
	endpoint, err := wire.NewEndpoint(cfg.BaseURL, "v1/messages", header, cfg.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	if cfg.MaxTokens <= 0 {
		cfg.MaxTokens = DefaultMaxTokens
	}
	return &llm{name: name, cfg: cfg, endpoint: endpoint}, nil
}

type llm struct {
	name     string
	cfg      Config
	endpoint *wire.Endpoint
	caching  wire.Caching
}

// Name returns the model's name as Anthropic spells it.
func (m *llm) Name() string { return m.name }

// Provider returns OpenTelemetry's name of the provider; see observe.ProviderOf.
func (*llm) Provider() string { return provider }

// GenerateContent sends the request once.
func (m *llm) GenerateContent(ctx context.Context, req *model.LLMRequest,
	stream bool) iter.Seq2[*model.LLMResponse, error] {
	return wire.Format[*apiRequest]{Provider: provider, Request: m.request, Decode: decode, Stream: streaming,
		Asks: (*apiRequest).marked, Caching: &m.caching}.
		Ask(ctx, m.endpoint, req, stream)
}
