// SPDX-License-Identifier: Apache-2.0

// Package gemini provides models with the Gemini API and Vertex AI, through
// google.golang.org/genai. Its constructor is that of ADK for Go.
//
//	llm, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{APIKey: os.Getenv("GOOGLE_API_KEY")})
package gemini

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

const provider = "gemini"

// NewModel returns a Gemini model. The config may be nil. Settings that it lacks come from the
// environment: GOOGLE_API_KEY or GEMINI_API_KEY; or, with GOOGLE_GENAI_USE_VERTEXAI,
// GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION. The model does not repeat failed requests; the
// caller decides that, by [model.Retryable]. Retry options in the config are ignored.
//
// It fails without a name and without credentials. The model's failures are [*model.APIError], with
// the exceptions that [model.APIError] names.
func NewModel(ctx context.Context, modelName string, cfg *genai.ClientConfig) (model.LLM, error) {
	if modelName == "" {
		return nil, errors.New("gemini: a model needs a name")
	}
	var own genai.ClientConfig
	if cfg != nil {
		own = *cfg
	}
	own.HTTPOptions.RetryOptions = nil
	client, err := genai.NewClient(ctx, &own)
	if err != nil {
		return nil, missing(&own, err)
	}
	// Anew, around the HTTP client that genai made: for Vertex it carries the
	// credentials.
	own = client.ClientConfig()
	own.HTTPClient = wire.Client(own.HTTPClient)
	if client, err = genai.NewClient(ctx, &own); err != nil {
		return nil, fmt.Errorf("gemini: %w", err)
	}
	return &llm{modelName, client.Models.GenerateContent, client.Models.GenerateContentStream}, nil
}

// missing returns an error that names what a config lacks. It replaces genai's error, whose text
// may be the whole config with its secrets.
func missing(cfg *genai.ClientConfig, err error) error {
	text, _, whole := strings.Cut(err.Error(), ". ClientConfig: ")
	switch {
	case !whole:
		return fmt.Errorf("gemini: %w", err)
	case cfg.APIKey != "":
		return fmt.Errorf("gemini: %s", text)
	case cfg.Backend == genai.BackendVertexAI:
		return fmt.Errorf("gemini: %s: set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or Project and Location "+
			"in the config", text)
	case cfg.Project != "" || cfg.Location != "":
		return fmt.Errorf("gemini: %s: set GOOGLE_GENAI_USE_VERTEXAI=true, or Backend in the config, for Vertex AI",
			text)
	}
	return errors.New("gemini: there is no API key: set GOOGLE_API_KEY or GEMINI_API_KEY, or APIKey in the config")
}

// llm has two methods of genai's client and not the client: whoever links the package would otherwise get every
// method of every service that the client has, because a value behind an interface keeps its methods.
type llm struct {
	name   string
	ask    func(context.Context, string, []*genai.Content, *genai.GenerateContentConfig) (*genai.GenerateContentResponse, error)
	chunks func(context.Context, string, []*genai.Content, *genai.GenerateContentConfig) iter.Seq2[*genai.GenerateContentResponse, error]
}

// Name returns the model's name as Google spells it.
func (m *llm) Name() string { return m.name }

// Provider returns OpenTelemetry's name of the provider; see observe.ProviderOf.
func (*llm) Provider() string { return "gcp.gemini" }

// GenerateContent sends the request once.
func (m *llm) GenerateContent(ctx context.Context, req *model.LLMRequest,
	stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		name := m.name
		if req.Model != "" {
			name = req.Model
		}
		contents, cfg := contents(req.Contents), config(req.Config)
		watched, x := wire.Watch(ctx, provider)
		if stream {
			m.stream(watched, x, m.chunks(watched, name, contents, cfg), yield)
			return
		}
		in, err := m.ask(watched, name, contents, cfg)
		yield(response(watched, x, in, err))
	}
}

// config is a copy: genai writes into the one that it is given.
func config(cfg *genai.GenerateContentConfig) *genai.GenerateContentConfig {
	own := genai.GenerateContentConfig{}
	if cfg != nil {
		own = *cfg
	}
	if own.HTTPOptions != nil {
		h := *own.HTTPOptions
		h.Headers = h.Headers.Clone()
		h.RetryOptions = nil
		own.HTTPOptions = &h
	}
	if own.ResponseMIMEType == "" && (own.ResponseSchema != nil || own.ResponseJsonSchema != nil) {
		own.ResponseMIMEType = "application/json" // the API wants both
	}
	own.AutomaticContinuation = new(false) // it would be a second owner of retries
	return &own
}

// contents drops empty contents and thoughts that another provider signed, because Gemini cannot
// read them. Anthropic's adapter marks its signatures.
func contents(list []*genai.Content) []*genai.Content {
	var out []*genai.Content
	for _, c := range list {
		if c == nil {
			continue
		}
		own := &genai.Content{Role: c.Role}
		if own.Role == "" {
			own.Role = genai.RoleUser
		}
		for _, p := range c.Parts {
			if p == nil || turns.Empty(p) || turns.Foreign(p, provider) {
				continue
			}
			own.Parts = append(own.Parts, p)
		}
		if len(own.Parts) > 0 {
			out = append(out, own)
		}
	}
	return turns.LastWord(out)
}
