// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
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
