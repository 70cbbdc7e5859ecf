// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"testing"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/model/scripted"
)

// local is a provider on this machine.
type local struct {
	server *modeltest.Server // nil for the scripted model
	open   func(context.Context, string) (model.LLM, error)
}

// providers start a model of every kind that answers by the same script. Names
// are those of each provider, without it.
func providers(t *testing.T, script scripted.Script) map[string]local {
	t.Helper()
	all := make(map[string]local)
	for name, start := range map[string]func(testing.TB, scripted.Script) *modeltest.Server{
		"openai": modeltest.OpenAIServer, "anthropic": modeltest.AnthropicServer, "gemini": modeltest.GeminiServer,
	} {
		srv := start(t, script)
		getenv := environment(name, srv)
		all[name] = local{srv, func(ctx context.Context, m string) (model.LLM, error) { return provider.Open(ctx, name+"/"+m, getenv) }}
	}
	direct, err := scripted.New(script)
	if err != nil {
		t.Fatal(err)
	}
	all["scripted"] = local{nil, func(context.Context, string) (model.LLM, error) { return direct, nil }}
	return all
}

// environment leads a provider to a server.
func environment(name string, srv *modeltest.Server) func(string) string {
	vars := map[string]map[string]string{
		"openai":    {"OPENAI_BASE_URL": srv.BaseURL, "OPENAI_API_KEY": "key"},
		"anthropic": {"ANTHROPIC_BASE_URL": srv.BaseURL, "ANTHROPIC_API_KEY": "key"},
		"gemini":    {"GOOGLE_GEMINI_BASE_URL": srv.BaseURL, "GOOGLE_API_KEY": "key"},
	}[name]
	return func(key string) string { return vars[key] }
}
