// SPDX-License-Identifier: Apache-2.0

// Package anthropic speaks Anthropic's Messages API.
//
//	llm, err := anthropic.NewModel("claude-sonnet-4-5", anthropic.Config{})
package anthropic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

const (
	provider       = "anthropic"
	defaultBaseURL = "https://api.anthropic.com"
)

// DefaultMaxTokens bounds an answer, thoughts included, where neither request
// nor config does: the API demands a bound.
const DefaultMaxTokens = 8192

// Config says how to get at a model. The zero value takes what it needs from
// the environment.
type Config struct {
	// APIKey is by default that of ANTHROPIC_API_KEY, but only where BaseURL is
	// not set.
	APIKey string
	// BaseURL is the URL that "/v1/messages" is added to, by default
	// ANTHROPIC_BASE_URL, then Anthropic's.
	BaseURL string
	// MaxTokens is the bound of answers whose request has none; 0 means
	// [DefaultMaxTokens].
	MaxTokens int
	// HTTPClient sends the requests; by default http.DefaultClient.
	HTTPClient *http.Client
}

// NewModel returns a model of Anthropic's. It retries nothing: whoever asks
// decides that, by [model.Retryable].
//
// It fails without a name, without a key and on a base URL that is not an http
// URL. The model's failures are *model.APIError, save those that model.APIError
// names.
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
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("anthropic: the base URL%s is not an http URL", wire.Shown(u))
	}
	if cfg.MaxTokens <= 0 {
		cfg.MaxTokens = DefaultMaxTokens
	}
	return &llm{name: name, cfg: cfg, client: anthropic.NewClient(
		option.WithoutEnvironmentDefaults(),
		option.WithBaseURL(strings.TrimSuffix(cfg.BaseURL, "/")+"/"),
		option.WithAPIKey(cfg.APIKey),
		option.WithHTTPClient(wire.Client(cfg.HTTPClient)),
		option.WithMaxRetries(0),
	)}, nil
}

type llm struct {
	name   string
	cfg    Config
	client anthropic.Client
}

// Name is the model's name as Anthropic spells it.
func (m *llm) Name() string { return m.name }

// GenerateContent asks the model once.
func (m *llm) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		params, err := m.params(req)
		if err != nil {
			yield(nil, fmt.Errorf("ask anthropic: %w", err))
			return
		}
		watched, x := wire.Watch(ctx, provider)
		if stream {
			m.stream(watched, x, params, yield)
			return
		}
		yield(m.ask(watched, x, params))
	}
}

// ask posts the request itself: the SDK's own method refuses, by its guess of
// how long an answer takes, whatever has a high bound of tokens.
func (m *llm) ask(ctx context.Context, x *wire.Exchange, params anthropic.MessageNewParams) (*model.LLMResponse, error) {
	body, err := x.Body(ctx, func(body *[]byte) error { return m.client.Post(ctx, "v1/messages", params, body) })
	if err != nil {
		return nil, err
	}
	return decode(ctx, x, body)
}
