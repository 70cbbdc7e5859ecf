// SPDX-License-Identifier: Apache-2.0

// Package openai speaks Chat Completions: OpenAI's own, and that of Ollama,
// vLLM, llama.cpp, LM Studio and others, which a base URL selects.
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
	"net/url"
	"os"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

const (
	provider       = "openai"
	defaultBaseURL = "https://api.openai.com/v1"
)

// Config says where a model is and how to get at it. The zero value is OpenAI
// with what the environment says.
type Config struct {
	// APIKey is sent as a bearer token; by default that of OPENAI_API_KEY, but
	// only where BaseURL is not set, so that OpenAI's key goes to no one else.
	// OpenAI itself needs one; local servers do not.
	APIKey string
	// BaseURL is the URL that "/chat/completions" is added to, by default
	// OPENAI_BASE_URL, then OpenAI's.
	BaseURL string
	// Organization and Project are sent if they are set; OpenAI bills by them.
	Organization, Project string
	// TokensField is the name under which MaxOutputTokens is sent:
	// "max_completion_tokens", the default with OpenAI's URL, as its reasoning
	// models refuse the other; or "max_tokens", the default elsewhere, as
	// Ollama knows no other.
	TokensField string
	// HTTPClient sends the requests; by default http.DefaultClient.
	HTTPClient *http.Client
}

// NewModel returns a model that answers by Chat Completions. It retries
// nothing: whoever asks decides that, by [model.Retryable].
//
// It fails without a name, without a key for OpenAI itself, and on a base URL
// that is not an http URL. The model's failures are *model.APIError, save those
// that model.APIError names.
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
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("openai: the base URL%s is not an http URL", wire.Shown(u))
	}
	ours := u.Host == "api.openai.com"
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
	return &llm{name: name, cfg: cfg, client: client(cfg)}, nil
}

// client is made without the SDK's constructor, which reads the environment.
func client(cfg Config) openai.Client {
	opts := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(cfg.BaseURL, "/") + "/"),
		option.WithHTTPClient(wire.Client(cfg.HTTPClient)),
		option.WithMaxRetries(0),
	}
	if cfg.APIKey != "" {
		opts = append(opts, option.WithAPIKey(cfg.APIKey))
	}
	if cfg.Organization != "" {
		opts = append(opts, option.WithOrganization(cfg.Organization))
	}
	if cfg.Project != "" {
		opts = append(opts, option.WithProject(cfg.Project))
	}
	return openai.Client{Options: opts}
}

type llm struct {
	name   string
	cfg    Config
	client openai.Client
}

// Name is the model's name as the server spells it.
func (m *llm) Name() string { return m.name }

// GenerateContent asks the model once.
func (m *llm) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		params, err := m.params(req)
		if err != nil {
			yield(nil, fmt.Errorf("ask openai: %w", err))
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

func (m *llm) ask(ctx context.Context, x *wire.Exchange, params openai.ChatCompletionNewParams) (*model.LLMResponse, error) {
	body, err := x.Body(ctx, func(body *[]byte) error { return m.client.Post(ctx, "chat/completions", params, body) })
	if err != nil {
		return nil, err
	}
	return decode(ctx, x, body)
}
