// SPDX-License-Identifier: Apache-2.0

// Package provider opens a model by a name such as "openai/gpt-5-mini", with keys and addresses
// from the environment.
//
//	llm, err := provider.Open(ctx, "anthropic/claude-sonnet-4-5", os.Getenv)
//
// It is not part of package model because it imports every provider, and each of them imports
// package model.
package provider

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/model"
)

// Getenv returns the value of an environment variable, or "" if it is not set, as os.Getenv does.
type Getenv = func(string) string

// Provider is a provider of models.
type Provider struct {
	// Name is the part of a model's name before the slash.
	Name string
	// About describes the provider in one line.
	About string
	// Keys are the environment variables of which one must be set; nil if none is needed.
	Keys []string
	// Variables are further environment variables that it reads.
	Variables []string

	// noKey reports whether the environment makes up for missing keys.
	noKey func(Getenv) bool
	open  func(context.Context, string, Getenv) (model.LLM, error)
}

// All returns the providers, sorted by name.
func All() []Provider {
	all := append(builtin(), registrations()...)
	slices.SortFunc(all, func(a, b Provider) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// builtin returns the providers that every program has.
func builtin() []Provider {
	return []Provider{
		{
			Name: "anthropic", About: "Anthropic's Messages API",
			Keys: []string{"ANTHROPIC_API_KEY"}, Variables: []string{"ANTHROPIC_BASE_URL"}, open: openAnthropic,
		},
		{
			Name: "gemini", About: "the Gemini API, or Vertex AI",
			Keys: []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"},
			Variables: []string{"GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_CLOUD_PROJECT",
				"GOOGLE_CLOUD_LOCATION", "GOOGLE_GEMINI_BASE_URL"},
			noKey: vertex, open: openGemini,
		},
		{
			Name: "ollama", About: "a local Ollama, by Chat Completions",
			Variables: []string{"OLLAMA_HOST", "OLLAMA_API_KEY"}, open: openOllama,
		},
		{
			Name: "openai", About: "OpenAI's Chat Completions, or any server that speaks them",
			Keys: []string{"OPENAI_API_KEY"}, Variables: []string{"OPENAI_BASE_URL", "OPENAI_ORG_ID",
				"OPENAI_PROJECT_ID"},
			noKey: func(getenv Getenv) bool { return getenv("OPENAI_BASE_URL") != "" }, open: openOpenAI,
		},
		{
			Name: "scripted", About: "answers from a script, the file after the slash",
			open: func(_ context.Context, path string, _ Getenv) (model.LLM, error) { return openScripted(path) },
		},
	}
}

// Missing returns the provider's Keys if none of them is set, and otherwise nil. A nil getenv
// means os.Getenv.
func (p Provider) Missing(getenv Getenv) []string {
	if getenv == nil {
		getenv = os.Getenv
	}
	if len(p.Keys) == 0 || slices.ContainsFunc(p.Keys, func(k string) bool { return getenv(k) != "" }) ||
		p.noKey != nil && p.noKey(getenv) {
		return nil
	}
	return p.Keys
}
