// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/model/openai"
	"github.com/refrain-dev/refrain/model/scripted"
)

// Open returns the model with a name. getenv replaces the environment for all variables that this
// project reads; nil means os.Getenv. The genai library still looks up Google's cloud credentials
// in its own way.
//
// Errors are a [*NameError], a [*KeyError], and those of the provider's constructor or of
// [scripted.Load]. It sends no request.
func Open(ctx context.Context, name string, getenv Getenv) (model.LLM, error) {
	if getenv == nil {
		getenv = os.Getenv
	}
	p, rest, err := Find(name)
	if err != nil {
		return nil, err
	}
	if missing := p.Missing(getenv); missing != nil {
		return nil, fmt.Errorf("model %q: %w", name, &KeyError{Provider: p.Name, Variables: missing})
	}
	llm, err := p.open(ctx, rest, getenv)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	return llm, nil
}

func openAnthropic(_ context.Context, name string, getenv Getenv) (model.LLM, error) {
	return anthropic.NewModel(name, anthropic.Config{
		APIKey: getenv("ANTHROPIC_API_KEY"), BaseURL: cmp.Or(getenv("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"),
	})
}

func openOpenAI(_ context.Context, name string, getenv Getenv) (model.LLM, error) {
	return openai.NewModel(name, openai.Config{
		APIKey: getenv("OPENAI_API_KEY"), BaseURL: cmp.Or(getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1"),
		Organization: getenv("OPENAI_ORG_ID"), Project: getenv("OPENAI_PROJECT_ID"),
	})
}

func openOllama(_ context.Context, name string, getenv Getenv) (model.LLM, error) {
	base, err := ollamaURL(getenv("OLLAMA_HOST"))
	if err != nil {
		return nil, err
	}
	return openai.NewModel(name, openai.Config{BaseURL: base, APIKey: getenv("OLLAMA_API_KEY")})
}

// ollamaURL reads OLLAMA_HOST as Ollama does: a URL, or a host, a port or both.
// An address to listen on everywhere is reached on this machine.
func ollamaURL(host string) (string, error) {
	host = cmp.Or(strings.Trim(strings.TrimSpace(host), `"'`), "localhost")
	port := "" // as the scheme says
	if !strings.Contains(host, "://") {
		host, port = "http://"+host, "11434"
	}
	u, err := url.Parse(host)
	if err != nil {
		return "", fmt.Errorf("OLLAMA_HOST: %w", errors.Unwrap(err)) // without the address, which may have a password
	}
	name := u.Hostname()
	if name == "" || name == "0.0.0.0" || name == "::" {
		name = "localhost"
	}
	if port = cmp.Or(u.Port(), port); port != "" {
		u.Host = net.JoinHostPort(name, port)
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + "/v1", nil
}

// vertex reports whether Gemini is to be reached by Vertex AI, whose
// credentials are not keys.
func vertex(getenv Getenv) bool {
	return truth(getenv("GOOGLE_GENAI_USE_VERTEXAI")) || truth(getenv("GOOGLE_GENAI_USE_ENTERPRISE"))
}

func truth(s string) bool { return s == "1" || strings.EqualFold(s, "true") }

func openGemini(ctx context.Context, name string, getenv Getenv) (model.LLM, error) {
	cfg := &genai.ClientConfig{Backend: genai.BackendGeminiAPI,
		APIKey: cmp.Or(getenv("GOOGLE_API_KEY"), getenv("GEMINI_API_KEY"))}
	cfg.HTTPOptions.BaseURL = getenv("GOOGLE_GEMINI_BASE_URL")
	if vertex(getenv) {
		cfg = &genai.ClientConfig{Backend: genai.BackendVertexAI, Project: getenv("GOOGLE_CLOUD_PROJECT"),
			Location: getenv("GOOGLE_CLOUD_LOCATION")}
		if cfg.Project == "" || cfg.Location == "" {
			return nil, errors.New("gemini on Vertex AI needs GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION")
		}
	}
	return gemini.NewModel(ctx, name, cfg)
}

// openScripted is there because a nil *scripted.Model would not be a nil LLM.
func openScripted(path string) (model.LLM, error) {
	m, err := scripted.Load(path)
	if err != nil {
		return nil, err
	}
	return m, nil
}
