// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/scripted"
)

func open(t testing.TB, baseURL string) model.LLM {
	t.Helper()
	llm, err := gemini.NewModel(t.Context(), "gemini-2.5-flash", &genai.ClientConfig{
		APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: baseURL},
	})
	if err != nil {
		t.Fatal(err)
	}
	return llm
}

func TestLLM(t *testing.T) {
	modeltest.TestLLM(t, modeltest.Options{
		Blocks: true,
		Open: func(t testing.TB, script scripted.Script) (model.LLM, *modeltest.Server) {
			srv := modeltest.GeminiServer(t, script)
			return open(t, srv.BaseURL), srv
		},
	})
}

// What is missing is named, and the config is not shown.
func TestNewModelWithoutCredentials(t *testing.T) {
	for _, name := range []string{
		"GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE",
		"GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION",
	} {
		t.Setenv(name, "")
	}
	for _, tt := range []struct {
		cfg  *genai.ClientConfig
		want []string
	}{
		{nil, []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"}},
		{&genai.ClientConfig{}, []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"}},
		{&genai.ClientConfig{Backend: genai.BackendVertexAI, Location: "here"}, []string{"GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"}},
	} {
		_, err := gemini.NewModel(t.Context(), "gemini-2.5-flash", tt.cfg)
		if err == nil || strings.Contains(err.Error(), "{") {
			t.Errorf("%+v: got %v", tt.cfg, err)
			continue
		}
		for _, name := range tt.want {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%+v: %v does not name %s", tt.cfg, err, name)
			}
		}
	}
}
